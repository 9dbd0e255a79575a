"""What a request or a failure means for the lifecycle. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from longwatch.kernel import retry
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.instant import Deadline, Instant, remaining_s
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import HELD, Desired, Event, Halt, Lifecycle, Phase, Verdict
from longwatch.kernel.line import Failure
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.retry import GiveUp, Retry
from longwatch.kernel.settings import Backoff

_DESIRED = {Verb.PAUSE: Desired.PAUSE, Verb.RESUME: Desired.RUN, Verb.STOP: Desired.STOP}
_GRAVITY = (Verdict.COMPLETE, Verdict.EXHAUSTED, Verdict.BLOCKED, Verdict.NEEDS_RECONCILE)
_EVENTS = {Verb.PAUSE: Event.PAUSE, Verb.RESUME: Event.RESUME, Verb.STOP: Event.STOP}


def event_of(request: Request, phase: Phase) -> Event:
    """Return the event that a request is in this phase: `resume --accept` means more only where a person must look."""
    if request.verb is Verb.RESUME and request.accept and phase in HELD:
        return Event.ACCEPT
    return _EVENTS[request.verb]


def obeyed(life: Lifecycle, seq: int, request: Request) -> Lifecycle:
    """Return the lifecycle after a request that the table allowed. `resume` forgets failures (specification K13)."""
    failures = 0 if request.verb is Verb.RESUME else life.failures
    return msgspec.structs.replace(life, obeyed=seq, desired=_DESIRED[request.verb], failures=failures)


def lets_finish(requests: Iterable[tuple[int, Request]], life: Lifecycle) -> bool:
    """Return whether the newest pause that was obeyed lets running steps finish first."""
    pauses = [asked for seq, asked in requests if seq <= life.obeyed and asked.verb is Verb.PAUSE]
    return life.phase is Phase.PAUSING and bool(pauses) and pauses[-1].after_step


def after_failure(
    life: Lifecycle, title: str, failure: Failure, policy: Backoff, moment: Instant, *, opens: bool = False
) -> tuple[Lifecycle, Note]:
    """Return the lifecycle after a step failed, and the event that explains it.

    Where a step failed that `opens` a piece of work, only new pieces wait: what is in hand goes on.

    Steps that ran side by side fail of the same trouble: until the wait that it began is over, no further failure is
    counted, and the wait becomes the longest that any of them asks for.
    """
    standing_s = _left_s(life.trouble, moment)
    life = life if standing_s > 0 else _counted(life, failure.kind)
    decision = retry.decide(
        failure.kind,
        failures=max(life.failures, 1),
        alike=max(_alike(life, failure.kind), 1),
        parked_s=life.parked_s,
        parking_s=_left_s(life.parking, moment),
        retry_after_s=failure.retry_after_s,
        policy=policy,
    )
    text = f"{title}: {failure.message}"
    data: dict[str, str | int | float | bool | None] = {
        "class": failure.kind.value,
        "failures": life.failures,
    }
    if isinstance(decision, GiveUp):
        halt = Halt(decision.verdict, f"{text} ({_lifts(failure, moment)}{decision.why})")
        halted = msgspec.structs.replace(life, halt=_graver(life.halt, halt))
        return halted, Note("step.failed", text, data)
    note = Note("step.failed", text, {**data, "retry_in_s": max(decision.delay_s, standing_s)})
    waiting = _waiting(life, decision, f"{failure.kind}: {text}", moment)
    only_new = opens and (life.only_new or standing_s <= 0)
    return msgspec.structs.replace(waiting, only_new=only_new), note


def _waiting(life: Lifecycle, decision: Retry, reason: str, moment: Instant) -> Lifecycle:
    until = Deadline(since=moment, delay_s=decision.delay_s)
    standing_s, parking_s = _left_s(life.trouble, moment), _left_s(life.parking, moment)
    if decision.parked and decision.delay_s > parking_s:
        parked_s = life.parked_s + decision.delay_s - parking_s
        life = msgspec.structs.replace(life, parked_s=parked_s, parking=until)
    if 0 < standing_s >= decision.delay_s:
        return life
    return msgspec.structs.replace(life, wait=until, trouble=until, reason=reason)


def unparked(life: Lifecycle, moment: Instant) -> Lifecycle:
    """Return the lifecycle before its wait is cut: what is left of a wait for a usage limit was never waited."""
    parked_s = max(life.parked_s - _left_s(life.parking, moment), 0.0)
    return msgspec.structs.replace(life, parked_s=parked_s, parking=None)


def _counted(life: Lifecycle, kind: FailureClass) -> Lifecycle:
    """Count one more failure in the row."""
    if kind is FailureClass.QUOTA:
        return life
    faults = _faults(life) + (kind is FailureClass.FAULT)
    return msgspec.structs.replace(life, failures=life.failures + 1, faults=faults)


def _alike(life: Lifecycle, kind: FailureClass) -> int:
    return _faults(life) if kind is FailureClass.FAULT else life.failures - _faults(life)


def _faults(life: Lifecycle) -> int:
    """Where a row begins anew, so do the faults in it."""
    return life.faults if life.failures else 0


def _left_s(deadline: Deadline | None, moment: Instant) -> float:
    return 0.0 if deadline is None else remaining_s(deadline, moment)


def _graver(standing: Halt | None, halt: Halt) -> Halt:
    """Of two ends keep the one that asks more of a person; of equal ones the first."""
    if standing is None or _GRAVITY.index(halt.verdict) > _GRAVITY.index(standing.verdict):
        return halt
    return standing


def _lifts(failure: Failure, moment: Instant) -> str:
    if failure.kind is not FailureClass.QUOTA:
        return ""
    if failure.retry_after_s is None:
        return "nobody says when the usage limit lifts; "
    at = datetime.fromtimestamp(moment.wall_s + failure.retry_after_s, UTC)
    return f"the usage limit lifts at {at:%Y-%m-%d %H:%M} UTC; "
