"""Remembers the digests of files that have not changed (specification K30).

A file is known by its *stamp*: device, inode, size, mtime and ctime, both in nanoseconds. Only the kernel sets ctime, so
content cannot be exchanged under an old stamp. The one gap is a change within the resolution of the file system's
clock; a file younger than two seconds therefore has no stamp at all, when it is stored and when it is looked up.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.walking import MAGIC, RECORD, SEAL_BYTES, parse

_MAX_RECORDS = 1_000_000


class StatCache:
    """Digests by stamp in one file, read when first asked. A damaged file is an empty cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[bytes, bytes] | None = None

    def known(self) -> dict[bytes, bytes]:
        """Return all digests, as 32 bytes each, by stamp."""
        if self._known is None:
            self._known = parse(self._read())
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
        data = MAGIC + b"".join(mark + known[mark] for mark in list(order)[:_MAX_RECORDS])
        files.show(self.path, data + hashlib.sha256(data).digest())

    def _read(self) -> bytes:
        try:
            return files.read_bounded(self.path, len(MAGIC) + _MAX_RECORDS * RECORD.size + SEAL_BYTES)
        except FileNotFoundError:
            return b""
