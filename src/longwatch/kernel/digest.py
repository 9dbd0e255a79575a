"""Digests, and bindings: named sets of files that must still be what they were before work goes on (K29, K30)."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NewType

import msgspec

from longwatch.kernel import hashing, treescan
from longwatch.kernel.errors import IntegrityError, LongwatchError, NotReadyError, PathError
from longwatch.kernel.files import contained, normal
from longwatch.kernel.hashing import Hashed, hash_files
from longwatch.kernel.statcache import StatCache
from longwatch.kernel.walking import Columns

Digest = NewType("Digest", str)
"""A SHA-256 as 64 lower-case hexadecimal digits. Text from outside becomes one through `digest`."""

_HEX = re.compile(r"[0-9a-f]{64}")


class Kind(StrEnum):
    """What stands at a path. Changing it changes the binding even if the content stays."""

    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"
    """A symbolic link; its digest is that of its target's text."""


_KIND_BITS = 0o170000 | stat.S_IXUSR
_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFREG | stat.S_IXUSR: Kind.EXECUTABLE,
    stat.S_IFLNK: Kind.LINK,
    stat.S_IFLNK | stat.S_IXUSR: Kind.LINK,
}


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a path is bound to."""

    digest: Digest
    kind: Kind = Kind.FILE


_decoder = msgspec.msgpack.Decoder(dict[str, Entry])


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of path -> digest that must hold. Paths are relative, with `/`, sorted."""

    name: str
    entries: Mapping[str, Entry]

    @property
    def digest(self) -> Digest:
        """One digest for the whole set, independent of its name."""
        return of_bytes(msgspec.json.encode(sorted(self.entries.items())))


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Every path at which two bindings disagree, sorted."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.new)

    def __str__(self) -> str:
        named = (("changed", self.changed), ("missing", self.missing), ("new", self.new))
        return "; ".join(f"{what}: {', '.join(map(repr, paths))}" for what, paths in named if paths)


def digest(text: str) -> Digest:
    """Read a digest that came from outside.

    Raises:
        IntegrityError: it is not 64 lower-case hexadecimal digits.
    """
    if not _HEX.fullmatch(text):
        raise IntegrityError(f"{text[:80]!r} is no SHA-256: 64 digits from 0-9a-f are needed")
    return Digest(text)


def of_bytes(data: bytes) -> Digest:
    """SHA-256 of `data`."""
    return Digest(hashlib.sha256(data).hexdigest())


def of_file(path: Path) -> Digest:
    """SHA-256 of a regular file; links are not followed and nothing blocks.

    Raises:
        FileNotFoundError: there is nothing at `path`.
        PathError: something else than a regular file stands there.
        LongwatchError: it cannot be read.
    """
    with _explained(path, missing=True):
        return Digest(hashing.hash_file(os.fspath(path)).sha256.hex())


def tree(root: Path, *, without: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Relative paths of all files and links below `root`, sorted. Empty folders count for nothing, as in git.

    `without` names relative paths, files or whole folders, that are left out.

    Raises:
        PathError: a FIFO, socket or device is there, or a name is not UTF-8.
    """
    with _explained(root):
        return tuple(sorted(treescan.scan(root, without).paths))


def bind(
    name: str,
    root: Path,
    paths: Iterable[str] | None = None,
    *,
    without: frozenset[str] = frozenset(),
    cache: StatCache | None = None,
    rehash: bool = False,
) -> Binding:
    """Bind files below `root`: those at `paths` (a folder stands for everything in it), or the whole tree.

    With a `cache`, unchanged files are not read again; `rehash` reads them all the same and renews the cache.

    Raises:
        IntegrityError: there is nothing at one or more of `paths`; all are named.
        PathError: a path leaves `root`, or a FIFO, socket or device is there.
        NotReadyError: a file changed while it was read.
    """
    with _explained(root):
        if paths is None:
            return Binding(name=name, entries=_whole(root, without, cache, rehash=rehash))
        found, missing = _look_up(root, paths, without)
        if missing:
            raise IntegrityError(f"{name}: missing below {root}: {', '.join(map(repr, missing))}")
        return Binding(name=name, entries=_entries(root, found, cache, rehash=rehash))


def rebind(expected: Binding, root: Path, *, cache: StatCache | None = None, rehash: bool = False) -> Binding:
    """Bind what stands now at the paths of `expected`; paths with nothing there are left out."""
    with _explained(root):
        found, _ = _look_up(root, expected.entries, frozenset())
        return Binding(name=expected.name, entries=_entries(root, found, cache, rehash=rehash))


def differences(expected: Binding, actual: Binding) -> Differences:
    """Pure: every path that is not what it was."""
    before, after = expected.entries, actual.entries
    return Differences(
        changed=tuple(sorted(path for path in before if path in after and before[path] != after[path])),
        missing=tuple(sorted(before.keys() - after.keys())),
        new=tuple(sorted(after.keys() - before.keys())),
    )


def check(expected: Binding, actual: Binding) -> None:
    """Return if both bind the same.

    Raises:
        IntegrityError: they differ; the message names every path that changed, is missing or is new.
    """
    found = differences(expected, actual)
    if found:
        raise IntegrityError(f"{expected.name} is not what was bound; {found}. Restore it, or bind it anew.")


def _whole(root: Path, without: frozenset[str], cache: StatCache | None, *, rehash: bool) -> dict[str, Entry]:
    """Bind a whole tree. If nothing at all has changed since the last time, all of it is taken from the cache at once."""
    with treescan.walk(root, without) as walk:
        fingerprint = walk.fingerprint()
        content = cache.recall_tree(fingerprint) if cache and not rehash else None
        if content is not None:
            return _decoder.decode(content)
        found = walk.columns()
    return _entries(root, found, cache, rehash=rehash, fingerprint=fingerprint)


def _look_up(root: Path, paths: Iterable[str], without: frozenset[str]) -> tuple[Columns, tuple[str, ...]]:
    wanted = sorted({normal(path) for path in paths})
    for folder in {os.path.dirname(path) or "." for path in wanted}:  # noqa: PTH120 - a hot loop over texts
        contained(root, folder)
    return treescan.look_up(root, wanted, without)


def _entries(
    root: Path, found: Columns, cache: StatCache | None, *, rehash: bool, fingerprint: bytes = b""
) -> dict[str, Entry]:
    known = cache.known() if cache and not rehash else {}
    digests = list(map(known.get, found.stamps))
    fresh = _hash(os.fspath(root), found, [place for place, known in enumerate(digests) if known is None])
    for place, one in fresh.items():
        digests[place] = one.sha256
    entries = {
        path: Entry(Digest(sha256.hex()), _KINDS[mode & _KIND_BITS])
        for path, mode, sha256 in zip(found.paths, found.modes, digests, strict=True)
        if sha256 is not None
    }
    if cache:
        _remember(cache, found, fresh, fingerprint, entries)
    return entries


def _remember(
    cache: StatCache, found: Columns, fresh: dict[int, Hashed], fingerprint: bytes, entries: dict[str, Entry]
) -> None:
    """Remember what was read, but nothing that changed between the listing and the reading: it has another stamp."""
    same = {one.stamp: one.sha256 for place, one in fresh.items() if found.stamps[place] == one.stamp}
    cache.put(same, found.stamps)
    if len(same) == len(fresh):
        cache.remember_tree(fingerprint, msgspec.msgpack.encode(entries))


def _hash(base: str, found: Columns, places: list[int]) -> dict[int, Hashed]:
    """Hash what stands at these places: the content of files, the target of links."""
    links = [place for place in places if stat.S_ISLNK(found.modes[place])]
    regular = [place for place in places if not stat.S_ISLNK(found.modes[place])]
    hashed = dict(
        zip(regular, hash_files([f"{base}/{found.paths[place]}" for place in regular]), strict=True)
    )
    for place in links:
        path = f"{base}/{found.paths[place]}"
        target = os.fsencode(os.readlink(path))  # noqa: PTH115 - Path would normalise it
        hashed[place] = Hashed(hashing.stamp(os.lstat(path)), hashlib.sha256(target).digest())
    return hashed


@contextmanager
def _explained(root: Path, *, missing: bool = False) -> Iterator[None]:
    """Turn what the readers raise into our own errors; with `missing`, let `FileNotFoundError` through."""
    try:
        yield
    except FileNotFoundError as error:
        if missing:
            raise
        raise LongwatchError(
            f"{error.filename or root} does not exist or went away: {error.strerror}"
        ) from error
    except hashing.ChangedError as error:
        raise NotReadyError(f"{error.filename} changed while it was read: end what writes to it") from error
    except hashing.IrregularError as error:
        raise PathError(f"{error.filename} is no regular file: only files and links can be bound") from error
    except OSError as error:
        raise LongwatchError(f"cannot read {error.filename or root}: {error.strerror}") from error
