"""Retry decisions and what follows a failure, under any numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel import control
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.instant import Instant
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
    decision = decide(kind, failures=failures, parked_s=parked_s, retry_after_s=retry_after_s, policy=policy)
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


@pytest.mark.guarantee("K26")
@given(st.lists(AFTER, max_size=30), POLICIES)
def test_all_parking_together_stays_within_its_total(resets, policy):
    life = Lifecycle()
    for retry_after_s in resets:
        failure = Failure(kind=FailureClass.QUOTA, message="limit", retry_after_s=retry_after_s)
        life, note = control.after_failure(life, "step", failure, policy, NOW)
        assert note.data["class"] == "quota"
        if life.halt is not None:
            break
    assert life.parked_s <= policy.max_park_s
    assert policy.park_for_quota or not resets or life.halt is not None


@pytest.mark.guarantee("K26", "K27")
@given(CLASSES, st.integers(0, 20), AFTER, POLICIES)
def test_a_failure_either_halts_or_waits(kind, failures, retry_after_s, policy):
    failure = Failure(kind=kind, message="why it failed", retry_after_s=retry_after_s)
    life, note = control.after_failure(Lifecycle(failures=failures), "a step", failure, policy, NOW)
    assert (life.halt is None) != (life.wait is None)
    assert life.failures == failures + 1
    assert "why it failed" in note.text
    shown = life.halt.reason if life.halt else life.reason
    assert "a step" in shown
    assert "why it failed" in shown


@given(st.integers(1, 200), st.integers(1, 200))
def test_more_failures_never_wait_less(one, other):
    def delay(failures):
        decision = decide(
            FailureClass.TRANSIENT, failures=failures, parked_s=0, retry_after_s=None, policy=Backoff()
        )
        assert not isinstance(decision, GiveUp)
        return decision.delay_s

    assert (delay(one) <= delay(other)) or one > other
