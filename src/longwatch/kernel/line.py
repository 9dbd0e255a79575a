"""What an application gives the kernel: a *line* of work.

A line is its typed state, a pure `decide`, a pure `apply`, and `job`, which says how a step is run. The kernel owns
everything else: durability, processes, requests, back-off, recovery. An outcome is what happened; the state is what
is stored; the two are different types on purpose.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from longwatch.kernel.child import ProcessRecord
from longwatch.kernel.errors import FailureClass
from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.limits import Limits
from longwatch.kernel.timing import Span


class Recovery(StrEnum):
    """What to do with a step whose intent is durable and whose outcome is not (specification K6)."""

    RERUN = "rerun"
    """Idempotent: end what is left of it, run it again."""
    RESUME = "resume"
    """It checkpoints itself: end what is left of it, run it again and it goes on."""
    ADOPT = "adopt"
    """It may still run: wait for it, never start a second. If it is dead the line is told that it is lost."""
    REJOIN = "rejoin"
    """Idempotent and long: if it still runs wait for it, never start a second; if it is dead run it again."""
    CONFIRM = "confirm"
    """End what is left of it, then ask the outside world what happened."""
    RECONCILE = "reconcile"
    """Unknown effect: stop until a person has looked."""


class Cycle(StrEnum):
    """What a step is to a piece of work: `run --max-cycles` counts pieces of work, not steps."""

    OPENS = "opens"
    """The first step of a piece of work."""
    CONTINUES = "continues"
    """It continues what another step opened, perhaps in an earlier run."""
    AHEAD = "ahead"
    """It gets ready what another step opens: not counted, and not begun where no further piece of work may be."""
    NONE = "none"
    """It looks or tidies up: not counted, and its success ends no row of failures."""

    @property
    def new(self) -> bool:
        """Return whether it is of a piece of work that is not in hand yet."""
        return self in {Cycle.OPENS, Cycle.AHEAD}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work with effects. Applications derive their own tagged types from it."""

    id: str
    """Path-safe, never used twice in a watch."""
    recovery: Recovery
    exclusive: frozenset[str] = frozenset()
    """Resources that only one step may hold: `accelerator`, `repository`."""
    cycle: Cycle = Cycle.OPENS

    @property
    def title(self) -> str:
        """What a person reads in a list."""
        return self.id


S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T", bound=Step)


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure with its class (specification K25). The message ends with the log's path and last lines."""

    kind: FailureClass
    message: str
    retry_after_s: float | None = None
    log: str | None = None


class Succeeded(msgspec.Struct, frozen=True, tag="succeeded"):
    """The step ended as it should; `evidence` is the application's own type, encoded as JSON."""

    evidence: msgspec.Raw


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The step could not do its work."""

    failure: Failure
    evidence: msgspec.Raw = msgspec.Raw(b"null")


class Stopped(msgspec.Struct, frozen=True, tag="stopped"):
    """A person's pause or stop ended it in good order. Nothing is counted against it."""

    what: str = ""


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """It is dead and left no outcome: killed from outside, or the machine went down."""

    what: str


Outcome = Succeeded | Failed | Stopped | Lost


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a step's program leaves behind as its last act: one file, written atomically."""

    step: str
    outcome: Outcome
    spans: tuple[Span, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    notes: tuple[Note, ...] = ()


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of life from a running step. Never proof of ownership, never evidence."""

    phase: str
    text: str = ""
    done: int | None = None
    total: int | None = None
    idle_s: float = 0.0
    left_s: float | None = None
    """How long the rest of this phase takes if it goes on at the same speed."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """How an executor runs a step: a program of ours that reads the step and leaves a `Report`."""

    argv: tuple[str, ...]
    cwd: Path
    limits: Limits
    environment: Mapping[str, str] = {}


class Start(msgspec.Struct, Generic[T], frozen=True):
    """Begin these steps, as far as capacity allows."""

    steps: tuple[T, ...]


class Wait(msgspec.Struct, frozen=True):
    """Nothing to begin now. With `delay_s`, decide again after that time; without, when a running step ends."""

    reason: str
    delay_s: float | None = None


class Finish(msgspec.Struct, frozen=True):
    """Nothing will begin until a person or a request changes something."""

    verdict: Verdict
    reason: str


Decision = Start[T] | Wait | Finish


class Line(Protocol, Generic[S, T]):
    """An application, as the kernel sees it."""

    state_type: type[S]
    step_type: object
    """The step type, or the union of them: what msgspec decodes."""

    def begin(self) -> S:
        """Return the state of a new watch."""

    def decide(self, state: S, running: Mapping[str, T], now: Instant) -> Decision[T]:
        """Pure: what to do next."""

    def apply(self, state: S, step: T, outcome: Outcome, now: Instant) -> tuple[S, tuple[Note, ...]]:
        """Pure: the state after an outcome, and what to write in the log about it."""

    def reopen(self, state: S) -> S:
        """Pure: the state that a new supervisor takes up: what was seen of the world before it is no longer fresh."""

    def resume(self, state: S) -> S:
        """Pure: the state after `resume`: whatever the line waits for by itself is over (specification K13)."""

    def accept(self, state: S, *, refresh: bool) -> S:
        """Pure: the state after a person looked and said `resume --accept`.

        With `refresh` the world as it is now becomes the new starting point; raises `RefusedError` where it cannot.
        """

    def job(self, step: T, *, confirm: bool) -> Job:
        """How to run a step, or (with `confirm`) how to ask the outside world what became of it."""
