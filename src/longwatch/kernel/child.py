"""What a supervised process is, as values. `process` starts and ends them; this module only describes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from longwatch.kernel.limits import LimitHit, Limits


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One program to run: nothing of the environment is inherited, stdin is fed and then closed."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    log: Path
    limits: Limits
    phase: str
    stdin: bytes = b""
    secrets: tuple[str, ...] = ()
    """Values that never reach the log, a record or a message."""
    contained: bool = False
    """It launches a container: what runs inside may be no descendant, is found by the cookie, and alone is asked to end."""


class Identity(msgspec.Struct, frozen=True):
    """Which process is meant, so that a reused pid is never signalled (specification K19)."""

    boot_id: str
    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat."""
    cookie: str


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of every finished process (specification K22). Secrets are masked in `argv`."""

    argv: tuple[str, ...]
    cwd: str
    phase: str
    started_at: str
    """UTC, ISO 8601."""
    ended_at: str
    duration_s: float
    cpu_s: float
    peak_memory_bytes: int
    exit_code: int | None
    signal: int | None
    limit: LimitHit | None
    limit_detail: str
    log: str
    log_sha256: str
    log_bytes: int
    """Bytes that the child printed, also those that the cap left out."""
    first_output_s: float | None
    left_behind: int
    """Descendants that lived on after the child and had to be ended."""

    @property
    def ok(self) -> bool:
        """True if it ended by itself with exit code 0 inside its limits."""
        return self.exit_code == 0 and self.limit is None


class Monitor(Protocol):
    """Reads a child's output while it runs. Called from one thread; must be quick and never raise."""

    def line(self, line: bytes, elapsed_s: float) -> None:
        """One line of standard output without its newline; over-long lines arrive cut, invalid UTF-8 as it is."""

    def reason_to_end(self, elapsed_s: float) -> str | None:
        """A reason to end the child now, or `None`. Asked at least four times a second."""


class Silent:
    """The monitor that has nothing to say."""

    def line(self, line: bytes, elapsed_s: float) -> None:
        """Ignore it."""

    def reason_to_end(self, elapsed_s: float) -> str | None:  # noqa: ARG002 - the protocol's signature
        """Never."""
        return None
