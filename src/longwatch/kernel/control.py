"""What a request or a failure means for the lifecycle. Pure."""

from collections.abc import Iterable

import msgspec

from longwatch.kernel import retry
from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import HELD, Desired, Event, Halt, Lifecycle, Phase
from longwatch.kernel.line import Failure
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.retry import GiveUp, Retry
from longwatch.kernel.settings import Backoff

_DESIRED = {Verb.PAUSE: Desired.PAUSE, Verb.RESUME: Desired.RUN, Verb.STOP: Desired.STOP}
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
    life: Lifecycle, title: str, failure: Failure, policy: Backoff, moment: Instant
) -> tuple[Lifecycle, Note]:
    """Return the lifecycle after a step failed, and the event that explains it."""
    failures = life.failures + 1
    decision = retry.decide(
        failure.kind,
        failures=failures,
        parked_s=life.parked_s,
        retry_after_s=failure.retry_after_s,
        policy=policy,
    )
    text = f"{title}: {failure.message}"
    data: dict[str, str | int | float | bool | None] = {"class": failure.kind.value, "failures": failures}
    match decision:
        case GiveUp(verdict, why):
            halt = Halt(verdict, f"{text} ({why})")
            return msgspec.structs.replace(life, failures=failures, halt=halt), Note(
                "step.failed", text, data
            )
        case Retry(delay_s, parked):
            waiting = msgspec.structs.replace(
                life,
                failures=failures,
                parked_s=life.parked_s + (delay_s if parked else 0.0),
                wait=Deadline(since=moment, delay_s=delay_s),
                reason=f"{failure.kind}: {text}",
            )
            return waiting, Note("step.failed", text, {**data, "retry_in_s": delay_s})
