"""Remembers the digests of files that have not changed (specification K30).

A file is known by its *stamp*: device, inode, size, mtime and ctime, both in nanoseconds. Only the kernel sets ctime, so
content cannot be exchanged under an old stamp. The one gap is a change within the resolution of the file system's
clock; a file younger than two seconds therefore has no stamp at all, when it is stored and when it is looked up.
"""

import hashlib
import os
import struct
from pathlib import Path

from longwatch.kernel import files

Stamp = bytes
"""What a file is known by; empty if it is too young to be known."""

YOUNG_NS = 2_000_000_000
_STAMP = struct.Struct("<QQqqq")
_RECORD = struct.Struct(f"{_STAMP.size}s32s")
_MAGIC = b"lwstat1\n"
_MAX_RECORDS = 1_000_000
_pack = _STAMP.pack


def stamp(facts: os.stat_result, now_ns: int) -> Stamp:
    """What the file is known by, or nothing if it changed in the two seconds before `now_ns` or in the future."""
    mtime_ns, ctime_ns = facts.st_mtime_ns, facts.st_ctime_ns
    edge_ns = now_ns - YOUNG_NS
    if mtime_ns >= edge_ns or ctime_ns >= edge_ns:
        return b""
    return _pack(facts.st_dev, facts.st_ino, facts.st_size, mtime_ns, ctime_ns)


class StatCache:
    """Digests by stamp in one file, read when first asked. A damaged file is an empty cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored: dict[bytes, bytes] | None = None
        self._used: dict[bytes, bytes] = {}

    def get(self, stamps: list[Stamp]) -> list[bytes | None]:
        """Return the SHA-256 for each stamp, as 32 bytes, or `None` where it is not known."""
        stored = self._load()
        found = list(map(stored.get, stamps))
        self._used.update((key, value) for key, value in zip(stamps, found, strict=True) if value)
        return found

    def put(self, known: dict[Stamp, bytes]) -> None:
        """Remember digests in the file; empty stamps are left out. What was used is kept first, the rest by room.

        Raises:
            NotReadyError, LongwatchError: as `files.show`.
        """
        known = {key: sha256 for key, sha256 in known.items() if key}
        if not known:
            return
        stored = self._load()
        stored.update(known)
        self._used.update(known)
        kept = {**self._used, **stored}
        body = b"".join(key + value for key, value in list(kept.items())[:_MAX_RECORDS])
        data = _MAGIC + body
        files.show(self._path, data + hashlib.sha256(data).digest())

    def _load(self) -> dict[bytes, bytes]:
        if self._stored is None:
            self._stored = _parse(self._read())
        return self._stored

    def _read(self) -> bytes:
        try:
            return files.read_bounded(self._path, len(_MAGIC) + _MAX_RECORDS * _RECORD.size + 32)
        except FileNotFoundError:
            return b""


def _parse(data: bytes) -> dict[bytes, bytes]:
    view = memoryview(data)
    body, seal = view[:-32], view[-32:]
    if body[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != seal:
        return {}
    records = body[len(_MAGIC) :]
    if len(records) % _RECORD.size:
        return {}
    return dict(_RECORD.iter_unpack(records))
