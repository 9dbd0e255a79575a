"""What the supervisor needs of whatever runs its steps. `executors` implements it, one contract suite tests it."""

from pathlib import Path
from typing import Protocol

from longwatch.kernel.child import Identity
from longwatch.kernel.line import Job


class Running(Protocol):
    """A step's program while it runs."""

    @property
    def identity(self) -> Identity:
        """Return which process it is."""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when it has ended."""

    def ended(self) -> bool:
        """Return whether it has ended; never blocks."""

    def ask_to_stop(self) -> None:
        """Ask it to end in good order (TERM)."""

    def end(self) -> int:
        """End it and all its descendants for good; returns how many there were. Also cleans up after one that ended."""


class Executor(Protocol):
    """Starts programs, and finds those that outlived a supervisor."""

    def start(self, folder: Path, job: Job, cookie: str) -> Running:
        """Start a step's program; its output goes to the log in the step's folder."""

    def attach(self, identity: Identity, cookie: str) -> Running | None:
        """Return a program that still runs, or `None`."""

    def end_leftovers(self, identity: Identity | None, cookie: str) -> int:
        """End whatever carries this owner mark; returns how many there were."""
