"""Walks folders and looks their files up in the cache: the loop that a hundred thousand files go through.

The interpreter runs it on one core only, so for large trees `treescan` gives shares of the work to helper processes,
each running this very file. It therefore imports the standard library only, and starts in a few hundredths of a second.
"""

import hashlib
import marshal
import os
import stat
import struct
import sys
from typing import NamedTuple

YOUNG_NS = 2_000_000_000
"""A file that changed in the last so many nanoseconds has no stamp."""
STAMP = struct.Struct("<QQqqq")
RECORD = struct.Struct(f"{STAMP.size}s32s")
MAGIC = b"lwstat1\n"
SEAL_BYTES = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TYPE_BITS = stat.S_IFMT(0o777777)
_IS_FOLDER = stat.S_IFDIR
_pack = STAMP.pack


class Columns(NamedTuple):
    """What was found: paths relative to the base, modes, stamps, and digests where the cache knows them."""

    paths: list[str]
    modes: list[int]
    stamps: list[bytes]
    digests: list[bytes | None]


class Request(NamedTuple):
    """A share of the work. Folders end with `/`, but for the base itself, which is empty."""

    base: str
    folders: list[str]
    without: frozenset[str]
    now_ns: int
    cache: str


def stamp(facts: os.stat_result, now_ns: int) -> bytes:
    """What the file is known by, or nothing if it changed in the two seconds before `now_ns` or in the future."""
    return _mark(facts, now_ns - YOUNG_NS)


def _mark(facts: os.stat_result, edge_ns: int) -> bytes:
    mtime_ns, ctime_ns = facts.st_mtime_ns, facts.st_ctime_ns
    if mtime_ns >= edge_ns or ctime_ns >= edge_ns:
        return b""
    return _pack(facts.st_dev, facts.st_ino, facts.st_size, mtime_ns, ctime_ns)


def parse(data: bytes) -> dict[bytes, bytes]:
    """Read a cache: digests by stamp. Anything damaged is an empty one."""
    view = memoryview(data)
    body, seal = view[:-SEAL_BYTES], view[-SEAL_BYTES:]
    records = body[len(MAGIC) :]
    if body[: len(MAGIC)] != MAGIC or len(records) % RECORD.size or hashlib.sha256(body).digest() != seal:
        return {}
    return dict(RECORD.iter_unpack(records))


def walk(request: Request, known: dict[bytes, bytes]) -> Columns:
    """List everything below the folders that is no folder itself. Links are not followed.

    Raises:
        OSError: a folder cannot be read.
    """
    found = Columns([], [], [], [])
    waiting = list(request.folders)
    while waiting:
        waiting += step(request, waiting.pop(), known, found)
    return found


def step(request: Request, folder: str, known: dict[bytes, bytes], found: Columns) -> list[str]:
    """List one folder: add its files to `found`, and return the folders in it."""
    without, edge_ns, get = request.without, request.now_ns - YOUNG_NS, known.get
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
                mark = _mark(facts, edge_ns)
                found.paths.append(path)
                found.modes.append(mode)
                found.stamps.append(mark)
                found.digests.append(get(mark))
    finally:
        os.close(descriptor)
    return folders


def _serve() -> None:
    request = Request(*marshal.loads(sys.stdin.buffer.read()))  # noqa: S302 - the parent is this same program
    try:
        with open(request.cache, "rb") as file:  # noqa: PTH123 - pathlib would double the time to start
            known = parse(file.read())
    except FileNotFoundError:
        known = {}
    try:
        answer = marshal.dumps(tuple(walk(request, known)))
    except OSError as error:
        answer = marshal.dumps((error.errno, error.filename))
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    _serve()
