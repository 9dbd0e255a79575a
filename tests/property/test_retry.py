"""Retry decisions and what follows a failure, under any numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel import control
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.lifecycle import Lifecycle
from longwatch.kernel.line import Failure
from longwatch.kernel.retry import FINAL, GiveUp, Retry, decide
from longwatch.kernel.settings import Backoff

SECONDS = st.floats(0, 1e7, allow_nan=False)
POLICIES = st.builds(
    Backoff,
    first_s=SECONDS,
    max_s=SECONDS,
    max_faults=st.integers(0, 10),
    max_transients=st.integers(0, 10),
    park_for_quota=st.booleans(),
    max_park_s=SECONDS,
)
CLASSES = st.sampled_from(FailureClass)
AFTER = st.none() | SECONDS
NOW = Instant(wall_s=1e9, boottime_s=5.0, monotonic_s=4.0, boot_id="one")


@pytest.mark.guarantee("K26", "K27")
@given(CLASSES, st.integers(1, 10**12), SECONDS, AFTER, POLICIES)
def test_a_delay_is_the_providers_or_within_the_policy(kind, failures, parked_s, retry_after_s, policy):
    decision = decide(
        kind,
        failures=failures,
        alike=failures,
        parked_s=parked_s,
        parking_s=0.0,
        retry_after_s=retry_after_s,
        policy=policy,
    )
    if kind in FINAL:
        assert decision == FINAL[kind]
    if isinstance(decision, Retry):
        assert decision.delay_s >= 0
        assert (
            decision.delay_s == retry_after_s
            if retry_after_s is not None
            else decision.delay_s <= policy.max_s
        )
        assert decision.parked == (kind is FailureClass.QUOTA)
    else:
        assert decision.why


def at(seconds: float) -> Instant:
    """A moment on the same boot."""
    return Instant(
        wall_s=NOW.wall_s + seconds,
        boottime_s=NOW.boottime_s + seconds,
        monotonic_s=NOW.monotonic_s + seconds,
        boot_id=NOW.boot_id,
    )


def after(life: Lifecycle, kind: FailureClass, retry_after_s: float | None, policy: Backoff, when: Instant):
    failure = Failure(kind=kind, message="why it failed", retry_after_s=retry_after_s)
    return control.after_failure(life, "a step", failure, policy, when)


@pytest.mark.guarantee("K26")
@given(st.lists(st.tuples(SECONDS, AFTER), max_size=30), POLICIES)
def test_all_parking_together_stays_within_its_total(limits, policy):
    life, now_s = Lifecycle(), 0.0
    for later_s, retry_after_s in limits:
        now_s += later_s
        life, note = after(life, FailureClass.QUOTA, retry_after_s, policy, at(now_s))
        assert note.data["class"] == "quota"
        if life.halt is not None:
            break
    assert life.parked_s <= policy.max_park_s * (1 + 1e-9)
    assert policy.park_for_quota or not limits or life.halt is not None
    assert life.failures == 0, "a usage limit has a bound of its own"


@pytest.mark.guarantee("K26", "K27")
@given(CLASSES, st.integers(0, 20), st.integers(0, 20), AFTER, POLICIES)
def test_a_failure_either_halts_or_waits(kind, failures, faults, retry_after_s, policy):
    before = Lifecycle(failures=failures, faults=min(failures, faults))
    life, note = after(before, kind, retry_after_s, policy, NOW)
    assert (life.halt is None) != (life.wait is None)
    assert life.failures == failures + (kind is not FailureClass.QUOTA)
    assert 0 <= life.faults <= life.failures or not life.failures
    assert "why it failed" in note.text
    shown = life.halt.reason if life.halt else life.reason
    assert "a step" in shown
    assert "why it failed" in shown


WAITS = Backoff(first_s=30.0, max_s=900.0, park_for_quota=True, max_park_s=1e9)
WAITED = st.sampled_from([FailureClass.TRANSIENT, FailureClass.FAULT, FailureClass.QUOTA])
WHOLE = st.integers(0, 5000).map(float)
"""Whole seconds, so that sums are exact."""


def end_s(deadline: Deadline | None) -> float:
    return 0.0 if deadline is None else deadline.since.boottime_s - NOW.boottime_s + deadline.delay_s


@pytest.mark.guarantee("K26", "M37")
@given(st.lists(st.tuples(WHOLE, WHOLE.filter(bool)), min_size=1, max_size=12))
def test_parked_seconds_are_the_length_of_the_union_of_waits_for_usage_limits(limits):
    life, now_s, seen = Lifecycle(), 0.0, set()
    for later_s, retry_after_s in limits:
        now_s += later_s
        life, _ = after(life, FailureClass.QUOTA, retry_after_s, WAITS, at(now_s))
        seen |= set(range(int(now_s), int(now_s + retry_after_s)))
    assert life.parked_s == len(seen)
    assert end_s(life.wait) == max(seen) + 1


@pytest.mark.guarantee("K26", "K27", "M37")
@given(st.lists(st.tuples(WAITED, WHOLE.filter(bool)), min_size=1, max_size=6), st.randoms())
def test_the_order_of_failures_of_one_trouble_does_not_matter(failed, chance):
    """All at the same moment: the wait is the longest of them, and no more than one failure is counted."""

    def run(order):
        life = Lifecycle()
        for kind, retry_after_s in order:
            life, _ = after(life, kind, retry_after_s, WAITS, NOW)
        return life

    life, other = run(failed), run(chance.sample(failed, len(failed)))
    assert end_s(life.wait) == end_s(other.wait) == max(wait_s for _, wait_s in failed)
    assert life.parked_s == other.parked_s
    assert max(life.failures, other.failures) <= 1


@pytest.mark.guarantee("K26", "M37")
@given(st.lists(st.floats(0, 29.9), min_size=1, max_size=8).map(sorted))
def test_failures_while_a_wait_is_on_count_once(moments):
    policy = Backoff(first_s=30.0, max_transients=2)
    life = Lifecycle()
    for moment_s in moments:
        life, _ = after(life, FailureClass.TRANSIENT, None, policy, at(moment_s))
    assert (life.failures, life.halt) == (1, None)
    assert end_s(life.wait) <= moments[-1] + 30.0 + 1e-6
    life, _ = after(life, FailureClass.TRANSIENT, None, policy, at(60.0))
    assert life.halt is not None, "the next trouble is another one"


@given(st.integers(1, 200), st.integers(1, 200))
def test_more_failures_never_wait_less(one, other):
    def delay(failures):
        decision = decide(
            FailureClass.TRANSIENT,
            failures=failures,
            alike=failures,
            parked_s=0,
            parking_s=0,
            retry_after_s=None,
            policy=Backoff(),
        )
        assert not isinstance(decision, GiveUp)
        return decision.delay_s

    assert (delay(one) <= delay(other)) or one > other
