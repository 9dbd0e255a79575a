"""The questions that are put to the event log, as SQL with its values. Pure."""

import re
from collections.abc import Iterable

import msgspec

EVENTS = "SELECT seq, at, generation, kind, body, hash FROM events"

Query = tuple[str, tuple[str | int, ...]]


def told(kinds: Iterable[str], before: str) -> Query:
    """Ask for the events of some kinds, and each that stands right before one of kind `before`."""
    wanted = "kind IN (SELECT value FROM json_each(?)) OR seq IN (SELECT seq - 1 FROM events WHERE kind = ?)"
    named = msgspec.json.encode(sorted(kinds)).decode()
    return f"{EVENTS} WHERE {wanted} ORDER BY seq", (named, before)


def latest(before: int, after: int, kind: str, text: str, limit: int) -> Query:
    """Ask for the last events between two numbers whose kind begins and whose body contains so, newest first."""
    wanted = "kind >= ? AND kind < ? || char(1114111) AND (? = '' OR CAST(body AS TEXT) LIKE ? ESCAPE '\\')"
    values = (before, after, kind, kind, text, _containing(text), limit)
    return f"{EVENTS} WHERE seq < ? AND seq > ? AND {wanted} ORDER BY seq DESC LIMIT ?", values


def _containing(text: str) -> str:
    """Return the pattern that finds words in a body, which is JSON; the signs of patterns stand for themselves."""
    inside = re.sub(r"[%_\\]", r"\\\g<0>", msgspec.json.encode(text).decode()[1:-1])
    return f"%{inside}%"
