"""Marker files: how tools that know nothing of each other keep out of each other's way (specification K4).

A foreign marker is read and never changed. Two forms are understood: a text that begins with a pid, with the start
time of that process after it where the tool writes one, and JSON with a pid in it, as most tools leave it.
"""

import os
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import psutil

from longwatch.kernel import files
from longwatch.kernel.child import Identity
from longwatch.kernel.clock import boot_id
from longwatch.kernel.errors import IntegrityError, LongwatchError, NotReadyError, PathError
from longwatch.kernel.identity import read_stat

_MAX_BYTES = 64 * 1024
_MAX_PID = 1 << 22
"""The kernel's own limit (proc(5), pid_max)."""
_TEXT = re.compile(r"\s*(\d{1,7})(?:[\s:,]+(\S+))?(?:\s+(\S.*))?\s*", re.DOTALL)
_PID_KEYS = ("pid", "PID", "process_id")
_START_KEYS = ("start", "start_time", "create_time", "started", "started_at", "since")
_TOLERANCE_S = 2.0
"""Start times are written with a precision of a second, by clocks that are read one after the other."""
_FIRST_EPOCH_S = 1e9
_FIRST_EPOCH_MS = 1e11
_ABSURD = 1e18
_PROGRAM = "longwatch"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What a marker says: a process, and what is known to tell it from a later one under the same pid."""

    pid: int
    start: float | None = None
    """Clock ticks since boot (field 22 of /proc/PID/stat), or seconds or milliseconds since 1970."""
    boot_id: str | None = None


class Standing(StrEnum):
    """What a marker file means now."""

    LIVE = "live"
    STALE = "stale"
    UNREADABLE = "unreadable"
    """Nobody can say whether its process lives."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One marker file that is there."""

    path: Path
    standing: Standing
    text: str
    """A sentence for a person, with the mend."""


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """The marker that a watch publishes."""

    pid: int
    start_ticks: int
    boot_id: str
    watch: str
    program: str = _PROGRAM


class Published(msgspec.Struct, frozen=True):
    """A marker of ours that is out: where, and the exact content that is ours to remove."""

    path: Path
    content: bytes


def read_marker(path: Path) -> Marker | None:
    """Read what a marker says; `None` if there is none.

    Raises:
        PathError: something stands there that is no marker of a known form.
        LongwatchError: it cannot be read.
    """
    content = _content(path)
    return None if content is None else _parse(content, path)


def living(marker: Marker) -> bool:
    """True if the process that the marker means runs now. A zombie is dead; what cannot be told apart lives."""
    if marker.boot_id not in {None, boot_id()}:
        return False
    stat = read_stat(marker.pid)
    if stat is None:
        # A process may be hidden from /proc and yet be there.
        return psutil.pid_exists(marker.pid)
    return not stat.dead and (marker.start is None or _fits(marker.start, stat.start_ticks, marker.pid))


def inspect(path: Path) -> Finding | None:
    """Say what a marker file means now; `None` if there is none, or if it names this very process."""
    try:
        marker = read_marker(path)
    except LongwatchError as error:
        text = f"{error}; if its tool is not at work, remove it, or take it out of [host] markers"
        return Finding(path=path, standing=Standing.UNREADABLE, text=text)
    if marker is None or (marker.pid == os.getpid() and living(marker)):
        return None
    if living(marker):
        text = f"{path} names process {marker.pid}, which is at work: wait until it has ended"
        return Finding(path=path, standing=Standing.LIVE, text=text)
    text = f"{path} is stale: process {marker.pid} of its tool is gone; remove it when you have looked"
    return Finding(path=path, standing=Standing.STALE, text=text)


def fence(paths: Iterable[Path]) -> tuple[Finding, ...]:
    """Return the stale markers, for the report; nothing is ever removed.

    Raises:
        NotReadyError: a marker names a live process, or nobody can say; the message has all that do.
    """
    found = [finding for path in paths if (finding := inspect(path)) is not None]
    refusing = [finding.text for finding in found if finding.standing is not Standing.STALE]
    if refusing:
        raise NotReadyError("another tool may be at work here: " + "; ".join(refusing))
    return tuple(found)


def publish(path: Path, watch_dir: Path, identity: Identity) -> Published:
    """Put our own marker at `path`. One that an earlier run of this watch left there is replaced, nothing else.

    Raises:
        NotReadyError: somebody else's file stands there, or ours with a live process.
    """
    watch = os.fsencode(watch_dir).decode(errors="backslashreplace")
    mine = Own(pid=identity.pid, start_ticks=identity.start_ticks, boot_id=identity.boot_id, watch=watch)
    content = msgspec.json.encode(mine) + b"\n"
    _clear_own(path, watch)
    try:
        files.create(path, content, mode=0o644)
    except IntegrityError as error:
        raise NotReadyError(f"{path} is somebody else's marker: {error}") from error
    return Published(path, content)


def withdraw(published: Published) -> bool:
    """Remove our own marker; False if it is gone, or if another file stands in its place."""
    try:
        content = files.read_bounded(published.path, _MAX_BYTES)
    except (FileNotFoundError, PathError):
        return False
    if content != published.content:
        return False
    files.remove_recorded(published.path, published.path.parent)
    return True


def _clear_own(path: Path, watch: str) -> None:
    """Remove what a dead supervisor of this watch left at `path`, and nothing else."""
    try:
        content = files.read_bounded(path, _MAX_BYTES)
        left = msgspec.json.decode(content, type=Own)
    except (FileNotFoundError, PathError, msgspec.DecodeError):
        return
    if left.program != _PROGRAM or left.watch != watch:
        return
    if not living(Marker(pid=left.pid, start=left.start_ticks, boot_id=left.boot_id)):
        withdraw(Published(path, content))


def _content(path: Path) -> bytes | None:
    try:
        # Some tools link to the file of the moment; what is at the end of the link must be a regular file.
        return files.read_bounded(Path(os.path.realpath(path)), _MAX_BYTES)
    except FileNotFoundError:
        if path.is_symlink():
            raise PathError(f"{path} is a symbolic link to nothing") from None
        return None


def _parse(content: bytes, path: Path) -> Marker:
    found = _from_text(content) or _from_json(content)
    if found is None or not 0 < found.pid <= _MAX_PID:
        raise PathError(f"{path} names no process in a form that Longwatch knows")
    return found


def _from_text(content: bytes) -> Marker | None:
    found = _TEXT.fullmatch(content.decode(errors="replace"))
    if found is None:
        return None
    # A third word means a form of its own, and then the second word may be anything, a port for instance.
    return Marker(pid=int(found[1]), start=None if found[3] else _moment(found[2]))


def _from_json(content: bytes) -> Marker | None:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    levels = [value, *(inner for inner in value.values() if isinstance(inner, dict))]
    return next((marker for level in levels if (marker := _from_object(level)) is not None), None)


def _from_object(value: dict[str, Any]) -> Marker | None:
    pid = next((number for key in _PID_KEYS if (number := _whole(value.get(key))) is not None), None)
    if pid is None:
        return None
    ticks = _whole(value.get("start_ticks"))
    moments = (_moment(value.get(key)) for key in _START_KEYS)
    start = ticks if ticks is not None else next((moment for moment in moments if moment is not None), None)
    boot = value.get("boot_id")
    return Marker(pid=pid, start=start, boot_id=boot if isinstance(boot, str) else None)


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(value: Any) -> float | None:
    """Read a start time: a number, digits, or ISO 8601 with its zone; anything else says nothing."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < _ABSURD else None
    if not isinstance(value, str):
        return None
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]+)?", value):
        return float(value)
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    # Without a zone it may be local time or UTC: too far apart to decide anything by it.
    return read.timestamp() if read.tzinfo else None


def _fits(start: float, start_ticks: int, pid: int) -> bool:
    """True if the process that has this pid now may be the one that was marked at `start`."""
    if start == start_ticks:
        return True
    if start < _FIRST_EPOCH_S:
        return False
    started_s = start / 1000 if start >= _FIRST_EPOCH_MS else start
    try:
        created_s = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return False
    # Tools write when they began their work, which may be long after they began to run; but whoever got the pid
    # later began to run after the marker was written.
    return created_s <= started_s + _TOLERANCE_S
