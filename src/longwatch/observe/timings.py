"""`timings`: where the time of a watch went (specification K36, M36): measured spans, waits, and what is unaccounted for.

The phases are what the steps measured. By purpose they are summed up once more: several phases are git's, say. And each
attempt has a trace: what became of its time, from its preparation to its commit.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from longwatch.kernel import timing
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.journal import Event
from longwatch.kernel.store import Store
from longwatch.kernel.timing import PhaseTiming, Span, Timings
from longwatch.kernel.watch import Watch
from longwatch.observe import status

_ENDS_WAIT = ("watch.due", "request.obeyed", "step.started", "step.again", "watch.blocked", "watch.exhausted")
_PROVIDER = frozenset({FailureClass.TRANSIENT, FailureClass.QUOTA})

FIRST_ACTION = "worker.first_action"
CHARGED = "attempt.charged"
BEGAN = "supervisor.began"
_KINDS = frozenset({*_ENDS_WAIT, "watch.waiting", "step.failed", BEGAN, FIRST_ACTION, CHARGED})
"""All that is read of the log: most of a long one says nothing about time."""

_PURPOSES = {
    "worker": "model work",
    "handoff": "generators",
    "digest": "hashing",
    "sign": "hashing",
    **dict.fromkeys(("checkout", "harvest", "git", "push"), "git"),
    "survey": "queue",
}
"""What a phase is for; one that is not named here is its own purpose."""
_VALIDATION = "check:"
_ATTEMPT = re.compile(r"(?P<attempt>.+\.[0-9]+)\.[a-z]+\.[0-9]+")
"""The id of a step that belongs to an attempt: `JOB.ATTEMPT.STEP.SERIAL`."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long one step worked, over all its runs."""

    id: str
    active_s: float


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long an attempt's worker took to its first sign."""

    step: str
    phase: str
    seconds: float


class PhaseTime(msgspec.Struct, frozen=True):
    """How long one phase took in all."""

    phase: str
    seconds: float


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt was charged; where its use is not known, all that was reserved for it."""

    tokens: int
    usd: float
    tokens_known: bool
    usd_known: bool


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the time of one attempt, in all its steps: also those that were cut and begun again."""

    attempt: str
    since: str
    """UTC; when the first measured phase began. Empty: none was measured."""
    active_s: float
    first_action_s: float | None
    """After its start the worker acted first; `None` where it did not tell, or there was none."""
    phases: tuple[PhaseTime, ...]
    """In the order in which they began."""
    cost: Cost | None = None
    """`None`: nothing was charged."""


class WatchTimings(msgspec.Struct, frozen=True, kw_only=True):
    """What `longwatch timings --json` prints. Durations in seconds."""

    since: str
    """UTC; when the first supervisor began. Empty: none ever did."""
    until: str
    table: Timings
    purposes: tuple[PhaseTiming, ...]
    """The same time by what it was for: model work, validation, hashing, git, waits."""
    traces: tuple[Trace, ...]
    """Of each attempt, in the order in which they began."""
    steps: tuple[StepTime, ...]
    first_outputs: tuple[Latency, ...]
    """The first byte that each program printed."""
    first_actions: tuple[Latency, ...]
    """The first action of each attempt's worker."""


def read(watch: Watch) -> WatchTimings:
    """Return where the time went, from the first supervisor's begin until now, or until the last one ended."""
    store = Store.read(watch.database)
    try:
        events = tuple(store.told(_KINDS, before=BEGAN))
        first, final = _stamp(store.events(limit=1)), _stamp(store.events(after=store.snapshot().seq - 1))
        spans = store.spans()
        steps = tuple(StepTime(id=step.id, active_s=step.active_s) for step in store.steps())
        outputs = tuple(_latencies(store))
    finally:
        store.close()
    supervised = status.supervising(watch)
    until = stamp(now().wall_s) if supervised is not None and supervised.alive else final
    wall_s = seconds_between(first, until)
    everything = (*(span for _, span in spans), *supervisor_spans(events, until))
    actions = first_actions(events)
    return WatchTimings(
        since=first,
        until=until,
        table=timing.report(everything, wall_s),
        purposes=by_purpose(everything, wall_s),
        traces=traces(steps, spans, actions, costs(events)),
        steps=steps,
        first_outputs=outputs,
        first_actions=actions,
    )


def by_purpose(spans: Iterable[Span], wall_s: float) -> tuple[PhaseTiming, ...]:
    """Pure: the same time by what it was for."""
    return timing.report(map(_for_purpose, spans), wall_s).phases


def traces(
    steps: Iterable[StepTime],
    spans: Iterable[tuple[str, Span]],
    actions: Iterable[Latency],
    charged: Mapping[str, Cost],
) -> tuple[Trace, ...]:
    """Pure: gather steps, phases, first actions and costs by the attempt that they belong to."""
    active: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        active[_attempt(step.id)] += step.active_s
    measured: defaultdict[str, list[Span]] = defaultdict(list)
    for step_id, span in spans:
        measured[_attempt(step_id)].append(span)
    acted = {_attempt(one.step): one.seconds for one in actions}
    found = (
        _trace(name, measured[name], active_s, acted.get(name)) for name, active_s in active.items() if name
    )
    return tuple(msgspec.structs.replace(trace, cost=charged.get(trace.attempt)) for trace in found)


def costs(events: Iterable[Event]) -> Mapping[str, Cost]:
    """Pure: what each attempt was charged."""
    told = (event.data for event in events if event.kind == CHARGED)
    return {f"{data['job']}.{data['attempt']}": msgspec.convert(data, type=Cost) for data in told}


def _trace(name: str, spans: Sequence[Span], active_s: float, first_action_s: float | None) -> Trace:
    phases: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        phases[span.phase] += span.duration_s
    return Trace(
        attempt=name,
        since=min((span.started_at for span in spans), default=""),
        active_s=active_s,
        first_action_s=first_action_s,
        phases=tuple(PhaseTime(phase, seconds) for phase, seconds in phases.items()),
    )


def _attempt(step: str) -> str:
    """Return the attempt that a step belongs to; empty if to none."""
    found = _ATTEMPT.fullmatch(step)
    return found["attempt"] if found else ""


def _for_purpose(span: Span) -> Span:
    purpose = "validation" if span.phase.startswith(_VALIDATION) else _PURPOSES.get(span.phase, span.phase)
    return msgspec.structs.replace(span, phase=purpose)


def _stamp(events: Iterable[Event]) -> str:
    """Return when the first of these happened."""
    return next((event.at for event in events), "")


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
        if event.kind == BEGAN and previous:
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
