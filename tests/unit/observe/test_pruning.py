"""`longwatch prune`: a dry run at any time, the real one where nobody supervises; receipts hold afterwards (L27)."""

import json
import struct
import subprocess
import sys

import msgspec
import pytest
from learning import Walk, anchored, confirmed, live, prepared, pruned, succeeded, trained
from tests.support import watches

from longwatch.cli import beginning
from longwatch.kernel import files, lease, program
from longwatch.kernel.clock import now
from longwatch.kernel.digest import digest
from longwatch.kernel.errors import LeaseHeldError, RefusedError
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Report, Succeeded
from longwatch.kernel.store import Intended, Store
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, adopting, settings
from longwatch.learn.acceptance import Pair
from longwatch.learn.place import Place
from longwatch.learn.steps import Adopted, Pruned, Train
from longwatch.learn.tasks import Verdict
from longwatch.observe import pruning, verifying


@pytest.fixture
def place(tmp_path):
    beginning.learn(tmp_path)
    return Place(Watch(tmp_path), settings.load(tmp_path))


def weights(value: int) -> bytes:
    header = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes([value] * 4)


def lived(place: Place, experiments: int) -> Walk:
    """Leave a watch that lived for so many experiments and never pruned."""
    walk = Walk(place.settings)
    live(walk, place, experiments, prunes=False)
    save(place, walk.state)
    return walk


def save(place: Place, state, *changes, notes=()) -> None:
    store = Store.open(place.watch.database)
    try:
        generation = store.begin_generation(Note("supervisor.began", "A process supervises."))
        store.commit(generation, line=msgspec.json.encode(state), changes=changes, notes=notes)
    finally:
        store.close()


def there(place: Place) -> list[str]:
    return sorted(str(path) for path in place.watch.hidden.rglob("*") if "watch.db" not in path.name)


@pytest.mark.guarantee("L27")
def test_a_dry_run_lists_and_the_real_one_removes_and_says_so(place):
    lived(place, 6)
    before = there(place)
    seen = pruning.look(place.watch)
    assert there(place) == before
    assert {one.path for one in seen.removals if "/experiments/" in one.path} == {
        f".longwatch/experiments/{number}" for number in range(1, 5)
    }
    assert "would go" in pruning.text(seen)
    done = pruning.prune(place.watch)
    assert done == msgspec.structs.replace(seen, dry_run=False)
    assert sorted(path.name for path in place.experiments.iterdir()) == ["5", "6"]
    assert not pruning.prune(place.watch).removals
    store = Store.read(place.watch.database)
    (event,) = (event for event in store.events() if event.kind == "experiments.pruned")
    store.close()
    assert event.data["freed_bytes"] == done.bytes


@pytest.mark.guarantee("L27", "K1")
def test_while_a_supervisor_runs_only_a_dry_run_is_allowed(place):
    lived(place, 6)
    held = lease.acquire(place.watch.lease)
    try:
        assert pruning.look(place.watch).removals
        with pytest.raises(LeaseHeldError, match="longwatch stop"):
            pruning.prune(place.watch)
    finally:
        held.close()
    assert pruning.look(place.watch).removals


@pytest.mark.guarantee("L27")
def test_another_kind_of_watch_is_refused(tmp_path):
    watch = watches.migrate(tmp_path / "repo")
    with pytest.raises(RefusedError, match="only a learn watch"):
        pruning.look(watch)


@pytest.mark.guarantee("L26", "L27", "K32")
def test_every_receipt_holds_after_pruning(place):
    walk = Walk(place.settings)
    live(walk, place, 1)
    receipt = adopted(place, walk)
    live(walk, place, 5, prunes=False)
    save(place, walk.state)
    assert verifying.verify(place.watch).ok
    removed = {one.path for one in pruning.prune(place.watch).removals}
    assert ".longwatch/experiments/2" in removed
    verified = verifying.verify(place.watch)
    assert verified.ok
    assert receipt in {one.receipt for one in verified.receipts}
    assert list(place.adapters.iterdir()), "what a receipt is about stays"


def adopted(place: Place, walk: Walk) -> str:
    """Let the next experiment's challenger be accepted, with a real adapter and real receipts."""
    walk.do(prepared).do(pruned)
    folder = place.experiment(walk.step.number)
    source = files.make_folder(folder / "nominated" / "new")
    (source / adapters.WEIGHTS).write_bytes(weights(7))
    (source / adapters.CONFIG).write_text(json.dumps({"peft_type": "LORA"}))
    name = adapters.digest_of(source)
    source.rename(source.with_name(name))
    found = trained(walk.step)
    challenger = msgspec.structs.replace(found.challenger, adapter=name)
    walk.tell(succeeded(msgspec.structs.replace(found, challenger=challenger)))
    walk.do(confirmed, kind="gain").do(anchored)
    pair = Pair(
        task="t", problem="p", language="python", family="f", champion=Verdict.FAIL, challenger=Verdict.PASS
    )
    files.replace(files.make_folder(folder / "pairs") / "1.json", msgspec.json.encode((pair,)))
    step = walk.step
    save(place, walk.state, Intended(step.id, msgspec.json.encode(step), "cookie", now()))
    receipt = adopting._signed(step, place)
    lineage = adapters.Lineage(base="b", data="d", code="c", environment="e", parent=None, decision=receipt)
    adapters.put(place.adapters, source.with_name(name), digest(name), lineage)
    walk.tell(succeeded(Adopted(adapter=name, receipt=receipt)))
    return receipt


@pytest.mark.guarantee("L27", "L33")
def test_the_step_is_a_program_of_its_own_and_a_repeat_is_harmless(place):
    walk = Walk(place.settings)
    live(walk, place, 6, prunes=False)
    walk.do(prepared)
    step = walk.step
    folder = files.make_folder(place.watch.step(step.id))
    files.replace(folder / program.STEP, msgspec.json.encode(step))
    for experiments in (4, 0):
        argv = (sys.executable, "-I", "-m", "longwatch.learn.program", str(folder))
        assert subprocess.run(argv, check=False, capture_output=True).returncode == 0
        report = msgspec.json.decode((folder / program.REPORT).read_bytes(), type=Report)
        assert isinstance(report.outcome, Succeeded)
        assert msgspec.json.decode(report.outcome.evidence, type=Pruned).experiments == experiments
    assert folder.is_dir(), "its own folder is of the experiment in hand"
    walk.tell(report.outcome)
    assert isinstance(walk.step, Train)
