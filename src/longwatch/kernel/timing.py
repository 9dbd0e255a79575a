"""Spans of time, and the table that `timings` prints (specification K36). Pure.

Phases may overlap: steps run side by side, and a phase may lie inside another one. So two sums are kept apart. The
*total* of a phase adds up its durations, as if one had followed the other. Its *share* is the part of the wall time in
which at least one of its spans was open, so a share is never above 1; the shares of phases that overlap add up to more
than what is accounted for, and `overlap_s` says by how much. Durations are monotonic; starts are wall times, so a clock
that was stepped moves spans against each other, but does not change totals.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One measured stretch of work: monotonic duration, wall start (UTC, ISO 8601) and the phase it belongs to."""

    phase: str
    started_at: str
    duration_s: float
    label: str = ""


class PhaseTiming(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    phase: str
    count: int
    total_s: float
    """All durations together; parallel ones count each."""
    median_s: float
    p95_s: float
    """By nearest rank: a duration that was measured, never an interpolated one."""
    max_s: float
    covered_s: float
    """Time in which at least one span of the phase was open."""
    share: float
    """`covered_s` of the wall time, 0 to 1."""


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """The table, and what no span covers."""

    wall_s: float
    phases: tuple[PhaseTiming, ...]
    """The longest covered first."""
    accounted_s: float
    """Time in which at least one span of any phase was open."""
    overlap_s: float
    """What the phases' covered times count more than once."""
    unaccounted_s: float


Interval = tuple[float, float]


def report(spans: Iterable[Span], wall_s: float) -> Timings:
    """Return the table for spans that were measured within `wall_s` seconds of wall time."""
    by_phase: defaultdict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_phase[span.phase].append(span)
    covers = {phase: covered(map(_interval, members)) for phase, members in by_phase.items()}
    rows = tuple(_row(phase, members, covers[phase], wall_s) for phase, members in by_phase.items())
    accounted_s = _bounded(_length(_union(part for cover in covers.values() for part in cover)), wall_s)
    return Timings(
        wall_s=wall_s,
        phases=tuple(sorted(rows, key=lambda row: (-row.covered_s, row.phase))),
        accounted_s=accounted_s,
        overlap_s=max(math.fsum(row.covered_s for row in rows) - accounted_s, 0.0),
        unaccounted_s=max(wall_s - accounted_s, 0.0),
    )


def covered(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return the times that at least one interval covers, in order and disjoint."""
    return tuple(_union(intervals))


def _row(phase: str, spans: Sequence[Span], cover: tuple[Interval, ...], wall_s: float) -> PhaseTiming:
    durations = sorted(span.duration_s for span in spans)
    covered_s = _bounded(_length(cover), wall_s)
    return PhaseTiming(
        phase=phase,
        count=len(durations),
        total_s=math.fsum(durations),
        median_s=_median(durations),
        p95_s=durations[math.ceil(0.95 * len(durations)) - 1],
        max_s=durations[-1],
        covered_s=covered_s,
        share=covered_s / wall_s if wall_s > 0 else 0.0,
    )


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _interval(span: Span) -> Interval:
    start = datetime.fromisoformat(span.started_at).timestamp()
    return start, start + span.duration_s


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _length(intervals: Iterable[Interval]) -> float:
    return math.fsum(end - start for start, end in intervals)


def _bounded(seconds: float, wall_s: float) -> float:
    """No more time can be covered than there was; only a stepped clock can make it look so."""
    return min(seconds, max(wall_s, 0.0))
