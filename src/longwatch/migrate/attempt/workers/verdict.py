"""Why a worker's run is no claim: one rule for all agent programs, over one table for each. Pure.

A run without a failure is still only a claim: its answer, its change and its checks decide (specification M12).
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.limits import LimitHit
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace.model import Ending, ProviderError, TraceState
from longwatch.migrate.attempt.workers.reset_time import retry_after_s


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How the worker's process ended."""

    exit_code: int | None
    """`None`: a signal ended it."""
    limit: LimitHit | None = None
    limit_detail: str = ""
    log_tail: str = ""
    """The last lines that it printed."""


class Rule(msgspec.Struct, frozen=True):
    """Texts that mean a class of failure."""

    kind: FailureClass
    pattern: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent program says when something is wrong (specification K25)."""

    program: str
    version: str
    """The version that the texts were recorded with."""
    rules: tuple[Rule, ...]
    """The first rule that matches counts; texts come before statuses."""
    statuses: Mapping[int, FailureClass] = {}
    broken_sandbox: str
    """What its own sandbox prints when no command can run."""


_LIMITS = {
    LimitHit.MONITOR: FailureClass.TRANSIENT,
    LimitHit.START: FailureClass.TRANSIENT,
    LimitHit.IDLE: FailureClass.TRANSIENT,
    LimitHit.WALL: FailureClass.TRANSIENT,
    LimitHit.DISK: FailureClass.TRANSIENT,
    LimitHit.LOG: FailureClass.FAULT,
    LimitHit.MEMORY: FailureClass.FAULT,
    LimitHit.STOPPED: FailureClass.INTERRUPTED,
}
_NAMED_PATHS = 20
_CLOCKS_DIFFER_S = 60.0
_SHORTEST_S = {FailureClass.TRANSIENT: 1.0, FailureClass.QUOTA: 60.0}
"""A provider that asks for less would be asked again and again; a usage limit that lifts at once is none."""
_LONGEST_S = 366 * 86_400.0
"""What is longer is no time, whatever a text holds: the watch keeps its own."""


def classify(state: TraceState, end: RunEnd, table: Table, now: datetime) -> Failure | None:
    """Return why this run is no claim, or `None` if its answer may be looked at.

    `now` is in the zone that the worker's environment names. A person's stop is no failure: the caller asks only
    about runs that nobody stopped.
    """
    failure = _classify(state, end, table, now)
    if failure is None:
        return None
    resets_at = state.limit_resets_at if failure.kind is FailureClass.QUOTA else None
    wait_s = failure.retry_after_s if resets_at is None else resets_at - now.timestamp() + _CLOCKS_DIFFER_S
    return msgspec.structs.replace(failure, retry_after_s=_believable_s(wait_s, failure.kind))


def _believable_s(wait_s: float | None, kind: FailureClass) -> float | None:
    if wait_s is None or wait_s > _LONGEST_S:
        return None
    return max(wait_s, _SHORTEST_S[kind])


def _classify(state: TraceState, end: RunEnd, table: Table, now: datetime) -> Failure | None:
    if state.ended is Ending.SUCCEEDED:
        return _of_claim(state, end, table, now)
    if state.ended is Ending.FAILED:
        error = state.error or ProviderError(text="no reason given")
        return _of_error(error, table, now) or _fault(_with_error(error, table))
    return _of_silence(state, end, table, now)


def after_changes(failure: Failure, changed: Sequence[str]) -> Failure:
    """Return a failure as it counts when files changed as well: edits may be half done (specification M10)."""
    if not changed or failure.kind in (FailureClass.INTEGRITY, FailureClass.INTERRUPTED):
        return failure
    named = ", ".join(changed[:_NAMED_PATHS]) + (" and more" if len(changed) > _NAMED_PATHS else "")
    message = f"{failure.message}; meanwhile these files changed, perhaps only in part: {named}"
    return Failure(kind=FailureClass.INTERRUPTED, message=message, log=failure.log)


def of_exit(end: RunEnd) -> Failure | None:
    """Return why a program that speaks no protocol did not do its work, or `None` if it says that it did."""
    if end.limit is None and end.exit_code == 0:
        return None
    kind = FailureClass.FAULT if end.limit is None else FailureClass.INTERRUPTED
    return Failure(kind=kind, message=f"the worker's program {_how(end)}: {_last_words(end)}")


def class_of(text: str, status: int | None, table: Table) -> FailureClass | None:
    """Return what a provider's text or status means, or `None` if the table does not know it."""
    for rule in table.rules:
        if re.search(rule.pattern, text, re.IGNORECASE):
            return rule.kind
    return None if status is None else table.statuses.get(status)


def _of_claim(state: TraceState, end: RunEnd, table: Table, now: datetime) -> Failure | None:
    if state.calls_done == 0 and not state.in_flight:
        return _of_idleness(state, end, table, now)
    if state.answer is None:
        return _fault(f"{table.program} ended without an answer in the required form: {_said(state)}")
    if end.limit is None and end.exit_code != 0:
        return _fault(f"{table.program} gave its final result and then {_how(end)}")
    return None


def _of_idleness(state: TraceState, end: RunEnd, table: Table, now: datetime) -> Failure:
    """It says success, and not one tool call worked: whatever it claims, it never saw the repository."""
    for text in (_said(state), *(error.text for error in reversed(state.provider_errors))):
        failure = _of_error(ProviderError(text=text), table, now)
        if failure is not None and failure.kind is FailureClass.QUOTA:
            return failure
    if state.denied:
        names = ", ".join(dict.fromkeys(state.denied))
        return _fault(f"{table.program} was denied every tool ({names}): allow them in [worker] options")
    for error in (*reversed(state.provider_errors), ProviderError(text=_printed(end))):
        if re.search(table.broken_sandbox, error.text):
            return _fault(f"no command could run in the sandbox of {table.program}: {_shown(error)}")
    return _fault(f"{table.program} answered without a single tool call that worked: {_said(state)}")


def _of_error(error: ProviderError, table: Table, now: datetime) -> Failure | None:
    kind = class_of(error.text, error.status, table)
    if kind is None:
        return None
    waits = kind in (FailureClass.TRANSIENT, FailureClass.QUOTA)
    return Failure(
        kind=kind,
        message=_with_error(error, table),
        retry_after_s=_asked_s(error, now) if waits else None,
    )


def _asked_s(error: ProviderError, now: datetime) -> float | None:
    return retry_after_s(error.text, now) if error.retry_after_s is None else error.retry_after_s


def _with_error(error: ProviderError, table: Table) -> str:
    return f"{table.program} ended with an error: {error.text}"


def _of_silence(state: TraceState, end: RunEnd, table: Table, now: datetime) -> Failure:
    """No terminal event: whatever the exit code is, nobody knows that it finished (specification M12)."""
    message = f"{table.program} {_how(end)} before a final result"
    if state.calls:
        what = f"{message}, after {state.calls} tool calls (the last: {_said(state)})"
        return Failure(kind=FailureClass.INTERRUPTED, message=what)
    for error in (*reversed(state.provider_errors), ProviderError(text=_printed(end))):
        if failure := _of_error(error, table, now):
            return msgspec.structs.replace(failure, message=f"{message}: {_shown(error)}")
    kind = FailureClass.FAULT if end.limit is None else _LIMITS[end.limit]
    return Failure(kind=kind, message=f"{message}: {_last_words(end)}")


def _how(end: RunEnd) -> str:
    if end.limit is not None:
        return f"was ended ({end.limit_detail or end.limit.value})"
    return "was killed by a signal" if end.exit_code is None else f"ended with exit code {end.exit_code}"


def _printed(end: RunEnd) -> str:
    """What it printed besides events: an event holds words of the model and of its commands."""
    return "\n".join(line for line in end.log_tail.splitlines() if not line.lstrip().startswith("{"))


def _last_words(end: RunEnd) -> str:
    return _printed(end).strip()[-300:] or "it printed nothing else"


def _shown(error: ProviderError) -> str:
    return error.text.strip()[-300:]


def _said(state: TraceState) -> str:
    return state.current or "nothing said"


def _fault(message: str) -> Failure:
    return Failure(kind=FailureClass.FAULT, message=message)
