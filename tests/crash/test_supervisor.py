"""kill -9 of supervisors and step programs at any moment; recovery goes by the ordinary way and keeps every promise."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from tests.support import faults, toy
from tests.support.watching import (
    SUPERVISE,
    ask,
    effects_of,
    kinds_of,
    names_of,
    nothing_lives,
    open_steps,
    reading,
    supervise,
    until,
)

from longwatch.kernel import lease
from longwatch.kernel.errors import ExitCode, LeaseHeldError
from longwatch.kernel.identity import alive
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Recovery
from longwatch.kernel.request import Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


# -- death at a system call


PLAN = (
    ("confirmed", Recovery.CONFIRM),
    ("adopted", Recovery.ADOPT),
    ("rejoined", Recovery.REJOIN),
    ("rerun", Recovery.RERUN),
    ("resumed", Recovery.RESUME),
)
POINTS = [
    *(("fdatasync", number) for number in (2, 3, 4, 5, 6, 7, 8, 10, 14)),
    *(("pwrite64", number) for number in (5, 17, 33, 60)),
    *(("fsync", number) for number in (3, 5)),
    *(("renameat", number) for number in (1, 3)),
    *(("vfork,clone,clone3", number) for number in (1, 2)),
    ("pidfd_open", 1),
    *(("poll", number) for number in (2, 5)),
]


@pytest.mark.guarantee("K5", "K6", "K23", "K33")
@pytest.mark.parametrize(("call", "number"), POINTS)
def test_a_supervisor_that_dies_at_a_system_call_is_followed_by_one_that_goes_on(call, number, tmp_path):
    effects = tmp_path / "effects"
    plan = tuple(toy.step(name, recovery=how, once=str(effects), sleep_s=0.02) for name, how in PLAN)
    watch = toy.make(tmp_path, plan)
    faults.run_and_kill_at(call, number, *SUPERVISE, str(tmp_path))
    assert lease.holder(watch.lease) is None or not lease.holder(watch.lease).living
    assert toy.supervisor(watch).run() is ExitCode.OK
    assert toy.state(watch).done == tuple(name for name, _ in PLAN)
    assert "supervisor.ended" in kinds_of(watch)
    counted = names_of(effects_of(effects))
    assert counted["confirmed"] == 1, "a confirmed effect is made exactly once"
    # An adoptable step whose process was not recorded yet is ended and told as lost: then the line begins a new one.
    lost = toy.state(watch).outcomes.count("adopted:lost")
    assert counted["adopted"] <= 1 + lost
    assert max(Counter(line for line in effects_of(effects) if line.startswith("adopted")).values()) == 1
    assert open_steps(watch) == ()
    nothing_lives(watch)


# -- death at random


@pytest.mark.guarantee("K5", "K6", "K23", "K33", "K35")
@pytest.mark.parametrize("seed", range(3))
def test_supervisors_and_programs_are_killed_at_random_until_the_work_is_done(seed, tmp_path):
    chance = random.Random(seed)
    effects = tmp_path / "effects"
    plan = tuple(
        toy.step(f"{how.value}-{turn}", recovery=how, once=str(effects), sleep_s=0.25)
        for turn in range(2)
        for _, how in PLAN
    )
    watch = toy.make(tmp_path, plan)
    began = time.monotonic()
    for _ in range(12):
        process = supervise(watch)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.15, 1.0))
        _kill_some(chance, process, watch)
        if process.wait(30) == 0:
            break
        kinds_of(watch)
    assert toy.supervisor(watch).run() is ExitCode.OK
    wall_s = time.monotonic() - began
    assert sorted(toy.state(watch).done) == sorted(step.id for step in plan)
    _each_effect_as_promised(watch, effects_of(effects))
    with reading(watch) as store:
        assert 8 * 0.2 < store.active_s() <= wall_s + 0.1, "one after another: never more than the wall clock"
        generations = [event.generation for event in store.events()]
    assert generations == sorted(generations)
    nothing_lives(watch)


def _kill_some(chance: random.Random, process: "subprocess.Popen[bytes]", watch: Watch) -> None:
    victims = chance.choice(
        [("supervisor",), ("program",), ("supervisor", "program"), ("program", "supervisor")]
    )
    for victim in victims:
        if victim == "supervisor":
            process.kill()
            process.wait()
        else:
            for left in open_steps(watch):
                # A step that died too often is given up, and that is another test's story.
                if left.identity is not None and left.runs < 3 and alive(left.identity):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(left.identity.pid, signal.SIGKILL)
    if victims == ("program",):
        process.kill()


def _each_effect_as_promised(watch: Watch, effects: list[str]) -> None:
    outcomes = toy.state(watch).outcomes
    for name, count in names_of(effects).items():
        if name.startswith("confirm"):
            assert count == 1, effects
        elif name.startswith("adopt"):
            assert count <= 1 + outcomes.count(f"{name}:lost"), effects
    for name in toy.state(watch).done:
        assert names_of(effects)[name] >= 1
        assert outcomes.count(f"{name}:succeeded") == 1, "an outcome is counted once"


@pytest.mark.guarantee("K6", "K26")
def test_a_confirmation_that_gets_no_answer_needs_a_person_and_is_never_taken_for_a_failure(
    tmp_path, monkeypatch
):
    effects = tmp_path / "effects"
    watch = toy.make(tmp_path, (toy.step("asked", "die", recovery=Recovery.CONFIRM, once=str(effects)),))
    line = toy.ToyLine(tmp_path)
    job = line.job
    # The program that asks dies like the program that did it.
    monkeypatch.setattr(line, "job", lambda step, confirm: job(step, confirm=False))
    assert toy.supervisor(watch, line).run() is ExitCode.NEEDS_RECONCILE
    assert toy.state(watch).outcomes == ()
    assert kinds_of(watch).count("step.started") == 1
    assert set(effects_of(effects)) == {"asked.0"}


@pytest.mark.guarantee("K6", "K17")
def test_a_confirmable_step_past_its_time_is_asked_about(tmp_path):
    effects = tmp_path / "effects"
    step = toy.step("slow", "deaf", recovery=Recovery.CONFIRM, once=str(effects), sleep_s=600)
    watch = toy.make(tmp_path, (step,))
    line = toy.ToyLine(tmp_path, wall_s=1.0, grace_s=0.2)
    assert toy.supervisor(watch, line).run() is ExitCode.OK
    assert toy.state(watch).outcomes == ("slow:succeeded",)
    assert effects_of(effects) == ["slow.0"]


# -- two at once


@pytest.mark.guarantee("K1", "K5")
def test_of_two_supervisors_at_once_one_works_and_the_other_is_refused(tmp_path):
    effects = tmp_path / "effects"
    watch = toy.make(tmp_path, tuple(toy.step(f"toy-{n}", once=str(effects), sleep_s=0.1) for n in range(4)))
    both = [
        subprocess.Popen([sys.executable, *SUPERVISE, str(tmp_path)], cwd=toy.PROJECT, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    if codes == [0, 0]:
        assert kinds_of(watch).count("supervisor.began") == 2, "the second came when the first had ended"
    else:
        assert codes == [0, 1], said
        assert b"LeaseHeldError" in b"".join(said)
    assert names_of(effects_of(effects)) == {f"toy-{n}": 1 for n in range(4)}


@pytest.mark.guarantee("K1", "K5")
def test_a_supervisor_that_lost_its_watch_writes_nothing_more(tmp_path):
    """Whoever deletes the lease file can start a second one: the generation stops the first."""
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=600),))
    first = subprocess.Popen(
        [sys.executable, *SUPERVISE, str(tmp_path)], cwd=toy.PROJECT, stderr=subprocess.PIPE
    )
    until(lambda: any(watch.steps.glob("*/progress.json")))
    with pytest.raises(LeaseHeldError):
        lease.acquire(watch.lease)
    store = Store.open(watch.database)
    store.begin_generation(Note("supervisor.began", "A thief."))
    store.close()
    _, said = first.communicate(timeout=60)
    assert first.returncode == 1
    assert b"generation 1 no longer owns this watch: 2 does" in said
    assert kinds_of(watch)[-1] == "supervisor.began"
    ask(watch, Verb.STOP)
    assert toy.supervisor(watch).run() is ExitCode.OK
    nothing_lives(watch)
