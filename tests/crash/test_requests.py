"""Requests in every phase, and what a new supervisor makes of what it finds."""

import os
import signal
import time

import msgspec
import pytest
from tests.support import toy
from tests.support.watching import (
    ask,
    kinds_of,
    life_of,
    nothing_lives,
    open_steps,
    reading,
    supervise,
    until,
)

from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now
from longwatch.kernel.errors import ExitCode, FailureClass
from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Desired, Halt, Lifecycle, Phase, Verdict
from longwatch.kernel.line import Failed, Failure, Recovery, Report, Wait
from longwatch.kernel.program import REPORT
from longwatch.kernel.request import Verb
from longwatch.kernel.store import Intended, Spawned, Store


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# -- requests in every phase


def idle(watch):
    return None


def running(watch):
    process = supervise(watch)
    until(lambda: life_of(watch).phase is Phase.RUNNING and any(watch.steps.glob("*/progress.json")))
    return process


def orphaned(watch):
    running(watch).kill()


def pausing(watch):
    process = running(watch)
    ask(watch, Verb.PAUSE, after_step=True)
    until(lambda: life_of(watch).phase is Phase.PAUSING)
    return process


def pausing_orphaned(watch):
    pausing(watch).kill()


def waiting(watch):
    _set(watch, Lifecycle(phase=Phase.WAITING, wait=Deadline(since=now(), delay_s=3600)))


def waiting_since_another_boot(watch):
    since = Instant(wall_s=now().wall_s + 31e6, boottime_s=1e9, monotonic_s=1e9, boot_id="another")
    _set(watch, Lifecycle(phase=Phase.WAITING, wait=Deadline(since=since, delay_s=3600)))


def paused(watch):
    _set(watch, Lifecycle(phase=Phase.PAUSED, desired=Desired.PAUSE))


def stopped(watch):
    _set(watch, Lifecycle(phase=Phase.STOPPED, desired=Desired.STOP))


def exhausted(watch):
    _set(watch, Lifecycle(phase=Phase.EXHAUSTED))


def complete(watch):
    _set(watch, Lifecycle(phase=Phase.COMPLETE))


def _set(watch, life):
    store = Store.open(watch.database)
    store.commit(store.snapshot().generation, lifecycle=life)
    store.close()


UNATTENDED = (idle, waiting, waiting_since_another_boot, paused, stopped, exhausted, complete)
SITUATIONS = [
    *((situation, how) for situation in (running, orphaned) for how in (Recovery.ADOPT, Recovery.RERUN)),
    *((situation, Recovery.ADOPT) for situation in (pausing, pausing_orphaned, *UNATTENDED)),
]


@pytest.mark.guarantee("K11", "K12", "K13")
@pytest.mark.parametrize(("verb", "phase"), [(Verb.PAUSE, Phase.PAUSED), (Verb.STOP, Phase.STOPPED)])
@pytest.mark.parametrize(("situation", "recovery"), SITUATIONS)
def test_a_request_is_obeyed_in_every_phase(situation, verb, phase, recovery, tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", recovery=recovery, sleep_s=600),))
    process = situation(watch)
    ask(watch, verb)
    process = process or supervise(watch)
    assert process.wait(30) == 0
    assert life_of(watch).phase is phase
    nothing_lives(watch)
    # And on again: the next request always wins.
    ask(watch, Verb.RESUME)
    ask(watch, Verb.STOP if verb is Verb.PAUSE else Verb.PAUSE)
    assert supervise(watch).wait(30) == 0
    assert life_of(watch).phase is ({Phase.PAUSED, Phase.STOPPED} - {phase}).pop()
    assert life_of(watch).obeyed >= 3


@pytest.mark.guarantee("K11", "K23")
def test_an_adopted_child_is_asked_again_to_stop(tmp_path):
    """The supervisor dies after the request was obeyed and before the child could hear of it."""
    watch = toy.make(tmp_path, (toy.step("long", recovery=Recovery.ADOPT, sleep_s=600),))
    orphaned(watch)
    _set(watch, msgspec.structs.replace(life_of(watch), phase=Phase.STOPPING, desired=Desired.STOP))
    assert supervise(watch).wait(30) == 0
    assert life_of(watch).phase is Phase.STOPPED
    assert toy.state(watch).outcomes == ("long:stopped",)


@pytest.mark.guarantee("K11", "K23")
def test_a_pause_after_the_step_is_kept_by_the_next_supervisor(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", recovery=Recovery.ADOPT, sleep_s=2.5), toy.step("next")))
    pausing_orphaned(watch)
    assert supervise(watch).wait(30) == 0
    assert life_of(watch).phase is Phase.PAUSED
    assert toy.state(watch).outcomes == ("long:succeeded",)


@pytest.mark.guarantee("K16")
def test_a_signal_does_not_wait_for_a_pause_that_lets_the_step_finish(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=600),))
    process = pausing(watch)
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0
    assert life_of(watch).phase is Phase.PAUSED
    nothing_lives(watch)


@pytest.mark.guarantee("K17", "K23")
def test_an_adopted_child_is_held_to_its_limits(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", "deaf", recovery=Recovery.ADOPT, sleep_s=600),))
    orphaned(watch)
    line = toy.ToyLine(tmp_path, wall_s=0.5, grace_s=0.2)
    assert toy.supervisor(watch, line).run(max_cycles=0) is ExitCode.OK
    assert toy.state(watch).outcomes == ("long:lost",)
    nothing_lives(watch)


# -- what was settled while nobody looked


@pytest.mark.guarantee("K6", "K12", "K26")
@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.PAUSING, Phase.STOPPING])
@pytest.mark.parametrize("how", ["failed", "unknown"])
def test_a_failure_found_at_the_start_holds_the_watch_in_whatever_phase_it_was(phase, how, tmp_path):
    step = toy.step("one", recovery=Recovery.RECONCILE if how == "unknown" else Recovery.RERUN)
    watch = toy.make(tmp_path, (step,))
    store = Store.open(watch.database)
    intent = Intended(step.id, msgspec.json.encode(step), "c" * 32, now())
    store.commit(0, notes=(Note("step.started", "one"),), lifecycle=Lifecycle(phase=phase), changes=(intent,))
    store.close()
    if how == "failed":
        failure = Failure(kind=FailureClass.INTEGRITY, message="a digest differs")
        watch.step(step.id).mkdir(parents=True)
        report = msgspec.json.encode(Report(step=step.id, outcome=Failed(failure)))
        (watch.step(step.id) / REPORT).write_bytes(report)
    held = {"failed": Phase.BLOCKED, "unknown": Phase.NEEDS_RECONCILE}[how]
    code = {"failed": ExitCode.BLOCKED, "unknown": ExitCode.NEEDS_RECONCILE}[how]
    for _ in range(2):
        assert toy.supervisor(watch).run() is code
        assert life_of(watch).phase is held
    assert kinds_of(watch).count("step.started") == 1


@pytest.mark.guarantee("K26")
def test_a_halt_that_was_durable_before_the_crash_holds(tmp_path):
    watch = toy.make(tmp_path, (toy.step("one"),))
    _set(watch, Lifecycle(phase=Phase.PAUSING, halt=Halt(Verdict.BLOCKED, "a digest differs")))
    assert toy.supervisor(watch).run() is ExitCode.BLOCKED
    assert life_of(watch).reason == "a digest differs"


@pytest.mark.guarantee("K27")
def test_a_deadline_of_another_boot_with_a_clock_ahead_is_waited_for_once(tmp_path):
    """The clock stood a year ahead before the reboot: the wait begins again on this boot, and ends."""
    watch = toy.make(tmp_path, (toy.step("one"),))
    since = Instant(wall_s=now().wall_s + 31e6, boottime_s=1e9, monotonic_s=1e9, boot_id="another")
    _set(watch, Lifecycle(phase=Phase.WAITING, wait=Deadline(since=since, delay_s=0.3)))
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ("one",)


def test_a_line_that_waits_for_nothing_does_not_spin(tmp_path, monkeypatch):
    watch = toy.make(tmp_path, (toy.step("one"),))
    line = toy.ToyLine(tmp_path)
    monkeypatch.setattr(line, "decide", lambda *_: Wait("nothing says when"))
    supervisor = toy.supervisor(watch, line)
    turns = []
    monkeypatch.setattr(
        supervisor, "_sleep", lambda _: turns.append(1) if len(turns) < 50 else supervisor.on_signal(15, None)
    )
    assert supervisor.run() is ExitCode.OK
    assert kinds_of(watch).count("watch.waiting") == 1


@pytest.mark.guarantee("K35")
def test_time_is_not_counted_twice_when_work_changes_its_owner(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", recovery=Recovery.ADOPT, sleep_s=2.0),))
    began = time.monotonic()
    orphaned(watch)
    for _ in range(3):
        process = supervise(watch)
        until(lambda: kinds_of(watch)[-1] == "step.adopted" or not open_steps(watch))
        process.kill()
        process.wait()
    assert toy.supervisor(watch).run() is ExitCode.OK
    with reading(watch) as store:
        assert 1.8 < store.active_s() <= time.monotonic() - began


@pytest.mark.guarantee("K35")
def test_time_of_an_earlier_boot_is_kept_and_not_stretched(tmp_path):
    """After a reboot the monotonic clock begins anew: only what was durable counts."""
    step = toy.step("one", recovery=Recovery.ADOPT)
    watch = toy.make(tmp_path, (step,))
    earlier = Instant(wall_s=0, boottime_s=0, monotonic_s=0, boot_id="another")
    store = Store.open(watch.database)
    store.commit(0, lifecycle=Lifecycle(phase=Phase.RUNNING), changes=(
        Intended(step.id, msgspec.json.encode(step), "d" * 32, earlier),
        Spawned(step.id, _identity_of_another_boot(), earlier),
    ))  # fmt: skip
    store.close()
    assert toy.supervisor(watch).run() is ExitCode.OK
    with reading(watch) as store:
        assert store.active_s() < 60
    assert toy.state(watch).outcomes[0] == "one:lost"


def _identity_of_another_boot():
    return Identity(boot_id="another", pid=os.getpid(), start_ticks=1, cookie="d" * 32)
