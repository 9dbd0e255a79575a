"""`reconcile` shows everything that a person has to know, and changes nothing."""

import json
import os
import signal
import subprocess
import sys

import msgspec
import pytest
from tests.support import repositories, watches

from longwatch.kernel import lease
from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now
from longwatch.kernel.identity import COOKIE_VARIABLE, identify
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.line import Progress
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.store import Beat, Intended, Spawned, Store
from longwatch.kernel.watch import Watch
from longwatch.migrate.steps import Attempt
from longwatch.observe import reconcile

COOKIE = "c0ffee" * 5


@pytest.fixture
def watch(tmp_path) -> Watch:
    return watches.migrate(tmp_path / "repo")


@pytest.fixture
def child():
    """A process that carries the step's owner mark, as an attempt would."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(600)"],
        env={**os.environ, COOKIE_VARIABLE: COOKIE},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def fly(watch: Watch, identity: Identity | None, phase: Phase = Phase.RUNNING) -> None:
    """Leave an attempt in flight, as a killed supervisor does."""
    step = Attempt(id="greeting.1.attempt.1", job="greeting", number=1, baseline="b" * 40, card="c" * 64)
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "Process 1 supervises."))
    changes = [Intended(step.id, msgspec.json.encode(step), COOKIE, now())]
    if identity is not None:
        shown = Progress(phase="worker", text="7 actions")
        changes += [Spawned(step.id, identity, now()), Beat(step.id, shown, 42.0)]
    store.commit(
        generation,
        notes=(Note("step.started", step.title),),
        lifecycle=Lifecycle(phase=phase, reason="why"),
        changes=changes,
    )
    store.close()


@pytest.mark.guarantee("K14")
def test_nothing_is_written_anywhere(watch, child):
    watches.verified(watch)
    fly(watch, identify(child.pid, COOKIE), Phase.NEEDS_RECONCILE)
    repositories.write(watch.root, "src/greet.py", "GREETING = 'mine'\n")
    # A reader that is there already makes SQLite's own files stay as they are.
    before = watches.contents(watch.root)
    for arguments in (["reconcile"], ["reconcile", "--json"]):
        assert watches.longwatch(watch.root, *arguments).returncode == 0
    assert watches.contents(watch.root) == before
    assert child.poll() is None


@pytest.mark.guarantee("K14", "K23")
def test_what_was_in_flight_is_told_with_what_lives_of_it(watch, child):
    fly(watch, identify(child.pid, COOKIE))
    (step,) = reconcile.look(watch).in_flight
    assert (step.id, step.alive, step.pid) == ("greeting.1.attempt.1", True, child.pid)
    assert step.children == (child.pid,)
    assert (step.progress, step.active_s) == ("worker 7 actions", 42.0)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (step,) = reconcile.look(watch).in_flight
    assert (step.alive, step.children) == (False, ())


@pytest.mark.guarantee("K14", "K19")
def test_another_process_under_the_same_pid_is_not_taken_for_it(watch):
    mine = identify(os.getpid(), COOKIE)
    fly(watch, msgspec.structs.replace(mine, start_ticks=mine.start_ticks + 1))
    (step,) = reconcile.look(watch).in_flight
    assert (step.alive, step.children) == (False, ())


@pytest.mark.guarantee("K14")
def test_a_step_whose_program_never_started_is_told(watch):
    fly(watch, None)
    assert "never seen to start" in watches.longwatch(watch.root, "reconcile").stdout


@pytest.mark.guarantee("K14")
def test_what_changed_since_the_last_verified_point_is_listed(watch):
    watches.verified(watch)
    repositories.write(watch.root, "src/new.py", "")
    repositories.write(watch.root, "src/greet.py", "GREETING = 'moved'\n")
    repositories.commit_all(watch.root)
    repositories.write(watch.root, "mine.txt", "dirty")
    text = watches.longwatch(watch.root, "reconcile").stdout
    assert "M src/greet.py" in text
    assert "A src/new.py" in text
    assert "mine.txt" in text


@pytest.mark.guarantee("K14")
def test_receipts_that_do_not_hold_are_named(watch):
    receipt = watches.verified(watch)
    assert reconcile.look(watch).receipts_ok == 2
    ReceiptStore(watch.receipts).path(receipt).unlink()
    seen = reconcile.look(watch)
    assert seen.receipts_ok == 1
    assert any(receipt[:12] in line and "evidence_missing" in line for line in seen.receipts_wrong)


@pytest.mark.guarantee("K14")
def test_the_newest_salvaged_patch_comes_first(watch):
    for number, age_ns in ((1, 10**18), (2, 2 * 10**18)):
        patch = watch.hidden / "attempts" / f"greeting.{number}" / "salvage.patch"
        patch.parent.mkdir(parents=True)
        patch.write_text("diff")
        os.utime(patch, ns=(age_ns, age_ns))
    lines = next(s.lines for s in reconcile.look(watch).changes if "partial" in s.title)
    assert "greeting.2" in lines[0]
    assert "newest" in lines[0]


@pytest.mark.guarantee("K14")
def test_a_broken_configuration_does_not_hide_the_rest(watch, child):
    fly(watch, identify(child.pid, COOKIE))
    watch.config.write_text('kind = "migrate"\n[repository]\n')
    seen = reconcile.look(watch)
    assert seen.in_flight[0].alive
    assert "branch" in seen.problems[0]


@pytest.mark.guarantee("K14")
def test_a_missing_repository_does_not_hide_the_rest(watch):
    fly(watch, None)
    (watch.root / ".git").rename(watch.root / "gone")
    seen = reconcile.look(watch)
    assert seen.in_flight
    assert any("no git repository" in problem for problem in seen.problems)


@pytest.mark.guarantee("K13", "K14")
@pytest.mark.parametrize(
    ("phase", "supervised", "living", "command"),
    [
        (Phase.NEEDS_RECONCILE, False, False, "longwatch resume --accept && longwatch run"),
        (Phase.BLOCKED, True, False, "longwatch resume --accept"),
        (Phase.PAUSED, False, False, "longwatch resume && longwatch run"),
        (Phase.PAUSED, True, False, "longwatch resume"),
        (Phase.RUNNING, False, True, "longwatch run"),
        (Phase.RUNNING, True, True, ""),
        (Phase.STOPPING, True, True, ""),
        (Phase.STOPPING, False, False, "longwatch run"),
        (Phase.IDLE, False, False, "longwatch run"),
        (Phase.COMPLETE, False, False, ""),
        (Phase.WAITING, False, False, "longwatch run"),
        (Phase.EXHAUSTED, False, False, "longwatch run"),
    ],
)
def test_the_command_that_goes_on_fits_the_phase(phase, supervised, living, command):
    assert reconcile.going_on(phase, supervised=supervised, living=living)[0] == command


@pytest.mark.guarantee("K14", "M33")
def test_where_the_branch_moved_the_new_one_has_to_be_taken():
    reason = "The branch main moved; `longwatch resume --accept --refresh-baseline` goes on from there."
    told, _ = reconcile.going_on(Phase.BLOCKED, supervised=False, living=False, reason=reason)
    assert told == "longwatch resume --accept --refresh-baseline && longwatch run"


@pytest.mark.guarantee("K10", "K14")
def test_json_holds_the_same(watch):
    fly(watch, None, Phase.NEEDS_RECONCILE)
    seen = json.loads(watches.longwatch(watch.root, "reconcile", "--json").stdout)
    assert seen["phase"] == "needs_reconcile"
    assert seen["command"] == "longwatch resume --accept && longwatch run"
    assert not lease.holder(watch.lease)
