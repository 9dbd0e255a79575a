"""All logs of a watch together stay below a bound (specification K24): the oldest go first."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from longwatch.kernel import files


def prune(
    folders: Iterable[Path], keep_bytes: int, *, suffixes: tuple[str, ...] = (".log", "log.txt")
) -> tuple[Path, ...]:
    """Remove the oldest logs in these folders until what stays fits; return what was removed."""
    logs = sorted((entry for folder in folders for entry in _logs(folder, suffixes)), key=_age)
    excess = sum(size for _, size, _ in logs) - keep_bytes
    removed: list[Path] = []
    for path, size, folder in logs:
        if excess <= 0:
            break
        files.remove_recorded(path, folder)
        removed.append(path)
        excess -= size
    return tuple(removed)


def _logs(folder: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[Path, int, Path]]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if name.endswith(suffixes) and not path.is_symlink():
                yield path, path.lstat().st_size, folder


def _age(log: tuple[Path, int, Path]) -> float:
    return log[0].lstat().st_mtime
