"""Lists what stands below a folder, with stamps. Hot: a hundred thousand files take a fraction of a second."""

import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from longwatch.kernel import statcache
from longwatch.kernel.errors import PathError
from longwatch.kernel.statcache import Stamp

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BOUND = frozenset({stat.S_IFREG, stat.S_IFLNK})


class Scan(msgspec.Struct, frozen=True):
    """What was found, in columns: paths relative to the root, modes, and stamps (see `statcache`)."""

    paths: list[str]
    modes: list[int]
    stamps: list[Stamp]
    missing: list[str]


def scan(root: Path, without: frozenset[str]) -> Scan:
    """List all files and links below `root`, leaving out the paths in `without`. Links are never followed.

    Raises:
        PathError: a FIFO, socket or device is there, or a name is not UTF-8.
        OSError: a folder cannot be read.
    """
    found = Scan([], [], [], [])
    _descend(found, os.fspath(root), "", without, time.time_ns())
    return found


def look_up(root: Path, paths: Iterable[str], without: frozenset[str]) -> Scan:
    """List what stands at `paths`; a folder stands for everything in it. Otherwise as `scan`."""
    found = Scan([], [], [], [])
    base, now_ns = os.fspath(root), time.time_ns()
    for path in paths:
        try:
            facts = os.lstat(f"{base}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            found.missing.append(path)
            continue
        if stat.S_ISDIR(facts.st_mode):
            _descend(found, base, "" if path == "." else f"{path}/", without, now_ns)
        else:
            _take(found, path, facts, now_ns)
    return found


def _descend(found: Scan, base: str, start: str, without: frozenset[str], now_ns: int) -> None:
    waiting = [start]
    while waiting:
        prefix = waiting.pop()
        descriptor = os.open(f"{base}/{prefix}", _FOLDER)
        try:
            waiting += _list(found, descriptor, prefix, without, now_ns)
        finally:
            os.close(descriptor)


def _list(found: Scan, descriptor: int, prefix: str, without: frozenset[str], now_ns: int) -> list[str]:
    folders = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            path = prefix + entry.name
            if path in without:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(path + "/")
            else:
                _take(found, path, entry.stat(follow_symlinks=False), now_ns)
    return folders


def _take(found: Scan, path: str, facts: os.stat_result, now_ns: int) -> None:
    if stat.S_IFMT(facts.st_mode) not in _BOUND:
        raise PathError(f"{path!r} is a FIFO, socket or device: only files and links can be bound")
    if not path.isascii():
        _refuse_foreign_name(path)
    found.paths.append(path)
    found.modes.append(facts.st_mode)
    found.stamps.append(statcache.stamp(facts, now_ns))


def _refuse_foreign_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise PathError(f"{path!r} is no UTF-8 name: rename the file") from error
