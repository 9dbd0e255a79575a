"""What the page is told, as typed values: the JSON is documented from them (`description`)."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError, PathError
from longwatch.kernel.journal import Event
from longwatch.kernel.request import Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import kinds, status
from longwatch.observe.health import Health, health
from longwatch.observe.status import Status

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 64 * 1024
MOST_EVENTS = 500
SCANNED = 100_000
"""So many events one answer looks through: words that are rare must not make a page wait for the whole of a long log."""
_MOST_LOGS = 200
_KEPT = frozenset({"log.txt", "prompt.md", "answer.json", "salvage.patch"})


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One watch as it is now."""

    id: str
    name: str
    """The end of its path."""
    health: Health
    status: Status


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """All watches of the page, those that need somebody first."""

    version: str
    watches: tuple[Card, ...]
    broken: tuple[tuple[str, str], ...] = ()
    """Folders of watches that cannot be read, with the reason."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the event log, newest first."""

    events: tuple[Event, ...]
    more: bool
    """There may be older ones that fit."""
    reached: int
    """So far back was searched: what is older comes with `before` at this number."""


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a program printed into."""

    name: str
    size: int
    at: str
    """UTC; when it was written last."""


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning and the end of a log; `tail` is empty where `head` is all."""

    name: str
    size: int
    head: str
    tail: str = ""
    left_out: int = 0
    """Bytes between the two."""


class Problem(msgspec.Struct, frozen=True):
    """Why there is no answer."""

    problem: str


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a button asks for."""

    verb: Verb
    accept: bool = False
    after_step: bool = False


def card(name: str, watch: Watch) -> Card:
    """Return a watch as it is now."""
    seen = status.read(watch)
    return Card(id=name, name="/".join(watch.root.parts[-2:]), health=health(seen), status=seen)


def board(watch: Watch) -> msgspec.Struct:
    """Return the watch's pieces of work.

    Raises:
        ConfigError: the settings cannot be read.
    """
    application = kinds.load(watch)
    return application.board(_line(watch))


def patch(watch: Watch, name: str) -> msgspec.Struct:
    """Return what a piece of work changed.

    Raises:
        ConfigError: there is nothing to show.
    """
    found = kinds.load(watch).patch(_line(watch), name)
    if found is None:
        raise ConfigError(f"{name}: there is no change to show")
    return found


def _line(watch: Watch) -> bytes:
    store = Store.read(watch.database)
    try:
        return store.snapshot().line
    finally:
        store.close()


def page(watch: Watch, *, before: int, kind: str, text: str, limit: int) -> Page:
    """Return the last events before a number that fit, as far back as one answer looks."""
    wanted = min(max(limit, 1), MOST_EVENTS)
    store = Store.read(watch.database)
    try:
        end = min(before, store.snapshot().seq + 1)
        start = max(end - SCANNED, 1)
        found = store.latest(before=end, after=start - 1, kind=kind, text=text, limit=wanted)
    finally:
        store.close()
    reached = found[-1].seq if len(found) == wanted else start
    return Page(events=found, more=reached > 1, reached=reached)


def logs(watch: Watch, of: str) -> tuple[Log, ...]:
    """Return what programs printed and what was kept of attempts, newest first; `of` is a part of the name."""
    found = (one for one in _logs(watch.hidden) if of in one.name)
    return tuple(sorted(found, key=lambda one: one.at, reverse=True)[:_MOST_LOGS])


def _logs(hidden: Path) -> Iterator[Log]:
    for part in ("steps", "attempts"):
        for where, _, names in os.walk(hidden / part):
            yield from (log for name in names if _is_kept(name) for log in _log(hidden, Path(where) / name))
    yield from (log for path in hidden.glob("*.log") for log in _log(hidden, path))


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.endswith(".log")


def _log(hidden: Path, path: Path) -> Iterator[Log]:
    """Yield the log, unless it was cleared away since it was listed."""
    with suppress(FileNotFoundError):
        seen = path.lstat()
        at = datetime.fromtimestamp(seen.st_mtime, UTC).isoformat(timespec="seconds")
        yield Log(name=str(path.relative_to(hidden)), size=seen.st_size, at=at)


def excerpt(watch: Watch, name: str) -> Excerpt:
    """Return the beginning and the end of a log.

    Raises:
        ConfigError: there is no such log. Nothing but logs is shown, and no link is followed.
    """
    if not _is_kept(Path(name).name):
        raise ConfigError(f"{name}: only logs are shown, and what is kept of attempts")
    try:
        size, head, tail = files.read_ends(files.contained(watch.hidden, name), HEAD_BYTES, TAIL_BYTES)
    except (FileNotFoundError, PathError) as error:
        raise ConfigError(f"{name}: it cannot be shown: {error}") from error
    left_out = max(size - len(head) - len(tail), 0)
    return Excerpt(name=name, size=size, head=_text(head), tail=_text(tail), left_out=left_out)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
