"""What a report says, before it is written in any format. Values only."""

import msgspec

from longwatch.observe.health import Health


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a drawing."""

    name: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A share, 0 to 1; of an estimate with its bounds."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    told: str
    """The same as text."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A drawing with what it shows in words."""

    title: str
    told: str
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    limit: float | None = None
    """A height that matters."""
    logarithmic: bool = False
    aside: bool = False
    """One of many: a page keeps it folded away."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of equal length below their heads."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """One watch."""

    watch: str
    kind: str
    at: str
    """When it was looked at, in the watch's zone."""
    health: Health
    lines: tuple[str, ...]
    """What does not hold, what moved forward, what was refused and why, what it cost, what holds: ten at most."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    decisions: Table
    """Each decision with the digest of its receipt."""
