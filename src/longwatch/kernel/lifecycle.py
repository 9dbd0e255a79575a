"""The state machine of every watch: one table, one pure function. The diagram in the docs is generated from it.

Wish and fact are apart (specification K12): a request changes the *desired* state, only the supervisor changes the
*phase*, and only along an edge of `EDGES`. The application's own state is elsewhere; the two never mix.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from longwatch.kernel.errors import ExitCode, RefusedError
from longwatch.kernel.instant import Deadline


class Phase(StrEnum):
    """What is the case."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    BLOCKED = "blocked"
    NEEDS_RECONCILE = "needs_reconcile"
    EXHAUSTED = "exhausted"
    COMPLETE = "complete"


class Desired(StrEnum):
    """What a person wishes."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class Event(StrEnum):
    """What can happen to a watch."""

    BEGIN = "begin"
    """A supervisor took the lease, and no child of an earlier one lives."""
    STARTED = "started"
    WAIT = "wait"
    DUE = "due"
    DRAINED = "drained"
    """The last running child has ended."""
    PAUSE = "pause"
    RESUME = "resume"
    ACCEPT = "accept"
    """`resume --accept`: the person's word that they looked."""
    STOP = "stop"
    HALT = "halt"
    """A failure that no retry helps, while other children still live."""
    BLOCK = "block"
    RECONCILE = "reconcile"
    EXHAUST = "exhaust"
    COMPLETE = "complete"


class Edge(msgspec.Struct, frozen=True):
    """One allowed move, with its name and a sentence for a person."""

    phase: Phase
    event: Event
    to: Phase
    name: str
    sentence: str


P, E = Phase, Event

EDGES: tuple[Edge, ...] = (
    # -- a supervisor begins
    Edge(P.IDLE, E.BEGIN, P.IDLE, "open", "A supervisor takes an idle watch."),
    Edge(P.RUNNING, E.BEGIN, P.IDLE, "owner lost", "The previous supervisor died; what it left is settled."),
    Edge(P.WAITING, E.BEGIN, P.WAITING, "wait on", "A deadline survives its supervisor."),
    Edge(P.PAUSING, E.BEGIN, P.PAUSED, "pause found", "The children ended while nobody looked."),
    Edge(P.STOPPING, E.BEGIN, P.STOPPED, "stop found", "The children ended while nobody looked."),
    Edge(P.PAUSED, E.BEGIN, P.PAUSED, "stay paused", "A paused watch never wakes by itself."),
    Edge(P.STOPPED, E.BEGIN, P.IDLE, "reopen", "It was stopped by a signal, not by a wish: it goes on."),
    Edge(P.BLOCKED, E.BEGIN, P.BLOCKED, "stay blocked", "Only a person's word leads out."),
    Edge(P.NEEDS_RECONCILE, E.BEGIN, P.NEEDS_RECONCILE, "stay unsettled", "Only a person's word leads out."),
    Edge(P.EXHAUSTED, E.BEGIN, P.IDLE, "look again", "The budget may have been raised."),
    Edge(P.COMPLETE, E.BEGIN, P.IDLE, "look again", "There may be new work."),
    # -- work
    Edge(P.IDLE, E.STARTED, P.RUNNING, "start", "A step begins; its intent is durable before it does."),
    Edge(P.RUNNING, E.STARTED, P.RUNNING, "start another", "Another step begins beside it."),
    Edge(P.RUNNING, E.DRAINED, P.IDLE, "drained", "The last step ended; decide again."),
    Edge(P.IDLE, E.WAIT, P.WAITING, "wait", "Nothing can begin before a deadline."),
    Edge(P.WAITING, E.DUE, P.IDLE, "due", "The deadline has passed."),
    # -- requests
    Edge(P.IDLE, E.PAUSE, P.PAUSED, "pause", "Nothing runs: paused at once."),
    Edge(P.RUNNING, E.PAUSE, P.PAUSING, "pause", "Children are asked to end, or to finish first."),
    Edge(P.WAITING, E.PAUSE, P.PAUSED, "cut the wait", "A pause ends a wait at once."),
    Edge(P.PAUSING, E.PAUSE, P.PAUSING, "pause again", "A newer pause replaces the older one."),
    Edge(P.PAUSED, E.PAUSE, P.PAUSED, "pause again", "Nothing to do."),
    Edge(P.STOPPED, E.PAUSE, P.PAUSED, "pause instead", "The newer request wins."),
    Edge(
        P.STOPPING,
        E.PAUSE,
        P.PAUSING,
        "pause instead",
        "The newer request wins; the children end all the same.",
    ),
    Edge(P.COMPLETE, E.PAUSE, P.PAUSED, "pause", "Nothing runs: paused at once."),
    Edge(P.EXHAUSTED, E.PAUSE, P.PAUSED, "pause", "Nothing runs: paused at once."),
    Edge(P.IDLE, E.STOP, P.STOPPED, "stop", "Nothing runs: stopped at once."),
    Edge(P.RUNNING, E.STOP, P.STOPPING, "stop", "Children are asked to end."),
    Edge(P.WAITING, E.STOP, P.STOPPED, "cut the wait", "A stop ends a wait at once."),
    Edge(P.PAUSING, E.STOP, P.STOPPING, "stop instead", "The newer request wins."),
    Edge(P.PAUSED, E.STOP, P.STOPPED, "stop instead", "The newer request wins."),
    Edge(P.STOPPING, E.STOP, P.STOPPING, "stop again", "Nothing new to do."),
    Edge(P.STOPPED, E.STOP, P.STOPPED, "stop again", "Nothing to do."),
    Edge(P.COMPLETE, E.STOP, P.STOPPED, "stop", "Nothing runs: stopped at once."),
    Edge(P.EXHAUSTED, E.STOP, P.STOPPED, "stop", "Nothing runs: stopped at once."),
    Edge(P.IDLE, E.RESUME, P.IDLE, "resume", "It was not held; failures and waits are forgotten."),
    Edge(P.RUNNING, E.RESUME, P.RUNNING, "resume", "It runs already."),
    Edge(P.WAITING, E.RESUME, P.IDLE, "cut the wait", "The person does not want to wait."),
    Edge(P.PAUSED, E.RESUME, P.IDLE, "resume", "Work goes on; failures and waits are forgotten."),
    Edge(P.STOPPED, E.RESUME, P.IDLE, "resume", "Work goes on; failures and waits are forgotten."),
    Edge(P.EXHAUSTED, E.RESUME, P.IDLE, "resume", "The budget is looked at again."),
    Edge(P.COMPLETE, E.RESUME, P.IDLE, "resume", "The queue is looked at again."),
    Edge(P.BLOCKED, E.ACCEPT, P.IDLE, "accept", "A person looked; decide again."),
    Edge(P.NEEDS_RECONCILE, E.ACCEPT, P.IDLE, "accept", "A person looked; decide again."),
    # -- drained on request
    Edge(P.PAUSING, E.DRAINED, P.PAUSED, "paused", "No child lives any more."),
    Edge(P.STOPPING, E.DRAINED, P.STOPPED, "stopped", "No child lives any more."),
    # -- ends
    Edge(
        P.RUNNING,
        E.HALT,
        P.STOPPING,
        "halt",
        "A failure ends the work; what else runs is asked to end, or may finish what is paid for.",
    ),
    Edge(P.PAUSING, E.HALT, P.STOPPING, "halt", "A failure ends the work while it pauses."),
    Edge(P.STOPPING, E.HALT, P.STOPPING, "halt", "A failure arrives while it stops."),
    *(
        Edge(phase, event, to, name, sentence)
        for phase in (P.IDLE, P.RUNNING, P.WAITING, P.PAUSING, P.STOPPING)
        for event, to, name, sentence in (
            (E.BLOCK, P.BLOCKED, "block", "Nothing goes on until a person has looked."),
            (
                E.RECONCILE,
                P.NEEDS_RECONCILE,
                "unknown effect",
                "What happened is unknown; a person has to look.",
            ),
            (E.EXHAUST, P.EXHAUSTED, "exhausted", "A budget is spent."),
        )
    ),
    Edge(P.IDLE, E.COMPLETE, P.COMPLETE, "complete", "All work is done and verified."),
)

TABLE: dict[tuple[Phase, Event], Edge] = {(edge.phase, edge.event): edge for edge in EDGES}

HELD = frozenset({P.BLOCKED, P.NEEDS_RECONCILE})
"""Phases that only a person's word leaves."""

DRAINING = frozenset({P.PAUSING, P.STOPPING})
"""Phases in which a child may still live and none begins."""

KEEPS_WAIT = frozenset({E.BEGIN, E.STARTED, E.WAIT, E.DRAINED, E.HALT})
"""Events that leave a deadline standing; all others cut it."""

EXIT_CODES: Mapping[Phase, ExitCode] = {
    P.PAUSED: ExitCode.OK,
    P.STOPPED: ExitCode.OK,
    P.COMPLETE: ExitCode.OK,
    P.BLOCKED: ExitCode.BLOCKED,
    P.NEEDS_RECONCILE: ExitCode.NEEDS_RECONCILE,
    P.EXHAUSTED: ExitCode.EXHAUSTED,
}
"""Phases in which a run ends, and with what."""


def ends(*, stay: bool, waits: bool) -> Mapping[Phase, ExitCode]:
    """Return the phases in which such a run ends: one that stays does not end paused, one that does not wait ends waiting."""
    chosen = {phase: code for phase, code in EXIT_CODES.items() if not (stay and phase is Phase.PAUSED)}
    return chosen if waits else {**chosen, Phase.WAITING: ExitCode.NOT_READY}


class Verdict(StrEnum):
    """How a line of work ends a run."""

    COMPLETE = "complete"
    BLOCKED = "blocked"
    NEEDS_RECONCILE = "needs_reconcile"
    EXHAUSTED = "exhausted"


VERDICT_EVENTS: dict[Verdict, Event] = {
    Verdict.COMPLETE: E.COMPLETE,
    Verdict.BLOCKED: E.BLOCK,
    Verdict.NEEDS_RECONCILE: E.RECONCILE,
    Verdict.EXHAUSTED: E.EXHAUST,
}


class Halt(msgspec.Struct, frozen=True):
    """An end that waits until no child lives."""

    verdict: Verdict
    reason: str


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's own state of a watch."""

    phase: Phase = Phase.IDLE
    desired: Desired = Desired.RUN
    reason: str = ""
    obeyed: int = 0
    """Sequence number of the last request that was obeyed."""
    failures: int = 0
    """Failures in a row, over all steps. A usage limit is none: it has a bound of its own."""
    faults: int = 0
    """So many of them were faults; the others were transient."""
    parked_s: float = 0.0
    """All waits for usage limits in the life of the watch, with all of the one that is on."""
    parking: Deadline | None = None
    """The latest of them."""
    wait: Deadline | None = None
    """Nothing begins before it ..."""
    only_new: bool = False
    """... or, if so, no new piece of work: what is in hand goes on."""
    trouble: Deadline | None = None
    """The wait that the last failures began: what fails before it is over ran beside them, and is the same trouble."""
    halt: Halt | None = None


def move(lifecycle: Lifecycle, event: Event, reason: str = "") -> Lifecycle:
    """Return the lifecycle after an event.

    Raises:
        RefusedError: if the table has no such edge; the message says what is possible.
    """
    edge = TABLE.get((lifecycle.phase, event))
    if edge is None:
        raise RefusedError(refusal(lifecycle.phase, event, lifecycle.reason))
    wait, trouble = (lifecycle.wait, lifecycle.trouble) if event in KEEPS_WAIT else (None, None)
    stands = edge.to is lifecycle.phase or wait is not None
    kept = lifecycle.reason if stands and not reason else reason
    return msgspec.structs.replace(lifecycle, phase=edge.to, reason=kept, wait=wait, trouble=trouble)


def refusal(phase: Phase, event: Event, reason: str) -> str:
    """Say why an event has no edge here, and what to do instead."""
    because = f" ({reason})" if reason else ""
    if phase in HELD:
        return (
            f"The watch is {phase}{because}. Look at it with `longwatch reconcile`; "
            "then `longwatch resume --accept` goes on."
        )
    if phase in DRAINING:
        return f"The watch is {phase}: a child of the previous run still lives. Try again when `longwatch status` says it ended."
    return f"The watch is {phase}{because}: '{event}' is not possible now."
