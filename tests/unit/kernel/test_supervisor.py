"""The loop, with real step programs, a real database and real signals."""

import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest
from tests.support import toy

from longwatch.kernel.errors import ExitCode
from longwatch.kernel.lifecycle import Desired, Phase, ends
from longwatch.kernel.line import Cycle, Recovery, Start
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.settings import Backoff, Host
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def read(watch: Watch):
    store = Store.read(watch.database)
    snapshot = store.snapshot()
    kinds = [event.kind for event in store.events()]
    assert store.chain() is None
    store.close()
    return snapshot.lifecycle, kinds


def ask(watch: Watch, verb: Verb, **how: bool) -> None:
    store = Store.open(watch.database)
    store.request(Request(verb=verb, **how))
    store.close()


def later(condition, act) -> threading.Thread:
    """Do something as soon as a condition holds, from beside."""

    def wait() -> None:
        for _ in range(2000):
            if condition():
                act()
                return
            time.sleep(0.01)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def progress_of(watch: Watch):
    return lambda: any(watch.steps.glob("*/progress.json"))


@pytest.mark.guarantee("K5", "K6", "K15")
def test_all_steps_run_once_and_the_watch_is_complete(tmp_path):
    effects = tmp_path / "effects"
    watch = toy.make(tmp_path, tuple(toy.step(f"toy-{n}", once=str(effects)) for n in range(3)))
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ("toy-0", "toy-1", "toy-2")
    assert len(effects.read_text().splitlines()) == 3
    life, kinds = read(watch)
    assert life.phase is Phase.COMPLETE
    assert kinds[0] == "supervisor.began"
    assert kinds[-1] == "supervisor.ended"


@pytest.mark.guarantee("K26", "K27")
def test_faults_wait_and_block_after_so_many_in_a_row(tmp_path):
    watch = toy.make(tmp_path, (toy.step("bad", "fail"),))
    assert toy.supervisor(watch).run() is ExitCode.BLOCKED
    life, kinds = read(watch)
    assert kinds.count("step.failed") == toy.SETTINGS.backoff.max_faults
    assert kinds.count("watch.waiting") == toy.SETTINGS.backoff.max_faults - 1
    assert life.phase is Phase.BLOCKED
    assert "4 failures in a row" in life.reason


@pytest.mark.guarantee("K25", "K26")
def test_an_integrity_error_blocks_at_once_and_words_in_a_log_do_not(tmp_path):
    quiet = toy.make(tmp_path / "quiet", (toy.step("words", "log-integrity"),))
    assert toy.supervisor(quiet).run() is ExitCode.BLOCKED
    assert read(quiet)[1].count("step.failed") == 4
    loud = toy.make(tmp_path / "loud", (toy.step("real", "integrity"),))
    assert toy.supervisor(loud).run() is ExitCode.BLOCKED
    assert read(loud)[1].count("step.failed") == 1


@pytest.mark.guarantee("K11", "K12")
def test_a_pause_ends_running_work_and_the_watch_is_paused_only_then(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=60),))
    pausing = later(progress_of(watch), lambda: ask(watch, Verb.PAUSE))
    assert toy.supervisor(watch).run() is ExitCode.OK
    pausing.join()
    life, kinds = read(watch)
    assert (life.phase, life.desired) == (Phase.PAUSED, Desired.PAUSE)
    assert toy.state(watch).outcomes == ("long:stopped",)
    assert kinds.index("request.obeyed") < kinds.index("toy.stopped") < kinds.index("watch.drained")


@pytest.mark.guarantee("K11")
def test_a_pause_after_the_step_lets_it_finish(tmp_path):
    watch = toy.make(tmp_path, (toy.step("short", sleep_s=0.6), toy.step("next")))
    pausing = later(progress_of(watch), lambda: ask(watch, Verb.PAUSE, after_step=True))
    assert toy.supervisor(watch).run() is ExitCode.OK
    pausing.join()
    assert toy.state(watch).outcomes == ("short:succeeded",)
    assert read(watch)[0].phase is Phase.PAUSED


@pytest.mark.guarantee("K11", "K13")
def test_requests_made_while_nobody_runs_are_obeyed_in_their_order(tmp_path):
    watch = toy.make(tmp_path, (toy.step("one"),))
    ask(watch, Verb.STOP)
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert read(watch)[0].phase is Phase.STOPPED
    assert toy.state(watch).done == ()
    # Stopped on request stays stopped, also for the next supervisor.
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ()
    ask(watch, Verb.PAUSE)
    ask(watch, Verb.RESUME)
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ("one",)


@pytest.mark.guarantee("K11", "K15")
def test_a_run_that_stays_goes_on_after_a_pause(tmp_path):
    watch = toy.make(tmp_path, (toy.step("one"),))
    ask(watch, Verb.PAUSE)
    resuming = later(lambda: read(watch)[0].phase is Phase.PAUSED, lambda: ask(watch, Verb.RESUME))
    assert toy.supervisor(watch).run(ends=ends(stay=True, waits=True)) is ExitCode.OK
    resuming.join()
    assert (read(watch)[0].phase, toy.state(watch).done) == (Phase.COMPLETE, ("one",))


@pytest.mark.guarantee("K13")
def test_only_accept_leads_out_of_blocked(tmp_path):
    watch = toy.make(tmp_path, (toy.step("real", "integrity"),))
    assert toy.supervisor(watch).run() is ExitCode.BLOCKED
    ask(watch, Verb.RESUME)
    assert toy.supervisor(watch).run() is ExitCode.BLOCKED
    assert "request.refused" in read(watch)[1]
    assert read(watch)[1].count("step.started") == 1
    ask(watch, Verb.RESUME, accept=True)
    assert toy.supervisor(watch).run() is ExitCode.BLOCKED
    assert read(watch)[1].count("step.started") == 2
    assert toy.state(watch).accepted == 1


@pytest.mark.guarantee("K6", "K18")
def test_a_program_that_dies_is_run_again_or_lost_by_its_class(tmp_path):
    effects = tmp_path / "effects"
    plan = (
        toy.step("rerun", "die-once", recovery=Recovery.RERUN),
        toy.step("rejoined", "die-once", recovery=Recovery.REJOIN),
        toy.step("confirmed", "die-once", recovery=Recovery.CONFIRM, once=str(effects)),
        toy.step("resumed", "die-once", recovery=Recovery.RESUME),
    )
    watch = toy.make(tmp_path, plan)
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).outcomes == (
        "rerun:succeeded",
        "rejoined:succeeded",
        "confirmed:succeeded",
        "resumed:succeeded",
    )
    assert len(effects.read_text().splitlines()) == 1, "a confirmed effect is never made twice"


@pytest.mark.guarantee("K6")
def test_a_lost_adoptable_step_is_told_to_the_line(tmp_path):
    watch = toy.make(tmp_path, (toy.step("adopted", "die-once", recovery=Recovery.ADOPT),))
    # Each new step has a folder of its own, so it dies again until it is blocked by nobody: stop it.
    stopping = later(lambda: len(toy.state(watch).outcomes) >= 2, lambda: ask(watch, Verb.STOP))
    assert toy.supervisor(watch).run() is ExitCode.OK
    stopping.join()
    assert set(toy.state(watch).outcomes) <= {"adopted:lost", "adopted:stopped"}


@pytest.mark.guarantee("K6", "K14")
def test_an_unknown_effect_needs_a_person(tmp_path):
    watch = toy.make(tmp_path, (toy.step("unknown", "die", recovery=Recovery.RECONCILE),))
    assert toy.supervisor(watch).run() is ExitCode.NEEDS_RECONCILE
    assert toy.supervisor(watch).run() is ExitCode.NEEDS_RECONCILE
    assert read(watch)[1].count("step.started") == 1
    ask(watch, Verb.RESUME, accept=True)
    assert toy.supervisor(watch).run() is ExitCode.NEEDS_RECONCILE
    assert read(watch)[1].count("step.started") == 2


@pytest.mark.guarantee("K16", "K18")
def test_a_signal_stops_in_good_order_and_the_next_run_goes_on(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=60),))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy", "supervise", str(tmp_path)], cwd=toy.PROJECT
    )
    later(progress_of(watch), lambda: process.send_signal(signal.SIGTERM)).join()
    assert process.wait(15) == 0
    life, _ = read(watch)
    assert (life.phase, life.desired) == (Phase.STOPPED, Desired.RUN)


@pytest.mark.guarantee("K16", "K18")
def test_a_second_signal_ends_a_deaf_child_at_once(tmp_path):
    watch = toy.make(tmp_path, (toy.step("deaf", "deaf", sleep_s=60),))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy", "supervise", str(tmp_path)], cwd=toy.PROJECT
    )

    def twice() -> None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)

    later(progress_of(watch), twice).join()
    assert process.wait(15) == 0
    life, _ = read(watch)
    assert life.phase is Phase.STOPPED
    assert not Store.read(watch.database).open_steps() or life.desired is Desired.RUN


@pytest.mark.guarantee("K23", "K6", "K35")
@pytest.mark.parametrize("recovery", [Recovery.ADOPT, Recovery.REJOIN])
def test_a_child_that_outlived_its_supervisor_is_adopted_and_never_doubled(tmp_path, recovery):
    effects = tmp_path / "effects"
    watch = toy.make(tmp_path, (toy.step("long", recovery=recovery, sleep_s=2.0, once=str(effects)),))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy", "supervise", str(tmp_path)], cwd=toy.PROJECT
    )
    later(effects.exists, process.kill).join()
    process.wait(10)
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).outcomes == ("long:succeeded",)
    assert len(effects.read_text().splitlines()) == 1
    store = Store.read(watch.database)
    assert 1.9 < store.active_s() < 10, "the time without a supervisor counts too, and only once"
    assert "step.adopted" in [event.kind for event in store.events()]


@pytest.mark.guarantee("K23", "K6", "K5")
def test_both_killed_and_the_next_write_works_too(tmp_path):
    effects = tmp_path / "effects"
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=1.0, once=str(effects)), toy.step("next")))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy", "supervise", str(tmp_path)], cwd=toy.PROJECT
    )
    later(effects.exists, process.kill).join()
    process.wait(10)
    (left,) = Store.read(watch.database).open_steps()
    if left.identity is not None:
        os.kill(left.identity.pid, signal.SIGKILL)
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ("long", "next")


@pytest.mark.guarantee("K21", "K35")
def test_a_heartbeat_is_durable_while_a_child_runs(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=1.0),))
    beats = []

    def look() -> None:
        for _ in range(40):
            store = Store.read(watch.database)
            beats.extend(step.active_s for step in store.open_steps() if step.progress is not None)
            store.close()
            time.sleep(0.05)

    looking = threading.Thread(target=look)
    looking.start()
    assert toy.supervisor(watch).run() is ExitCode.OK
    looking.join()
    assert len(set(beats)) > 2
    assert beats == sorted(beats)


@pytest.mark.guarantee("K8")
def test_below_the_disk_reserve_nothing_begins(tmp_path):
    watch = toy.make(tmp_path, (toy.step("one"),))
    settings = msgspec.structs.replace(toy.SETTINGS, host=Host(free_disk_bytes=2**60))
    stopping = later(lambda: read(watch)[0].phase is Phase.WAITING, lambda: ask(watch, Verb.STOP))
    assert toy.supervisor(watch, settings=settings).run() is ExitCode.OK
    stopping.join()
    assert toy.state(watch).done == ()
    assert "free some space" in str([e.text for e in Store.read(watch.database).events()])


def test_steps_run_side_by_side_as_far_as_cores_allow(tmp_path):
    watch = toy.make(tmp_path, tuple(toy.step(f"toy-{n}", sleep_s=0.3) for n in range(4)))
    line = toy.ToyLine(tmp_path, side_by_side=True)
    settings = msgspec.structs.replace(toy.SETTINGS, host=Host(free_disk_bytes=0, cores=2))
    assert toy.supervisor(watch, line, settings).run() is ExitCode.OK
    assert sorted(toy.state(watch).done) == [f"toy-{n}" for n in range(4)]


@pytest.mark.guarantee("K26", "M37")
@pytest.mark.parametrize(
    ("what", "code", "other"),
    [("limited", ExitCode.EXHAUSTED, "succeeded"), ("integrity", ExitCode.BLOCKED, "stopped")],
)
def test_what_runs_beside_a_spent_budget_may_finish(tmp_path, what, code, other):
    """It is paid for; beside something that is wrong nothing goes on."""
    effects = str(tmp_path / "effects")
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=1.5), toy.step("short", what, once=effects)))
    settings = msgspec.structs.replace(toy.SETTINGS, backoff=Backoff(park_for_quota=False))
    assert toy.supervisor(watch, toy.ToyLine(tmp_path, side_by_side=True), settings).run() is code
    assert toy.state(watch).outcomes == ("short:failed", f"long:{other}")


class Landing(toy.ToyLine):
    """What "long" brought is landed by "land", whatever else has to wait."""

    def decide(self, state, running, now):
        land = cycled("land", Cycle.CONTINUES)
        if "long" in state.done and "land" not in (*state.done, *running):
            return Start((land,))
        return super().decide(state, running, now)


@pytest.mark.guarantee("K26", "M37")
def test_a_usage_limit_holds_new_work_and_not_what_is_in_hand(tmp_path):
    effects = str(tmp_path / "effects")
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=0.8), toy.step("short", "limited", once=effects)))
    stopping = later(lambda: "land" in toy.state(watch).done, lambda: ask(watch, Verb.STOP))
    settings = msgspec.structs.replace(toy.SETTINGS, backoff=Backoff(park_for_quota=True))
    assert toy.supervisor(watch, Landing(tmp_path, side_by_side=True), settings).run() is ExitCode.OK
    stopping.join()
    assert toy.state(watch).outcomes == ("short:failed", "long:succeeded", "land:succeeded")


def test_max_cycles_bounds_the_work(tmp_path):
    watch = toy.make(tmp_path, tuple(toy.step(f"toy-{n}") for n in range(3)))
    assert toy.supervisor(watch).run(max_cycles=2) is ExitCode.OK
    assert toy.state(watch).done == ("toy-0", "toy-1")
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == ("toy-0", "toy-1", "toy-2")


def cycled(name, cycle):
    return msgspec.structs.replace(toy.step(name), cycle=cycle)


@pytest.mark.guarantee("M34")
def test_max_cycles_counts_pieces_of_work_and_ends_none_half_way(tmp_path):
    plan = (
        *(cycled("look", Cycle.NONE), cycled("first", Cycle.OPENS), cycled("more", Cycle.CONTINUES)),
        *(cycled("tidy", Cycle.NONE), cycled("second", Cycle.OPENS)),
    )
    watch = toy.make(tmp_path, plan)
    assert toy.supervisor(watch).run(max_cycles=1) is ExitCode.OK
    assert toy.state(watch).done == ("look", "first", "more", "tidy")


@pytest.mark.guarantee("M34")
def test_going_on_with_what_an_earlier_run_began_is_a_piece_of_work(tmp_path):
    watch = toy.make(tmp_path, (cycled("more", Cycle.CONTINUES), cycled("second", Cycle.OPENS)))
    assert toy.supervisor(watch).run(max_cycles=1) is ExitCode.OK
    assert toy.state(watch).done == ("more",)


@pytest.mark.guarantee("L33", "M34")
def test_what_gets_the_next_piece_ready_is_not_counted_and_not_begun_where_none_may_follow(tmp_path):
    plan = (
        *(cycled("ready-1", Cycle.AHEAD), cycled("first", Cycle.OPENS)),
        *(cycled("ready-2", Cycle.AHEAD), cycled("second", Cycle.OPENS), cycled("ready-3", Cycle.AHEAD)),
    )
    watch = toy.make(tmp_path, plan)
    assert toy.supervisor(watch).run(max_cycles=1) is ExitCode.OK
    assert toy.state(watch).done == ("ready-1", "first")
    assert toy.supervisor(watch).run(max_cycles=1) is ExitCode.OK
    assert toy.state(watch).done == ("ready-1", "first", "ready-2", "second")


@pytest.mark.guarantee("K26", "L33")
def test_trouble_with_the_next_piece_holds_only_that(tmp_path):
    effects = str(tmp_path / "effects")
    short = msgspec.structs.replace(toy.step("short", "limited", once=effects), cycle=Cycle.AHEAD)
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=0.8), short))
    stopping = later(lambda: "land" in toy.state(watch).done, lambda: ask(watch, Verb.STOP))
    settings = msgspec.structs.replace(toy.SETTINGS, backoff=Backoff(park_for_quota=True))
    assert toy.supervisor(watch, Landing(tmp_path, side_by_side=True), settings).run() is ExitCode.OK
    stopping.join()
    assert toy.state(watch).outcomes == ("short:failed", "long:succeeded", "land:succeeded")


def test_a_step_that_runs_past_its_wall_limit_is_ended(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", "deaf", sleep_s=600),))
    line = toy.ToyLine(tmp_path, wall_s=0.5, grace_s=0.3)
    assert toy.supervisor(watch, line).run(max_cycles=1) is ExitCode.OK
    assert toy.state(watch).outcomes == ("long:lost",)
