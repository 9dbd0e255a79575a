"""Spans of time, and the table that `timings` prints (specification K36)."""

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One measured stretch of work: monotonic duration, wall start (UTC, ISO 8601) and the phase it belongs to."""

    phase: str
    started_at: str
    duration_s: float
    label: str = ""
