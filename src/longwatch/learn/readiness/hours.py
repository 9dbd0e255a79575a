"""Quiet hours: spans of the local day in which the machine is left alone. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

_SPAN = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)")


class Span(NamedTuple):
    """From the first minute of the day up to, and without, the last; it may cross midnight."""

    begin: int
    end: int

    def holds(self, minute: int) -> bool:
        """Return whether a minute of the day lies in it."""
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def parse(text: str) -> tuple[Span, ...]:
    """Read `23:00-07:00`, or several, with commas; an empty text has none.

    Raises:
        ValueError: the message says what is wrong and how it is written.
    """
    return tuple(_span(part.strip()) for part in text.split(",")) if text.strip() else ()


def _span(text: str) -> Span:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is no span of hours: write it like "23:00-07:00", several with commas')
    numbers = [int(part) for part in found.groups()]
    span = Span(60 * numbers[0] + numbers[1], 60 * numbers[2] + numbers[3])
    if span.begin == span.end:
        raise ValueError(f'"{text}" begins when it ends: write the first and the last minute of a quiet time')
    return span


def quiet_for_s(spans: tuple[Span, ...], wall_s: float, zone: str) -> float | None:
    """Return how long the quiet time goes on, in seconds; `None`: it is not quiet now.

    What counts is what a clock on the wall of `zone` shows: an hour that summer time skips or repeats is quiet as often
    as the clock shows it.
    """
    place = UTC if zone == "UTC" else ZoneInfo(zone)
    local = datetime.fromtimestamp(wall_s, place)
    minute = 60 * local.hour + local.minute
    ends = [_until(span.end, local) for span in spans if span.holds(minute)]
    return max(ends) if ends else None


def _until(end: int, local: datetime) -> float:
    day = local.replace(hour=end // 60, minute=end % 60, second=0, microsecond=0)
    if day.replace(tzinfo=None) <= local.replace(tzinfo=None):
        day += timedelta(days=1)
    # The clock may be put back before the end: then the time in between is longer than the clock says, and never negative.
    return max(1.0, day.timestamp() - local.timestamp())
