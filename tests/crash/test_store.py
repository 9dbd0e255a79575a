"""kill -9 at any system call of a program that commits: what was acknowledged is there, nothing is half there."""

import pytest
from tests.support import faults, stores

from longwatch.kernel.errors import StateError
from longwatch.kernel.journal import Note
from longwatch.kernel.store import Store

MOVES = 30

WRITER = f"""
import sys
from pathlib import Path
from tests.support import stores
from longwatch.kernel.store import Store
path = Path(sys.argv[1])
store, generation = stores.new(path)
sys.stdout.write("made\\n"); sys.stdout.flush()
for number in range({MOVES}):
    name = f"s{{number}}"
    stores.intend(store, generation, name)
    stores.end(store, generation, name)
    sys.stdout.write(name + "\\n"); sys.stdout.flush()
    if number % 7 == 6:
        # The log is folded into the file: the calls of a checkpoint are points of death, too.
        store.close()
        store = Store.open(path)
"""

POINTS = [
    *(("fdatasync", number) for number in (*range(1, 12), 20, 33, 50, 64, 68)),
    *(
        ("pwrite64", number)
        for number in (*range(1, 20, 2), 30, 47, 80, 130, 155, 156, 170, 210, 310, 430, 560, 680, 740)
    ),
    *(("ftruncate", number) for number in (1, 2, 3)),
    *(("unlink", number) for number in (1, 2, 3, 4)),
]


def acknowledged(printed: str) -> list[str]:
    return [word for word in printed.split() if word != "made"]


@pytest.mark.guarantee("K5", "K6", "K33")
@pytest.mark.parametrize(("call", "number"), POINTS)
def test_whatever_the_moment_of_death_the_state_is_before_or_after_a_change(call, number, tmp_path):
    path = tmp_path / "watch.db"
    process = faults.run_and_kill_at(call, number, "-c", WRITER, str(path))
    known = acknowledged(process.stdout)
    if not process.stdout:
        # Dead before the database was acknowledged: making it can be repeated, or it is there already.
        if not _is_whole(path):
            Store.create(path, b'{"n":0}').close()
        known = []
    store = Store.open(path)
    assert store.chain() is None
    ended = {step.id for step in store.steps()} - {step.id for step in store.open_steps()}
    assert ended >= set(known)
    assert len(ended) <= len(known) + 1, "at most one move was durable and not yet acknowledged"
    _one_story(store)
    generation = store.begin_generation(Note("supervisor.began", "after the crash"))
    stores.intend(store, generation, "next")
    stores.end(store, generation, "next")
    store.close()
    again = Store.open(path)
    assert again.chain() is None
    assert again.snapshot().line == b'{"last":"next"}'


def _is_whole(path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return False
    try:
        Store.open(path).close()
    except StateError:
        return False
    return True


def _one_story(store: Store) -> None:
    """State, steps, spans and events tell the same."""
    kinds = [(event.kind, event.data.get("step")) for event in store.events()]
    begun = [step for kind, step in kinds if kind == "step.started"]
    ended = [step for kind, step in kinds if kind == "step.ended"]
    assert begun == [step.id for step in store.steps()]
    assert [step.id for step in store.open_steps()] == begun[len(ended) :]
    assert len(store.spans()) == len(ended)
    last = b'{"last":"%b"}' % ended[-1].encode() if ended else b'{"n":0}'
    assert store.snapshot().line == last


@pytest.mark.guarantee("K5")
def test_the_points_of_death_are_reached(tmp_path):
    """The first and the last point of each call kill: otherwise the test above would test nothing."""
    for call in {call for call, _ in POINTS}:
        numbers = [number for name, number in POINTS if name == call]
        for number in (numbers[0], numbers[-1]):
            path = tmp_path / f"{call}-{number}.db"
            assert faults.was_killed(faults.run_and_kill_at(call, number, "-c", WRITER, str(path))), (
                call,
                number,
            )


@pytest.mark.guarantee("K5", "K7")
@pytest.mark.parametrize(
    ("call", "number"), [*(("pwrite64", n) for n in range(1, 14)), *(("fdatasync", n) for n in range(1, 6))]
)
def test_a_migration_that_is_cut_short_is_done_by_the_next_start(call, number, tmp_path):
    path = tmp_path / "watch.db"
    stores.filled(path, 3)
    before = stores.everything(path)
    migrations = "(*database.MIGRATIONS, 'ALTER TABLE state ADD COLUMN added TEXT')"
    program = f"""
import sys
from pathlib import Path
from longwatch.kernel import database
from longwatch.kernel.store import Store
Store.open(Path(sys.argv[1]), migrations={migrations}).close()
"""
    faults.run_and_kill_at(call, number, "-c", program, str(path))
    finished = faults.run_and_kill_at("exit_group", 2, "-c", program, str(path))
    assert not faults.was_killed(finished), finished.stderr
    stores.tamper(path, "ALTER TABLE state DROP COLUMN added", "PRAGMA user_version = 1")
    assert stores.everything(path) == before
    assert stores.everything(path.with_name("watch.db.version-1")) == before
