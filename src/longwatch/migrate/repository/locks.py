"""Lock files that a killed git left behind. One is removed only when no live process can hold it (M29).

Git closes its lock files while hooks and editors run, so that an open descriptor is no full answer: any live git
process that works in the repository counts as a holder. Processes on other machines are not seen.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from longwatch.kernel.errors import NotReadyError
from longwatch.migrate.repository.git import Git

STRANDED_AFTER_S = 1.0
PATIENCE_S = 15.0
_POLL_S = 0.1


def clear_stranded(
    git: Git,
    refs: Iterable[str],
    *,
    stranded_after_s: float = STRANDED_AFTER_S,
    patience_s: float = PATIENCE_S,
) -> tuple[str, ...]:
    """Wait until nothing locks the index, HEAD or `refs`; name the lock files that had to be removed.

    Raises `NotReadyError` if a live process still holds one after `patience_s`.
    """
    deadline = time.monotonic() + patience_s
    removed: list[str] = []
    while locks := list(_locks(git, refs)):
        live = holders(git, locks)
        if not live:
            removed += [lock.name for lock in locks if _remove_if_old(lock, stranded_after_s)]
        elif time.monotonic() >= deadline:
            raise NotReadyError(
                f"{locks[0]} is held by process {live[0]}: wait until it has ended, or end it, then try again"
            )
        time.sleep(_POLL_S if any(lock.exists() for lock in locks) else 0.0)
    return tuple(removed)


def holders(git: Git, locks: Iterable[Path]) -> tuple[int, ...]:
    """Live processes that may hold one of the locks: it is open there, or they are git at work in the repository."""
    names = {os.path.realpath(lock) for lock in locks}
    places = tuple(os.path.realpath(place) for place in (git.root, git.git_dir(), git.common_dir()))
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return tuple(
        pid for pid in pids if pid != os.getpid() and _may_hold(Path("/proc", str(pid)), names, places)
    )


def _locks(git: Git, refs: Iterable[str]) -> Iterator[Path]:
    folder = git.git_dir()
    fixed = ("index.lock", "HEAD.lock", "packed-refs.lock", *(f"{ref}.lock" for ref in refs))
    candidates = (*git.internals(*fixed), *folder.glob("next-index-*.lock"))
    return (lock for lock in candidates if lock.exists())


def _remove_if_old(lock: Path, stranded_after_s: float) -> bool:
    """Remove a lock unless it is young: its maker may have ended between two looks."""
    with suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime >= stranded_after_s:
            lock.unlink()
            return True
    return False


def _may_hold(process: Path, names: set[str], places: tuple[str, ...]) -> bool:
    try:
        if any(os.path.realpath(link) in names for link in (process / "fd").iterdir()):
            return True
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        pass  # somebody else's process; if it is a git, its working folder decides below
    return _is_git(process) and _works_in(process, places)


def _is_git(process: Path) -> bool:
    try:
        return (process / "comm").read_text().startswith("git") and _is_alive(process)
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_alive(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}


def _works_in(process: Path, places: tuple[str, ...]) -> bool:
    try:
        folder = os.readlink(process / "cwd")  # noqa: PTH115 - the text as the kernel gives it
    except PermissionError:
        return True  # it cannot be excluded
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(folder == place or folder.startswith(place + "/") for place in places)
