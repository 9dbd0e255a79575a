"""Walks folders: the loop that a hundred thousand files go through.

The interpreter runs it on one core only, so for large trees `treescan` gives shares of the work to helper processes,
each running this very file. It therefore imports the standard library only, and starts in a few hundredths of a second.
"""

import hashlib
import marshal
import os
import stat
import struct
import sys
from array import array
from typing import NamedTuple

YOUNG_NS = 2_000_000_000
"""A file that changed in the last so many nanoseconds has no stamp."""
STAMP = struct.Struct("<QQqqq")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TYPE_BITS = stat.S_IFMT(0o777777)
_IS_FOLDER = stat.S_IFDIR
_pack = STAMP.pack


class Columns(NamedTuple):
    """What was found: paths relative to the base, modes, and stamps."""

    paths: list[str]
    modes: list[int]
    stamps: list[bytes]


class Request(NamedTuple):
    """A share of the work. Folders end with `/`, but for the base itself, which is empty."""

    base: str
    folders: list[str]
    without: frozenset[str]
    now_ns: int


def stamp(facts: os.stat_result, now_ns: int) -> bytes:
    """What the file is known by, or nothing if it changed in the two seconds before `now_ns` or in the future."""
    return _mark(facts, now_ns - YOUNG_NS)


def _mark(facts: os.stat_result, edge_ns: int) -> bytes:
    mtime_ns, ctime_ns = facts.st_mtime_ns, facts.st_ctime_ns
    if mtime_ns >= edge_ns or ctime_ns >= edge_ns:
        return b""
    return _pack(facts.st_dev, facts.st_ino, facts.st_size, mtime_ns, ctime_ns)


def walk(request: Request) -> Columns:
    """List everything below the folders that is no folder itself. Links are not followed.

    Raises:
        OSError: a folder cannot be read.
    """
    found = Columns([], [], [])
    waiting = list(request.folders)
    while waiting:
        waiting += step(request, waiting.pop(), found)
    return found


def step(request: Request, folder: str, found: Columns) -> list[str]:
    """List one folder: add its files to `found`, and return the folders in it."""
    without, edge_ns = request.without, request.now_ns - YOUNG_NS
    folders = []
    descriptor = os.open(f"{request.base}/{folder}", _FOLDER)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                path = folder + entry.name
                if path in without:
                    continue
                facts = entry.stat(follow_symlinks=False)
                mode = facts.st_mode
                if mode & _TYPE_BITS == _IS_FOLDER:
                    folders.append(path + "/")
                    continue
                found.paths.append(path)
                found.modes.append(mode)
                found.stamps.append(_mark(facts, edge_ns))
    finally:
        os.close(descriptor)
    return folders


def fingerprint(found: Columns) -> bytes:
    """One digest over everything that was found; nothing if a file is too young to be known."""
    if b"" in found.stamps:
        return b""
    names = "\0".join(found.paths).encode("utf-8", "surrogateescape")
    return hashlib.sha256(b"".join((names, array("I", found.modes), *found.stamps))).digest()


def _serve() -> None:
    """Answer with the fingerprint of the share, or with an error; and with all of it if the parent then asks."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    request = Request(*marshal.load(source))  # noqa: S302 - the parent is this same program
    try:
        found = walk(request)
    except OSError as error:
        marshal.dump((error.errno, error.filename), sink)
        return
    marshal.dump((fingerprint(found),), sink)
    sink.flush()
    if source.read(1):
        marshal.dump(tuple(found), sink)


if __name__ == "__main__":
    _serve()
