"""What a machine reports about itself, as values. `None` is what it does not report: that keeps nobody from working."""

from typing import Protocol

import msgspec


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A process of somebody else that computes on an accelerator."""

    pid: int
    name: str
    memory_bytes: int | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One accelerator."""

    name: str
    others: tuple[Program, ...] | None = None
    """Who computes on it besides this watch."""
    free_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    """What it draws now; shown, and held against nothing: that it draws much is what it is for."""
    power_limit_w: float | None = None
    """What it may draw."""


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the machine."""

    devices: tuple[Device, ...] = ()
    """None where the student runs on the processor."""
    holder: str | None = None
    """Which other watch has its turn, for a person to read."""
    following: str | None = None
    """Which other watch is next, likewise."""
    memory_bytes: int | None = None
    """Available, or used by this watch."""
    free_disk_bytes: int | None = None
    next_bytes: int | None = None
    """What the next experiment is going to write, as far as earlier ones tell."""
    load_cores: float | None = None
    """How many cores other programs use."""
    temperature_c: float | None = None
    """Of the processor."""
    on_ac: bool | None = None


class Probe(Protocol):
    """Looks at a machine."""

    def read(self, number: int | None = None) -> Readings:
        """Look now. With the `number` of an experiment, also at what it is still going to write. Raises nothing."""
