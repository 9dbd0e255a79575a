"""This user's cache: where it is, who may change it now, and how something appears in it whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longwatch.kernel import files


def cache_folder() -> Path:
    """Return this user's cache for Longwatch (XDG base directory specification)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "longwatch"


@contextmanager
def alone(cache: Path, what: str) -> Iterator[None]:
    """Hold the lock on one piece of work in the cache; a second caller waits for the first."""
    with files.locked(files.make_folder(cache) / f"{what}.lock"):
        yield


@contextmanager
def staging(cache: Path, name: str) -> Iterator[Path]:
    """Lend a folder that is empty at first, also after somebody was killed in it, and gone at the end."""
    folder = cache / name
    files.remove_recorded(folder, cache)
    try:
        yield files.make_folder(folder)
    finally:
        files.remove_recorded(folder, cache)


def publish(source: Path, target: Path) -> None:
    """Rename what is finished to its place on the same file system, durably."""
    source.replace(target)
    descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
