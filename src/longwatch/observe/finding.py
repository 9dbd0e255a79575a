"""Which watches a page or a report is about: those that are named, and those that lie below a named folder."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.watch import Watch

DEPTH = 4
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


def watches(folders: Iterable[Path]) -> dict[str, Watch]:
    """Return the watches in these folders and below them, by a name that stays the same and is safe in an address.

    Raises:
        ConfigError: a folder is not there.
    """
    found: dict[str, Watch] = {}
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder here: name a watch, or a folder that holds watches")
        for root in sorted(_roots(folder.resolve(), DEPTH)):
            found.setdefault(name_of(root), Watch(root))
    return found


def name_of(root: Path) -> str:
    """Return the name of the watch in a folder."""
    return of_bytes(os.fsencode(root))[:12]


def _roots(folder: Path, depth: int) -> Iterator[Path]:
    """Yield folders that were made a watch. Links are not followed, and hidden folders hold none."""
    watch = Watch(folder)
    if watch.config.is_file() and watch.database.is_file():
        yield folder
    if depth == 0:
        return
    try:
        below = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except PermissionError:
        return
    for name in below:
        if not name.startswith(".") and name not in _SKIPPED:
            yield from _roots(folder / name, depth - 1)
