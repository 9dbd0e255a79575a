"""Folders that are whole or not there: checkpoints and adapters (L12, L26).

A folder is filled under another name with files and a manifest of their digests, each fsynced; then comes a marker that
binds the manifest, then the rename and an fsync of the parent. A crash leaves at most a `.staging-*` that the next start sweeps.
"""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import Digest, of_bytes
from longwatch.kernel.errors import IntegrityError, LongwatchError, PathError

MANIFEST = "manifest.json"
MARKER = "COMPLETE"
MAX_BYTES = 8 * 1024**3
_STAGING = ".staging-"
_SMALL_BYTES = 1024**2


class Listed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file as its manifest lists it."""

    name: str
    sha256: Digest
    size_bytes: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sealed folder holds, sorted by name."""

    files: tuple[Listed, ...]

    @property
    def digest(self) -> Digest:
        """One digest for names and contents."""
        return of_bytes(msgspec.json.encode(self))


def manifest_of(contents: Mapping[str, bytes]) -> Manifest:
    """Pure: list the files that a folder would hold."""
    listed = (
        Listed(name=name, sha256=of_bytes(data), size_bytes=len(data)) for name, data in contents.items()
    )
    return Manifest(files=tuple(sorted(listed, key=lambda one: one.name)))


def publish(folder: Path, contents: Mapping[str, bytes]) -> Manifest:
    """Make `folder` with these files, whole and durable; it must not exist yet, its parent must.

    Raises:
        NotReadyError: the disk is full; nothing is left behind.
        LongwatchError: it exists, or cannot be written.
    """
    manifest = manifest_of(contents)
    staging = folder.with_name(f"{_STAGING}{secrets.token_hex(8)}")
    files.make_folder(staging)
    try:
        for name, data in (*contents.items(), (MANIFEST, msgspec.json.encode(manifest))):
            files.show(staging / name, data)
        # All at once at the end, because waiting for the disk is most of what a checkpoint costs.
        for name in (*contents, MANIFEST):
            _sync(staging / name)
        files.replace(staging / MARKER, manifest.digest.encode("ascii"))
        rename(staging, folder)
    except BaseException:
        files.remove_recorded(staging, folder.parent)
        raise
    return manifest


def rename(source: Path, target: Path) -> None:
    """Rename a folder inside its parent, durably; a folder with content at `target` is never replaced.

    Raises:
        LongwatchError: it cannot be renamed.
    """
    try:
        source.rename(target)
    except OSError as error:
        raise LongwatchError(
            f"cannot rename {source} to {target}: {error.strerror}; move away what stands there"
        ) from error
    _sync(target.parent)


def read(folder: Path, max_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """Return the files of a sealed folder, each checked against the manifest, and the manifest against the marker.

    Raises:
        IntegrityError: anything is missing, changed, cut, added, or no regular file.
    """
    manifest = _manifest(folder)
    expected = {one.name for one in manifest.files} | {MANIFEST, MARKER}
    found = set(os.listdir(folder))  # noqa: PTH208 - names are compared, not paths
    if found != expected:
        raise IntegrityError(f"{folder} holds other files than its manifest: {sorted(found ^ expected)}")
    return {one.name: _checked(folder / one.name, one, max_bytes) for one in manifest.files}


def sweep(parent: Path) -> None:
    """Remove what writers left behind that were killed half-way."""
    for leftover in sorted(parent.glob(f"{_STAGING}*")):
        files.remove_recorded(leftover, parent)


def _sync(path: Path) -> None:
    """Wait until the disk has a file or a folder that was written before."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise LongwatchError(f"cannot write {path} to the disk: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _manifest(folder: Path) -> Manifest:
    data = _bytes(folder / MANIFEST, _SMALL_BYTES)
    if _bytes(folder / MARKER, _SMALL_BYTES) != of_bytes(data).encode("ascii"):
        raise IntegrityError(f"the marker of {folder} does not fit its manifest: one of them was damaged")
    try:
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"{folder / MANIFEST} is no manifest: {error}") from error


def _checked(path: Path, listed: Listed, max_bytes: int) -> bytes:
    data = _bytes(path, max_bytes)
    if of_bytes(data) != listed.sha256:
        raise IntegrityError(f"{path} is not what its manifest lists: it was damaged or changed")
    return data


def _bytes(path: Path, max_bytes: int) -> bytes:
    try:
        return files.read_bounded(path, max_bytes)
    except FileNotFoundError as error:
        raise IntegrityError(f"{path} is missing: the folder is not whole") from error
    except PathError as error:
        raise IntegrityError(str(error)) from error
