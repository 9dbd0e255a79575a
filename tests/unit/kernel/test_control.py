"""What failures mean for the lifecycle, alone and side by side (specification K26, K27)."""

import msgspec
import pytest

from longwatch.kernel import control, lifecycle
from longwatch.kernel.errors import FailureClass as Class
from longwatch.kernel.instant import Instant
from longwatch.kernel.lifecycle import Event, Halt, Lifecycle, Phase, Verdict
from longwatch.kernel.line import Failure
from longwatch.kernel.settings import Backoff

PARKS = Backoff(park_for_quota=True, max_park_s=10_000.0)


def at(seconds, boot_id="one"):
    return Instant(wall_s=1.8e9 + seconds, boottime_s=seconds, monotonic_s=seconds, boot_id=boot_id)


def failed(life, kind, retry_after_s=None, when=0.0, policy=PARKS):
    failure = Failure(kind=kind, message="it failed", retry_after_s=retry_after_s)
    return control.after_failure(life, "a: attempt 1", failure, policy, at(when))[0]


def row(life, *kinds):
    """Failures one after another, each after the wait of the one before."""
    for number, kind in enumerate(kinds):
        life = failed(life, kind, when=1e6 * (number + 1))
    return life


@pytest.mark.guarantee("K26")
def test_a_fault_after_a_long_outage_does_not_block():
    life = row(Lifecycle(), *[Class.TRANSIENT] * 40, *[Class.FAULT] * 5)
    assert (life.failures, life.faults, life.halt) == (45, 5, None)
    blocked = failed(life, Class.FAULT, when=1e9)
    assert blocked.halt is not None
    assert blocked.halt.verdict is Verdict.BLOCKED
    assert "(6 failures in a row, and backoff.max_faults is 6)" in blocked.halt.reason


@pytest.mark.guarantee("K26", "K13")
def test_the_faults_of_an_earlier_row_do_not_count():
    life = row(Lifecycle(), *[Class.FAULT] * 5)
    life = msgspec.structs.replace(life, failures=0, wait=None, trouble=None)
    assert row(life, Class.FAULT).faults == 1
    assert row(life, Class.TRANSIENT, Class.FAULT).faults == 1


@pytest.mark.guarantee("K26")
def test_a_usage_limit_says_when_it_lifts_and_what_to_do():
    life = failed(Lifecycle(), Class.QUOTA, 7200.0, policy=Backoff())
    assert life.halt == Halt(
        Verdict.EXHAUSTED,
        "a: attempt 1: it failed (the usage limit lifts at 2027-01-15 10:00 UTC; backoff.park_for_quota is off: "
        "run the watch again then, or switch it on to have it wait by itself)",
    )
    unknown = failed(Lifecycle(), Class.QUOTA, policy=Backoff())
    assert "nobody says when the usage limit lifts" in unknown.halt.reason
    long = failed(Lifecycle(parked_s=9000.0), Class.QUOTA, 7200.0)
    assert "lifts at 2027-01-15 10:00 UTC; to wait 7200 s more is too long: 9000 s of" in long.halt.reason


@pytest.mark.guarantee("K26", "M37")
def test_a_longer_wait_of_the_same_trouble_replaces_a_shorter_one_and_no_shorter_one_a_longer():
    life = failed(Lifecycle(), Class.TRANSIENT)
    longer = failed(life, Class.QUOTA, 3600.0, when=10.0)
    assert (longer.failures, longer.parked_s, longer.reason[:6]) == (1, 3600.0, "quota:")
    assert failed(longer, Class.TRANSIENT, when=20.0) == longer
    assert failed(longer, Class.FAULT, when=20.0) == longer


@pytest.mark.guarantee("K26", "M37")
@pytest.mark.parametrize("kinds", [(Class.INTEGRITY, Class.QUOTA), (Class.QUOTA, Class.INTEGRITY)])
def test_of_two_ends_the_graver_stays(kinds):
    """A usage limit ends by itself with the next run; what a person has to look at must not."""
    life = Lifecycle()
    for kind in kinds:
        life = failed(life, kind, policy=Backoff())
    assert life.halt.verdict is Verdict.BLOCKED
    assert "bound by digest" in life.halt.reason


@pytest.mark.guarantee("K26")
def test_a_wait_for_a_usage_limit_that_is_cut_is_given_back():
    life = failed(Lifecycle(parked_s=100.0), Class.QUOTA, 3600.0)
    assert life.parked_s == 3700.0
    assert control.unparked(life, at(600.0)).parked_s == 700.0
    assert control.unparked(life, at(600.0, boot_id="two")).parked_s == 700.0
    assert control.unparked(life, at(9999.0)).parked_s == 3700.0
    given_back = control.unparked(life, at(0.0))
    assert control.unparked(given_back, at(0.0)).parked_s == 100.0
    assert failed(given_back, Class.QUOTA, 60.0, when=1.0).parked_s == 160.0


@pytest.mark.guarantee("K13", "K27")
@pytest.mark.parametrize("event", [Event.PAUSE, Event.STOP, Event.RESUME, Event.DUE])
def test_what_cuts_a_wait_ends_its_trouble(event):
    life = msgspec.structs.replace(failed(Lifecycle(), Class.TRANSIENT), phase=Phase.WAITING)
    moved = lifecycle.move(life, event)
    assert (moved.wait, moved.trouble) == (None, None)
    assert failed(moved, Class.TRANSIENT, when=1.0).failures == 2
