"""What no attempt may change, taken before and after it: the watch's own files and everything that git obeys (M16, M29).

The candidate's files are no part of this: they are in the worker's clone. What is fenced lies in the person's
repository and in the watch, where nothing of the worker has any business, sandboxed or not.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.digest import of_bytes, of_file
from longwatch.migrate.repository.git import Git

_GIT_FILES = (
    "config",
    "config.worktree",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "shallow",
)


class Fence(msgspec.Struct, frozen=True):
    """What was fenced, by a name that a person understands, with what it was. Values of settings are digests only."""

    entries: Mapping[str, str]


def take(git: Git, branch: str, protected: Iterable[Path], *, landing: bool = False) -> Fence:
    """Look at the fenced things now. Of folders in `protected` everything inside counts; what is missing counts too.

    With `landing` other attempts may land meanwhile, so where the branch stands is left out: the watch itself compares
    that with what it landed, before it begins anything. Raises `LongwatchError` if something cannot be read.
    """
    inside = {git.common_dir() / "hooks", *git.internals("hooks", *_GIT_FILES)}
    entries: dict[str, str] = {}
    for path in (*protected, *inside):
        entries |= _facts(git.root / path)
    return Fence(entries=entries | _settings(git) | _position(git, branch, landing=landing))


def differences(before: Fence, after: Fence, growing: Iterable[Path] = ()) -> tuple[str, ...]:
    """Name everything that is not as it was, with what happened to it; empty if nothing did.

    In `growing` folders the watch itself may put new files meanwhile; what was there must still be as it was.
    """
    names = sorted(before.entries.keys() | after.entries.keys())
    told = ((name, before.entries.get(name), after.entries.get(name)) for name in names)
    grown = tuple(f"{folder}/" for folder in growing)
    changed = ((name, old, new) for name, old, new in told if old != new)
    return tuple(
        _told(name, old, new) for name, old, new in changed if old is not None or not name.startswith(grown)
    )


def _told(name: str, old: str | None, new: str | None) -> str:
    if old is None:
        return f"new: {name}"
    return f"missing: {name}" if new is None else f"changed: {name}"


def _facts(path: Path) -> dict[str, str]:
    """One entry for each file at or below a path."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if not stat.S_ISDIR(mode):
        return {str(path): _content(path, mode)}
    found = {f"{path}/": f"folder {stat.S_IMODE(mode):o}"}
    for child in sorted(path.iterdir()):
        found |= _facts(child)
    return found


def _content(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return f"link {os.readlink(path)}"  # noqa: PTH115 - a Path would lose its `./` and `//`
    if not stat.S_ISREG(mode):
        return f"special {stat.S_IFMT(mode):o}"
    return f"file {stat.S_IMODE(mode):o} {of_file(path)}"


def _settings(git: Git) -> dict[str, str]:
    """Every effective setting of git, also those of files outside the repository. They may hold secrets."""
    gathered: dict[str, list[str]] = {}
    for key, value in git.configuration():
        gathered.setdefault(f"git setting {key}", []).append(value)
    return {name: of_bytes(msgspec.json.encode(values)) for name, values in gathered.items()}


def _position(git: Git, branch: str, *, landing: bool) -> dict[str, str]:
    names = {"branch that is checked out": git.branch(), "operation in progress": git.operation()}
    if not landing:
        names |= {f"branch {branch}": git.tip(branch), "commit that is checked out": git.head()}
    return {name: value for name, value in names.items() if value is not None}
