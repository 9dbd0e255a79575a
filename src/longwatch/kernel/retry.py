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
    FailureClass.BUDGET: GiveUp(Verdict.EXHAUSTED, "a budget is spent: raise it to go on"),
    FailureClass.INTERRUPTED: GiveUp(Verdict.NEEDS_RECONCILE, "nobody knows how far it got"),
}


def decide(
    kind: FailureClass,
    *,
    failures: int,
    alike: int,
    parked_s: float,
    parking_s: float,
    retry_after_s: float | None,
    policy: Backoff,
) -> RetryDecision:
    """Return what to do after the `failures`-th failure in a row, the `alike`-th of its class; both at least 1.

    `parking_s` is what is left of a wait for a usage limit that is on: only what goes beyond it is parked anew.
    """
    if kind in FINAL:
        return FINAL[kind]
    if kind is FailureClass.QUOTA:
        return _parked(parked_s, parking_s, retry_after_s, policy)
    name = "max_transients" if kind is FailureClass.TRANSIENT else "max_faults"
    most = getattr(policy, name)
    if most and alike >= most:
        return GiveUp(Verdict.BLOCKED, f"{alike} failures in a row, and backoff.{name} is {most}")
    return Retry(backoff_s(failures, policy) if retry_after_s is None else retry_after_s)


def backoff_s(failures: int, policy: Backoff) -> float:
    """Return `first_s` x 2^(failures-1), at most `max_s`."""
    doublings = min(max(failures - 1, 0), 64)
    return float(min(policy.first_s * 2.0**doublings, policy.max_s))


def _parked(parked_s: float, parking_s: float, retry_after_s: float | None, policy: Backoff) -> RetryDecision:
    if not policy.park_for_quota:
        return GiveUp(
            Verdict.EXHAUSTED,
            "backoff.park_for_quota is off: run the watch again then, or switch it on to have it wait by itself",
        )
    delay_s = policy.max_s if retry_after_s is None else retry_after_s
    more_s = max(delay_s - parking_s, 0.0)
    if parked_s + more_s > policy.max_park_s:
        return GiveUp(
            Verdict.EXHAUSTED,
            f"to wait {more_s:.0f} s more is too long: {parked_s:.0f} s of backoff.max_park_s = "
            f"{policy.max_park_s:.0f} are used. Run the watch again then, or raise it",
        )
    return Retry(delay_s, parked=True)
