"""When a provider says that it will serve again, read out of its prose. Pure."""

import re
from datetime import datetime, timedelta

_SPAN = re.compile(r"try again in ((?:\d+(?:\.\d+)? ?[a-z]+[ ,]*(?:and )?)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:try again at|resets(?: at)?) (?:(?P<date>[A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}),? )?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>[AaPp])\.?[Mm]"
)
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_WORDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0}
_JUST_PASSED = timedelta(minutes=10)
"""A time of day that was reached so short ago means now, not tomorrow."""
_MINUTE_S = 60.0
"""The text is cut to whole minutes: a minute later is certain."""


def retry_after_s(text: str, now: datetime) -> float | None:
    """Seconds until the provider serves again, or `None` if the text does not say.

    `now` is in the zone in which the program that wrote the text tells the time.
    """
    if span := _SPAN.search(text):
        return _span_s(span[1])
    if clock := _CLOCK.search(text):
        return _until_s(clock, now)
    return None


def _span_s(words: str) -> float | None:
    total_s = 0.0
    for number, unit in _PART.findall(words):
        name = unit.lower()
        size_s = _UNITS.get(name) or _WORDS.get(name.removesuffix("s"))
        if size_s is None:
            return None
        total_s += float(number) * size_s
    return total_s


def _until_s(clock: re.Match[str], now: datetime) -> float | None:
    when = _moment(clock, now)
    if when is None:
        return None
    if clock["date"] is None and now - when > _JUST_PASSED:
        when += timedelta(days=1)
    return max((when - now).total_seconds(), 0.0) + _MINUTE_S


def _moment(clock: re.Match[str], now: datetime) -> datetime | None:
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    if not 1 <= hour <= 12 or minute > 59:
        return None
    hour = hour % 12 + (12 if clock["half"] in "Pp" else 0)
    day = now
    if clock["date"] is not None:
        try:
            day = datetime.strptime(f"{clock['date']} {clock['year']}", "%b %d %Y").replace(tzinfo=now.tzinfo)
        except ValueError:
            return None
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)
