"""Remembers the digests of files that have not changed (specification K30).

A file is known by its *stamp*: device, inode, size, mtime and ctime, both in nanoseconds. Only the kernel sets ctime, so
content cannot be exchanged under an old stamp. The one gap is a change within the resolution of the file system's
clock; a file younger than two seconds therefore has no stamp at all, when it is stored and when it is looked up.
"""

import hashlib
import struct
from collections.abc import Iterable
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.walking import STAMP

_RECORD = struct.Struct(f"{STAMP.size}s32s")
_MAX_RECORDS = 1_000_000
_SEAL_BYTES = 32
_MAX_BYTES = 1024**3


class StatCache:
    """Digests by stamp in one file, and beside it everything about the one tree that was bound last.

    Both are read when first asked. A damaged file is an empty one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tree = path.with_name(path.name + ".tree")
        self._known: dict[bytes, bytes] | None = None

    def known(self) -> dict[bytes, bytes]:
        """Return all digests, as 32 bytes each, by stamp."""
        if self._known is None:
            records = _unsealed(self.path)
            self._known = {} if len(records) % _RECORD.size else dict(_RECORD.iter_unpack(records))
        return self._known

    def put(self, fresh: dict[bytes, bytes], used: Iterable[bytes]) -> None:
        """Remember digests in the file; empty stamps are left out.

        What is `fresh` or was `used` is kept first, anything else as far as there is room.

        Raises:
            NotReadyError, LongwatchError: as `files.show`.
        """
        fresh = {mark: sha256 for mark, sha256 in fresh.items() if mark}
        if not fresh:
            return
        known = self.known()
        known.update(fresh)
        order = dict.fromkeys((*fresh, *filter(known.__contains__, used), *known))
        _seal(self.path, b"".join(mark + known[mark] for mark in list(order)[:_MAX_RECORDS]))

    def recall_tree(self, fingerprint: bytes) -> bytes | None:
        """Return what was remembered under exactly this fingerprint, which covers every path, mode and stamp."""
        content = _unsealed(self._tree)
        if not fingerprint or content[: len(fingerprint)] != fingerprint:
            return None
        return bytes(content[len(fingerprint) :])

    def remember_tree(self, fingerprint: bytes, content: bytes) -> None:
        """Remember a whole tree in place of the one before; not if it has no fingerprint."""
        if fingerprint:
            _seal(self._tree, fingerprint + content)


def _seal(path: Path, content: bytes) -> None:
    files.show(path, hashlib.sha256(content).digest() + content)


def _unsealed(path: Path) -> memoryview:
    try:
        data = memoryview(files.read_bounded(path, _MAX_BYTES))
    except FileNotFoundError:
        return memoryview(b"")
    content = data[_SEAL_BYTES:]
    return content if hashlib.sha256(content).digest() == data[:_SEAL_BYTES] else memoryview(b"")
