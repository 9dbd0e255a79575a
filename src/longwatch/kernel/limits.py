"""Limits of a supervised process, and the pure rule that turns an observation into a verdict."""

from collections.abc import Callable
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
    PROCESSES = "processes"
    """More processes than allowed, where no control group refuses them."""
    STOPPED = "stopped"
    """A person's pause or stop."""
    MONITOR = "monitor"
    """The reader of its output saw a reason (a final result without an exit, a stall of the provider)."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of a child and its whole tree at one moment."""

    elapsed_s: float
    first_output_s: float | None
    """When the first byte came, counted from the start; `None` if none came yet."""
    idle_s: float
    """How long nothing happened: no output, and no CPU, I/O or child activity."""
    log_bytes: int
    memory_bytes: int
    processes: int
    free_disk_bytes: int


def verdict(limits: Limits, seen: Observation) -> tuple[LimitHit, str] | None:
    """Return the limit that ends the child now with a sentence about it, or `None`. Pure.

    What harms the host comes before what wastes time.
    """
    return next((hit for rule in _RULES if (hit := rule(limits, seen)) is not None), None)


_Hit = tuple[LimitHit, str] | None


def _log(limits: Limits, seen: Observation) -> _Hit:
    if seen.log_bytes <= limits.log_bytes:
        return None
    return LimitHit.LOG, f"it printed {seen.log_bytes} bytes; the limit is {limits.log_bytes}"


def _memory(limits: Limits, seen: Observation) -> _Hit:
    if limits.memory_bytes is None or seen.memory_bytes <= limits.memory_bytes:
        return None
    return (
        LimitHit.MEMORY,
        f"its tree used {seen.memory_bytes} bytes of memory; the limit is {limits.memory_bytes}",
    )


def _disk(limits: Limits, seen: Observation) -> _Hit:
    if limits.free_disk_bytes is None or seen.free_disk_bytes >= limits.free_disk_bytes:
        return None
    return (
        LimitHit.DISK,
        f"{seen.free_disk_bytes} bytes of disk were free; {limits.free_disk_bytes} must stay free",
    )


def _processes(limits: Limits, seen: Observation) -> _Hit:
    if limits.processes is None or seen.processes <= limits.processes:
        return None
    return LimitHit.PROCESSES, f"its tree had {seen.processes} processes; the limit is {limits.processes}"


def _wall(limits: Limits, seen: Observation) -> _Hit:
    if seen.elapsed_s < limits.wall_s:
        return None
    return LimitHit.WALL, f"it ran for {limits.wall_s:g} s, its whole time"


def _start(limits: Limits, seen: Observation) -> _Hit:
    if limits.start_s is None or seen.first_output_s is not None or seen.elapsed_s < limits.start_s:
        return None
    return LimitHit.START, f"it printed nothing in its first {limits.start_s:g} s"


def _idle(limits: Limits, seen: Observation) -> _Hit:
    if limits.idle_s is None or seen.idle_s < limits.idle_s:
        return None
    return LimitHit.IDLE, f"no output and no activity for {limits.idle_s:g} s"


_RULES: tuple[Callable[[Limits, Observation], _Hit], ...] = (
    _log,
    _memory,
    _disk,
    _processes,
    _wall,
    _start,
    _idle,
)
