"""The event log as values: events, their hash chain, and the pure check of a chain (specification K33)."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

GENESIS = bytes(32)
"""The hash before the first event."""


class Note(msgspec.Struct, frozen=True):
    """A line for the event log: a kind (`check.failed`) and a sentence, with data for machines."""

    kind: str
    text: str
    data: Mapping[str, str | int | float | bool | None] = {}


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of the log."""

    seq: int
    at: str
    """UTC, ISO 8601."""
    generation: int
    """Which supervisor wrote it: a fencing token."""
    kind: str
    text: str
    data: Mapping[str, str | int | float | bool | None] = {}


class _Body(msgspec.Struct, frozen=True):
    text: str
    data: Mapping[str, str | int | float | bool | None] = {}


_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(_Body).decode

Row = tuple[int, str, int, str, bytes, bytes]
"""seq, at, generation, kind, body, hash: an event as it is stored."""

_TYPES = (int, str, int, str, bytes, bytes)


def body(note: Note) -> bytes:
    """Encode what an event says."""
    return _encode(_Body(note.text, note.data))


def link(  # noqa: PLR0917 - the columns of one row, in their order
    previous: bytes, seq: int, at: str, generation: int, kind: str, content: bytes
) -> bytes:
    """Return the SHA-256 that binds an event to all before it. NUL separates; no field but the last may hold one."""
    return hashlib.sha256(
        b"%b%d\0%b\0%d\0%b\0%b" % (previous, seq, at.encode(), generation, kind.encode(), content)
    ).digest()


def well_formed(row: Row) -> bool:
    """Return whether the columns have their types; a damaged file can hold anything."""
    return tuple(map(type, row)) == _TYPES


def event(row: Row) -> Event:
    """Decode a stored event.

    Raises:
        msgspec.ValidationError: it was not written by this program.
    """
    if not well_formed(row):
        raise msgspec.ValidationError(f"an event is {row!r:.200}")
    seq, at, generation, kind, content, _ = row
    said = _decode(content)
    return Event(seq=seq, at=at, generation=generation, kind=kind, text=said.text, data=said.data)


def unbroken(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the hashes of a chain from its beginning, as far as it is unbroken."""
    previous, expected = GENESIS, 1
    for row in rows:
        seq, at, generation, kind, content, stored = row
        if seq != expected or not well_formed(row):
            return
        if link(previous, seq, at, generation, kind, content) != stored:
            return
        yield stored
        previous, expected = stored, seq + 1


def broken(rows: Iterable[Row], *, count: int, head: bytes) -> str | None:
    """Return what is wrong with a chain that should have `count` events and end in `head`, or `None`."""
    previous, expected, last_generation = GENESIS, 1, 0
    for row in rows:
        seq, at, generation, kind, content, stored = row
        if seq != expected:
            return f"event {expected} is missing"
        if not well_formed(row):
            return f"event {seq} is damaged"
        if generation < last_generation:
            return f"event {seq} was written by generation {generation} after generation {last_generation}"
        if link(previous, seq, at, generation, kind, content) != stored:
            return f"event {seq} was edited, or does not follow the one before it"
        previous, expected, last_generation = stored, seq + 1, generation
    if expected - 1 != count:
        return f"the log ends at event {expected - 1}, the state knows {count}"
    return None if previous == head else "the last event is not the one that the state knows"
