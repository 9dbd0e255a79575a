"""Waiting for a usage limit: over kill -9, reboots and a person's wishes."""

import signal
from pathlib import Path

import msgspec
import pytest
from tests.support import toy
from tests.support.watching import ask, effects_of, kinds_of, life_of, nothing_lives, supervise, until

from longwatch.kernel.clock import now
from longwatch.kernel.errors import ExitCode
from longwatch.kernel.instant import Instant, remaining_s
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Phase, ends
from longwatch.kernel.request import Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

LIMIT_S = 3600.0


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def effects(watch: Watch) -> list[str]:
    return effects_of(watch.root / "effects")


@pytest.fixture
def parked(tmp_path: Path) -> Watch:
    """A watch whose supervisor was killed while it waited for the limit of its first step."""
    watch = toy.make(tmp_path, (toy.step("used", "limited", once=str(tmp_path / "effects")),))
    kill_when_waiting(watch)
    life = life_of(watch)
    assert (life.phase, life.parked_s, life.failures) == (Phase.WAITING, LIMIT_S, 0)
    assert "quota: used.0: the toy is used up" in life.reason
    return watch


def kill_when_waiting(watch: Watch) -> None:
    begun = kinds_of(watch).count("watch.begun")
    process = supervise(watch)
    until(
        lambda: kinds_of(watch).count("watch.begun") > begun and life_of(watch).phase is Phase.WAITING,
    )
    process.kill()
    process.wait()


def booted(watch: Watch, ago_s: float) -> None:
    """Make the wait one that another boot of the machine began so long ago."""
    life = life_of(watch)
    since = Instant(wall_s=now().wall_s - ago_s, boottime_s=9e9, monotonic_s=9e9, boot_id="another boot")
    moved = {
        name: msgspec.structs.replace(getattr(life, name), since=since)
        for name in ("wait", "trouble", "parking")
    }
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "A test."))
    store.commit(generation, lifecycle=msgspec.structs.replace(life, **moved))
    store.close()


@pytest.mark.guarantee("K26", "K27")
def test_a_deadline_is_neither_forgotten_nor_started_again(parked: Watch) -> None:
    before = life_of(parked)
    kill_when_waiting(parked)
    assert (life_of(parked).wait, life_of(parked).parked_s) == (before.wait, LIMIT_S)
    booted(parked, 600.0)
    kill_when_waiting(parked)
    rebased = life_of(parked).wait
    assert rebased is not None
    assert rebased.since.boot_id == now().boot_id
    assert LIMIT_S - 660 < remaining_s(rebased, now()) <= LIMIT_S - 600
    assert len(effects(parked)) == 1
    booted(parked, LIMIT_S - 0.5)
    assert toy.supervisor(parked).run() is ExitCode.OK
    assert (toy.state(parked).done, len(effects(parked))) == (("used",), 2)
    assert life_of(parked).parked_s == LIMIT_S, "waiting on is not paid for twice"
    nothing_lives(parked)


@pytest.mark.guarantee("K12", "K13", "K26", "K27")
@pytest.mark.parametrize(("verb", "phase"), [(Verb.PAUSE, Phase.PAUSED), (Verb.STOP, Phase.STOPPED)])
def test_a_pause_in_a_wait_stays_a_pause_and_resume_ends_the_wait(
    parked: Watch, verb: Verb, phase: Phase
) -> None:
    ask(parked, verb)
    for _ in range(2):
        assert toy.supervisor(parked).run() is ExitCode.OK
        life = life_of(parked)
        assert (life.phase, life.wait, len(effects(parked))) == (phase, None, 1)
        assert life.parked_s < 60, "what was not waited is given back"
    ask(parked, Verb.RESUME)
    assert toy.supervisor(parked).run() is ExitCode.OK
    assert (toy.state(parked).done, len(effects(parked))) == (("used",), 2)


@pytest.mark.guarantee("K13", "K26")
def test_resume_ends_a_wait_that_goes_on(parked: Watch) -> None:
    process = supervise(parked)
    until(lambda: kinds_of(parked).count("watch.begun") == 2)
    assert len(effects(parked)) == 1
    ask(parked, Verb.RESUME)
    assert process.wait(30) == 0
    assert len(effects(parked)) == 2
    assert life_of(parked).phase is Phase.COMPLETE
    assert life_of(parked).parked_s < 60


@pytest.mark.guarantee("K15", "K27")
def test_a_run_that_does_not_wait_ends_where_it_would_and_says_so_in_the_log(parked: Watch) -> None:
    before = life_of(parked)
    for _ in range(2):
        assert toy.supervisor(parked).run(ends=ends(stay=False, waits=False)) is ExitCode.NOT_READY
        assert kinds_of(parked)[-1] == "supervisor.ended"
    assert (life_of(parked).phase, life_of(parked).wait, len(effects(parked))) == (
        Phase.WAITING,
        before.wait,
        1,
    )
    ask(parked, Verb.RESUME)
    assert toy.supervisor(parked).run(ends=ends(stay=False, waits=False)) is ExitCode.OK
    assert toy.state(parked).done == ("used",)
