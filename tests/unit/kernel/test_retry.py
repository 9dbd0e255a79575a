"""Retry decisions as a table of numbers (specification K26, K27)."""

import pytest

from longwatch.kernel.errors import FailureClass as Class
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.retry import GiveUp, Retry, backoff_s, decide
from longwatch.kernel.settings import Backoff

DEFAULT = Backoff()
PARKS = Backoff(park_for_quota=True, max_park_s=10_000.0)


def decided(kind, failures=1, parked_s=0.0, retry_after_s=None, policy=DEFAULT, *, alike=None, parking_s=0.0):
    return decide(
        kind,
        failures=failures,
        alike=failures if alike is None else alike,
        parked_s=parked_s,
        parking_s=parking_s,
        retry_after_s=retry_after_s,
        policy=policy,
    )


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize(
    ("failures", "delay_s"),
    [(1, 30), (2, 60), (3, 120), (4, 240), (5, 480), (6, 900), (7, 900), (1000, 900), (10**9, 900)],
)
def test_backoff_doubles_from_thirty_seconds_to_fifteen_minutes(failures, delay_s):
    assert backoff_s(failures, DEFAULT) == delay_s
    assert decided(Class.TRANSIENT, failures) == Retry(delay_s)


@pytest.mark.guarantee("K27")
def test_backoff_is_configurable():
    policy = Backoff(first_s=2.0, max_s=5.0)
    assert [backoff_s(failures, policy) for failures in (1, 2, 3, 4)] == [2.0, 4.0, 5.0, 5.0]


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize("kind", [Class.TRANSIENT, Class.FAULT])
@pytest.mark.parametrize("retry_after_s", [0.0, 1.0, 86_400.0])
def test_the_providers_own_word_wins(kind, retry_after_s):
    assert decided(kind, 3, retry_after_s=retry_after_s) == Retry(retry_after_s)


@pytest.mark.guarantee("K26")
@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (Class.INTEGRITY, Verdict.BLOCKED),
        (Class.AUTH, Verdict.BLOCKED),
        (Class.BUDGET, Verdict.EXHAUSTED),
        (Class.INTERRUPTED, Verdict.NEEDS_RECONCILE),
    ],
)
@pytest.mark.parametrize("retry_after_s", [None, 1.0])
def test_classes_that_no_retry_helps(kind, verdict, retry_after_s):
    decision = decided(kind, retry_after_s=retry_after_s, policy=Backoff(max_faults=0, park_for_quota=True))
    assert isinstance(decision, GiveUp)
    assert decision.verdict is verdict


@pytest.mark.guarantee("K26")
def test_faults_block_at_the_sixth_in_a_row():
    assert [type(decided(Class.FAULT, failures)) for failures in range(1, 8)] == [Retry] * 5 + [GiveUp] * 2
    assert decided(Class.FAULT, 6) == GiveUp(
        Verdict.BLOCKED, "6 failures in a row, and backoff.max_faults is 6"
    )
    assert isinstance(decided(Class.FAULT, 6, retry_after_s=1.0), GiveUp)
    assert isinstance(decided(Class.FAULT, 6, policy=Backoff(max_faults=7)), Retry)


@pytest.mark.guarantee("K26")
def test_transients_never_block_unless_configured():
    assert decided(Class.TRANSIENT, 10_000) == Retry(900.0)
    assert decided(Class.TRANSIENT, 3, policy=Backoff(max_transients=3)) == GiveUp(
        Verdict.BLOCKED, "3 failures in a row, and backoff.max_transients is 3"
    )
    assert decided(Class.TRANSIENT, 2, policy=Backoff(max_transients=3)) == Retry(60.0)


@pytest.mark.guarantee("K26")
def test_a_fault_after_a_long_outage_is_the_first_of_its_kind():
    assert decided(Class.FAULT, 51, alike=1) == Retry(900.0)
    assert isinstance(decided(Class.FAULT, 51, alike=6), GiveUp)
    assert decided(Class.TRANSIENT, 9, alike=2, policy=Backoff(max_transients=3)) == Retry(900.0)


@pytest.mark.guarantee("K26")
@pytest.mark.parametrize(
    ("parked_s", "retry_after_s", "expected"),
    [
        (0.0, 3600.0, Retry(3600.0, parked=True)),
        (0.0, 10_000.0, Retry(10_000.0, parked=True)),
        (0.0, 10_000.5, None),
        (6400.0, 3600.0, Retry(3600.0, parked=True)),
        (6401.0, 3600.0, None),
        (0.0, None, Retry(900.0, parked=True)),
        (9_500.0, None, None),
    ],
)
def test_parking_for_a_usage_limit_is_bounded_in_sum(parked_s, retry_after_s, expected):
    decision = decided(Class.QUOTA, 50, parked_s, retry_after_s, PARKS)
    if expected is None:
        assert isinstance(decision, GiveUp)
        assert decision.verdict is Verdict.EXHAUSTED
        assert "backoff.max_park_s" in decision.why
    else:
        assert decision == expected


@pytest.mark.guarantee("K26")
def test_only_what_goes_beyond_the_wait_that_is_on_is_parked_anew():
    assert decided(Class.QUOTA, 1, 9_000.0, 3600.0, PARKS, parking_s=2600.0) == Retry(3600.0, parked=True)
    assert isinstance(decided(Class.QUOTA, 1, 9_000.0, 3600.0, PARKS, parking_s=2599.0), GiveUp)
    assert decided(Class.QUOTA, 1, 10_000.0, 3600.0, PARKS, parking_s=3600.0) == Retry(3600.0, parked=True)


@pytest.mark.guarantee("K26")
def test_a_usage_limit_is_not_waited_for_unless_the_config_allows():
    decision = decided(Class.QUOTA, retry_after_s=1.0)
    assert isinstance(decision, GiveUp)
    assert decision.verdict is Verdict.EXHAUSTED
    assert decision.why.startswith("backoff.park_for_quota is off")
