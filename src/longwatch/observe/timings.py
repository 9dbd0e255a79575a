"""`timings`: where the time of a watch went (specification K36): measured spans, waiting, and what is unaccounted for."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from longwatch.kernel import timing
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.journal import Event
from longwatch.kernel.store import Store
from longwatch.kernel.timing import Span, Timings
from longwatch.kernel.watch import Watch
from longwatch.observe import status

_ENDS_WAIT = ("watch.due", "request.obeyed", "step.started", "step.again", "watch.blocked", "watch.exhausted")
_PROVIDER = frozenset({FailureClass.TRANSIENT, FailureClass.QUOTA})

FIRST_ACTION = "worker.first_action"


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long one step worked, over all its runs."""

    id: str
    active_s: float


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long an attempt's worker took to its first sign."""

    step: str
    phase: str
    seconds: float


class WatchTimings(msgspec.Struct, frozen=True, kw_only=True):
    """What `longwatch timings --json` prints. Durations in seconds."""

    since: str
    """UTC; when the first supervisor began. Empty: none ever did."""
    until: str
    table: Timings
    steps: tuple[StepTime, ...]
    first_outputs: tuple[Latency, ...]
    """The first byte that each program printed."""
    first_actions: tuple[Latency, ...]
    """The first action of each attempt's worker."""


def read(watch: Watch) -> WatchTimings:
    """Return where the time went, from the first supervisor's begin until now, or until the last one ended."""
    store = Store.read(watch.database)
    try:
        events = tuple(store.events())
        spans = store.spans()
        steps = tuple(StepTime(id=step.id, active_s=step.active_s) for step in store.steps())
        outputs = tuple(_latencies(store))
    finally:
        store.close()
    supervised = status.supervising(watch)
    until = stamp(now().wall_s) if supervised is not None and supervised.alive else last(events)
    since = events[0].at if events else ""
    wall_s = seconds_between(since, until)
    table = timing.report((*spans, *supervisor_spans(events, until)), wall_s)
    return WatchTimings(
        since=since,
        until=until,
        table=table,
        steps=steps,
        first_outputs=outputs,
        first_actions=first_actions(events),
    )


def last(events: Sequence[Event]) -> str:
    """Return when the log ends."""
    return events[-1].at if events else ""


def seconds_between(since: str, until: str) -> float:
    """Return the wall time between two stamps; never negative."""
    if not since or not until:
        return 0.0
    return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)


def supervisor_spans(events: Iterable[Event], until: str) -> tuple[Span, ...]:
    """Pure: the time that no step measures: waits by their cause, and stretches without a supervisor.

    The event log has wall times only, so these durations move with a clock that is stepped.
    """
    return tuple(_Reader(until).spans(events))


class _Reader:
    """Reads the log once, with what is open at the moment."""

    def __init__(self, until: str) -> None:
        self._until = until
        self._wait: tuple[str, str] | None = None
        self._cause = "waiting"

    def spans(self, events: Iterable[Event]) -> Iterator[Span]:
        previous = ""
        for event in events:
            yield from self._step(event, previous)
            previous = event.at
        if self._wait is not None:
            yield _span(*self._wait, self._until)

    def _step(self, event: Event, previous: str) -> Iterator[Span]:
        if event.kind == "step.failed":
            self._cause = _cause(event)
        if event.kind in _ENDS_WAIT:
            self._cause = "waiting"
            if self._wait is not None:
                yield _span(*self._wait, event.at)
                self._wait = None
        if event.kind == "watch.waiting":
            self._wait = self._wait or (self._cause, event.at)
        if event.kind == "supervisor.began" and previous:
            # A killed supervisor left no farewell: the last thing that is known of it is its last event.
            yield _span("no supervisor", previous, event.at)


def _cause(event: Event) -> str:
    if "retry_in_s" not in event.data:
        return "waiting"
    return "provider wait" if event.data.get("class") in _PROVIDER else "back-off"


def _span(phase: str, since: str, until: str) -> Span:
    return Span(phase=phase, started_at=since, duration_s=seconds_between(since, until))


def first_actions(events: Iterable[Event]) -> tuple[Latency, ...]:
    """Pure: how long each attempt's worker took to its first action, where its program told it."""
    told = (
        (event.data.get("step"), event.data.get("after_s")) for event in events if event.kind == FIRST_ACTION
    )
    return tuple(
        Latency(step=str(step), phase="worker", seconds=float(seconds))
        for step, seconds in told
        if isinstance(seconds, int | float)
    )


def _latencies(store: Store) -> Iterator[Latency]:
    for step, record in store.processes():
        if record.first_output_s is not None:
            yield Latency(step=step, phase=record.phase, seconds=record.first_output_s)
