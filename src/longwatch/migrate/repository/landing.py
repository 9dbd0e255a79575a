"""How the paths of a change stand in the person's working tree and index: as before, as wanted, half way, or foreign.

Contents are compared by git itself with the person's own configuration, so that line ends and filters count as they
will in the commit. Only the paths of the change are looked at.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from longwatch.kernel import files
from longwatch.migrate.repository.checkout import index_info
from longwatch.migrate.repository.git import Entry, Git, names, nul
from longwatch.migrate.repository.scan import parents, printable


class Stand(StrEnum):
    """What is at a path."""

    BEFORE = "before"
    """As in the baseline."""
    AFTER = "after"
    """As in the candidate."""
    HALF = "half"
    """Missing, or cut short: what a killed git leaves of either."""
    FOREIGN = "foreign"
    """Somebody else's content."""


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of a change, with their entries at the baseline and at the candidate."""

    paths: tuple[str, ...]
    before: Mapping[str, Entry]
    after: Mapping[str, Entry]

    def deleted(self) -> frozenset[str]:
        """Paths that the candidate does not have."""
        return frozenset(path for path in self.paths if path not in self.after)


def sides(git: Git, baseline: str, candidate: str, paths: tuple[str, ...]) -> Sides:
    """Look the paths up in both commits."""
    wanted = frozenset(paths)
    before, after = (
        {entry.path: entry for entry in git.ls_tree(commit, *paths) if entry.path in wanted}
        for commit in (baseline, candidate)
    )
    return Sides(paths=paths, before=before, after=after)


def in_worktree(git: Git, both: Sides) -> dict[str, Stand]:
    """How each path stands in the working tree."""
    not_before, not_after = (_differing(git, both.paths, side) for side in (both.before, both.after))
    return {
        path: _stand(git, path, both, path not in not_before, path not in not_after) for path in both.paths
    }


def in_index(git: Git, both: Sides) -> dict[str, Stand]:
    """How each path stands in the index. There is no half way: git replaces the index as a whole."""
    listed = (
        record.partition("\t") for record in names(git.run("ls-files", "--stage", "-z", "--", *both.paths))
    )
    wanted = frozenset(both.paths)
    staged: dict[str, list[str]] = {}
    for described, _, path in listed:
        if path in wanted:
            staged.setdefault(path, []).append(described)
    return {path: _staged(staged.get(path, []), both, path) for path in both.paths}


def obstacles(git: Git, both: Sides) -> dict[str, str]:
    """What stands in the way of writing the paths without touching anything else, by path."""
    found = dict.fromkeys(
        frozenset(git.hidden_paths()).intersection(both.paths), "git is told not to look at it"
    )
    for path in both.after:
        reason = _in_the_way(git.root, path, both.deleted())
        if reason:
            found[path] = reason
    return found


def write(git: Git, both: Sides, commit: str) -> None:
    """Bring the paths of the candidate `commit` into the working tree and the index, and nothing else."""
    _restore(git, commit, both.paths, both.after)


def put_back(git: Git, both: Sides, baseline: str) -> tuple[str, ...]:
    """Bring the paths back to the baseline. Content that is not ours is kept as a blob; names the blobs, by path."""
    standing = in_worktree(git, both)
    foreign = [
        path for path, stand in standing.items() if stand is Stand.FOREIGN and (git.root / path).is_file()
    ]
    kept = tuple(f"{printable(path)}: git cat-file blob {_kept(git, path)}" for path in foreign)
    _restore(git, baseline, both.paths, both.before)
    return kept


def resulting_tree(git: Git, baseline: str, paths: tuple[str, ...]) -> str:
    """The tree that a commit of these paths of the working tree on `baseline` would have, without any hook."""
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        view = _quiet(git, GIT_INDEX_FILE=str(Path(scratch) / "index"))
        view.run("read-tree", baseline)
        named = nul(committed_paths(git, paths))
        view.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=named)
        return view.line("write-tree")


def committed_paths(git: Git, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths to name to `git commit`. A deleted file goes by itself where a folder took its place, or where a file
    or link took the place of its folder; naming it would make git look at the wrong thing.
    """
    root = git.root
    through = (path for path in paths if not any(_is_leaf(root, folder) for folder in parents(path)))
    return tuple(path for path in through if not _is_folder(root / path))


def _restore(git: Git, commit: str, paths: tuple[str, ...], side: Mapping[str, Entry]) -> None:
    """Bring the paths to what `side`, which is `commit`, has of them."""
    indexed = frozenset(names(git.run("ls-files", "-z", "--", *paths)))
    for path in paths:
        if path not in side and path not in indexed:
            _unlink(git.root, path)  # git knows nothing of it any more: an interrupted try left it
    # Where a file takes the place of a folder, git drops the folder's files before it looks for their names.
    dropped = frozenset(path for path in paths if path not in side and side.keys() & set(parents(path)))
    named = [path for path in paths if path in side or path in indexed - dropped]
    if named:
        _quiet(git).run(
            "restore", f"--source={commit}", "--staged", "--worktree", "--no-recurse-submodules",
            "--pathspec-from-file=-", "--pathspec-file-nul",
            stdin=nul(named),
        )  # fmt: skip


def _differing(git: Git, paths: Iterable[str], side: Mapping[str, Entry]) -> set[str]:
    """Paths whose content in the working tree is not that of one side."""
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        view = _quiet(git, GIT_INDEX_FILE=str(Path(scratch) / "index"))
        view.run("update-index", "-z", "--index-info", stdin=index_info(side.values()))
        view.maybe("update-index", "-q", "--refresh")
        differing = set(names(view.run("diff-files", "--name-only", "-z", "--no-ext-diff")))
    return differing | {path for path in paths if path not in side and _is_leaf(git.root, path)}


def _stand(git: Git, path: str, both: Sides, is_before: bool, is_after: bool) -> Stand:  # noqa: FBT001 - a table's row
    if is_before:
        return Stand.BEFORE
    if is_after:
        return Stand.AFTER
    return Stand.HALF if _is_half(git, path, both) else Stand.FOREIGN


def _is_half(git: Git, path: str, both: Sides) -> bool:
    """True if a killed git can have left this: nothing, or the beginning of a side's content."""
    file = git.root / path
    if not _is_leaf(git.root, path):
        return True
    if not stat.S_ISREG(file.lstat().st_mode):
        return False
    entries = (side[path] for side in (both.before, both.after) if path in side)
    whole = (git.run("cat-file", "--filters", f"--path={path}", entry.blob) for entry in entries)
    return any(_begins(file, content) for content in whole)


def _begins(file: Path, content: bytes) -> bool:
    size = file.stat().st_size
    return size < len(content) and files.read_bounded(file, size) == content[:size]


def _staged(described: list[str], both: Sides, path: str) -> Stand:
    for stand, side in ((Stand.BEFORE, both.before), (Stand.AFTER, both.after)):
        entry = side.get(path)
        if described == ([f"{entry.mode} {entry.blob} 0"] if entry else []):
            return stand
    return Stand.FOREIGN


def _in_the_way(root: Path, path: str, deleted: frozenset[str]) -> str:
    for folder in parents(path):
        if _is_leaf(root, folder) and folder not in deleted:
            return f"{printable(folder)} is no folder in your working tree"
    if not _is_folder(root / path):
        return ""
    below = (
        os.path.relpath(Path(where) / name, root)
        for where, _, inside in os.walk(root / path)
        for name in inside
    )
    other = sorted(set(below) - deleted)
    return f"your folder there holds {printable(other[0])}" if other else ""


def _kept(git: Git, path: str) -> str:
    return git.line("hash-object", "-w", "--no-filters", "--", path)


def _unlink(root: Path, path: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    if not _is_leaf(root, path):
        return
    files.remove_recorded(root / path, root)
    for folder in parents(path):
        if any((root / folder).iterdir()):
            break
        (root / folder).rmdir()


def _is_leaf(root: Path, path: str) -> bool:
    """True if there is something at the path, reached through folders only, and it is no folder itself."""
    reached = all(_is_folder(root / folder) for folder in parents(path))
    return reached and os.path.lexists(root / path) and not _is_folder(root / path)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _quiet(git: Git, **variables: str) -> Git:
    """The person's repository with their conversions, but without their hooks."""
    return git.with_config("core.hooksPath=/dev/null", "core.fsmonitor=false").with_variables(**variables)
