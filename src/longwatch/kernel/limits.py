"""Limits of a supervised process, and the pure rule that turns an observation into a verdict."""

from enum import StrEnum

import msgspec

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one child (specification K17). `None` means: not bounded.

    Units stand in the names. `start_s` is the time until the first byte of output, `idle_s` the time without output
    *and* without CPU, I/O or child activity in the whole tree.
    """

    wall_s: float
    start_s: float | None = None
    idle_s: float | None = None
    log_bytes: int = 256 * MIB
    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    grace_s: float = 5.0
    """Between TERM and KILL."""
    free_disk_bytes: int | None = None
    """The child is ended when less than this is free where its log lies."""


class LimitHit(StrEnum):
    """Which limit ended a child."""

    WALL = "wall"
    START = "start"
    IDLE = "idle"
    LOG = "log"
    MEMORY = "memory"
    DISK = "disk"
    STOPPED = "stopped"
    """A person's pause or stop."""
    MONITOR = "monitor"
    """The reader of its output saw a reason (a final result without an exit, a stall of the provider)."""
