"""What follows a failure, as a value. Pure: the class of the failure, the history and the policy decide.

The table of specification K26 and the back-off of K27 stand here and nowhere else.
"""

import msgspec

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.settings import Backoff


class Retry(msgspec.Struct, frozen=True):
    """Wait so long, then go on."""

    delay_s: float
    parked: bool = False
    """The time counts against the total for usage limits."""


class GiveUp(msgspec.Struct, frozen=True):
    """No retry helps."""

    verdict: Verdict
    why: str


RetryDecision = Retry | GiveUp

FINAL: dict[FailureClass, GiveUp] = {
    FailureClass.INTEGRITY: GiveUp(Verdict.BLOCKED, "something that was bound by digest is not what it was"),
    FailureClass.AUTH: GiveUp(Verdict.BLOCKED, "credentials are missing or refused"),
    FailureClass.BUDGET: GiveUp(Verdict.EXHAUSTED, "a budget is spent"),
    FailureClass.INTERRUPTED: GiveUp(Verdict.NEEDS_RECONCILE, "nobody knows how far it got"),
}


def decide(
    kind: FailureClass, *, failures: int, parked_s: float, retry_after_s: float | None, policy: Backoff
) -> RetryDecision:
    """Return what to do after the `failures`-th failure in a row (this one included, so at least 1)."""
    if kind in FINAL:
        return FINAL[kind]
    if kind is FailureClass.QUOTA:
        return _parked(parked_s, retry_after_s, policy)
    most = policy.max_transients if kind is FailureClass.TRANSIENT else policy.max_faults
    if most and failures >= most:
        return GiveUp(Verdict.BLOCKED, f"{failures} failures in a row")
    return Retry(backoff_s(failures, policy) if retry_after_s is None else retry_after_s)


def backoff_s(failures: int, policy: Backoff) -> float:
    """Return `first_s` x 2^(failures-1), at most `max_s`."""
    doublings = min(max(failures - 1, 0), 64)
    return float(min(policy.first_s * 2.0**doublings, policy.max_s))


def _parked(parked_s: float, retry_after_s: float | None, policy: Backoff) -> RetryDecision:
    if not policy.park_for_quota:
        return GiveUp(Verdict.EXHAUSTED, "a usage limit was reached and backoff.park_for_quota is off")
    delay_s = policy.max_s if retry_after_s is None else retry_after_s
    if parked_s + delay_s > policy.max_park_s:
        return GiveUp(
            Verdict.EXHAUSTED,
            f"a usage limit would take {delay_s:.0f} s more, and {parked_s:.0f} s of backoff.max_park_s are used",
        )
    return Retry(delay_s, parked=True)
