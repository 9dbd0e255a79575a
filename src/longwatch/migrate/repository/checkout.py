"""Folders that hold exactly one commit: the worker's private clone, and the clean checkout that is verified.

Both are repositories of their own that borrow the person's objects (git's *alternates*): nothing is registered in the
person's repository, so a folder that is removed, or was never finished, leaves nothing behind there. They have no
remotes, no credentials and no hooks, and none of the person's configuration. It follows that filters do not run: a
file of Git LFS is the pointer that is stored, and submodules are empty folders.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, PathError, RefusedError
from longwatch.migrate.repository.git import GITLINK, Entry, Git, names

BRANCH = "work"
"""The branch that a private clone has checked out."""
_CONFIG = b"""[gc]
	auto = 0
[maintenance]
	auto = false
[core]
	autocrlf = false
[user]
	name = Longwatch worker
	email = worker@longwatch.invalid
"""
_ALTERNATES_DEPTH = 5  # git itself follows no more


def private_clone(git: Git, commit: str, target: Path) -> None:
    """Make `target` a repository of its own with `commit` checked out, for a worker to write and commit in.

    It appears whole or not at all. Raises `RefusedError` if `target` exists, `GitError` if git cannot check it out.
    """
    if os.path.lexists(target):
        raise RefusedError(f"{target} exists: remove it before it is made again")
    part = target.with_name(f"{target.name}.part")
    files.make_folder(target.parent)
    files.remove_recorded(part, target.parent)
    clone = _empty(git, part)
    clone.run("checkout", "--quiet", "-B", BRANCH, commit)
    part.rename(target)


def clean_checkout(git: Git, commit: str, target: Path) -> None:
    """Make `target` a fresh checkout of exactly `commit`, and prove it with the person's repository.

    Raises `IntegrityError` if a file differs from the commit; otherwise as `private_clone`.
    """
    private_clone(git, commit, target)
    differing = unchanged(git, commit, target)
    if differing:
        raise IntegrityError(
            f"{target} is not what commit {commit} holds: {', '.join(differing[:10])}. Check the disk, and .gitattributes"
        )


def unchanged(git: Git, commit: str, folder: Path) -> tuple[str, ...]:
    """Names of the tracked files in `folder` that are not as in `commit`; empty if all are.

    Every file is read again; nothing that stands in the folder's own `.git` is believed. A new `.gitattributes` beside
    tracked files counts too, because it could hide a difference. Other untracked files do not count.
    """
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        view = git.outside(folder, Path(scratch) / "index")
        entries = fill_index(view, commit)
        # Exit code 1 says that something differs, which `diff-files` then names.
        view.maybe("update-index", "-q", "--refresh")
        differing = names(
            view.run("diff-files", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all")
        )
    return tuple(sorted({*differing, *_new_attributes(folder, entries)}))


def fill_index(view: Git, commit: str) -> tuple[Entry, ...]:
    """Fill the (new) index of `view` with the files of `commit`, and return every entry of the commit.

    Submodules stay out of the index, because git would look into their folders, which may hold a worker's repository.
    """
    entries = view.ls_tree(commit)
    view.run("update-index", "-z", "--index-info", stdin=index_info(e for e in entries if e.mode != GITLINK))
    return entries


def index_info(entries: Iterable[Entry]) -> bytes:
    """Entries in the form that `git update-index -z --index-info` reads."""
    return b"".join(os.fsencode(f"{entry.mode} {entry.blob}\t{entry.path}\0") for entry in entries)


def object_folders(git: Git) -> tuple[Path, ...]:
    """The folders that a clone borrows objects from: what a sandbox must show, read-only, for git to work in it."""
    found: list[Path] = []
    waiting = [(git.internal("objects").resolve(), 0)]
    while waiting:
        folder, depth = waiting.pop(0)
        if folder not in found and depth <= _ALTERNATES_DEPTH:
            found.append(folder)
            waiting += [(further, depth + 1) for further in _alternates(folder)]
    return tuple(found)


def remove(path: Path, root: Path) -> None:
    """Remove a clone or checkout (and what an interrupted creation left) below `root`, and prove that it is gone."""
    for folder in (path, path.with_name(f"{path.name}.part")):
        files.remove_recorded(folder, root)
        if os.path.lexists(folder):
            raise PathError(f"{folder} is still there after it was removed: look at what writes to it")


def _empty(git: Git, target: Path) -> Git:
    """A repository without commits at `target` that borrows the objects of `git` and nothing else."""
    form, is_shallow = git.line("rev-parse", "--show-object-format", "--is-shallow-repository").split()
    objects, shallow = git.internals("objects", "shallow")
    git.quiet().run(
        "init", "--quiet", "--template=", f"--object-format={form}", f"--initial-branch={BRANCH}", str(target)
    )
    own = target / ".git"
    files.replace(own / "config", (own / "config").read_bytes() + _CONFIG, 0o644)
    info = files.make_folder(own / "objects" / "info")
    files.replace(info / "alternates", os.fsencode(f"{objects.resolve()}\n"), 0o644)
    if is_shallow == "true":
        files.replace(own / "shallow", shallow.read_bytes(), 0o644)
    # No filter is configured in it: that file is ours, and nobody else's counts.
    return Git(target).quiet()


def _alternates(folder: Path) -> tuple[Path, ...]:
    listing = folder / "info" / "alternates"
    if not listing.exists():
        return ()
    lines = (os.fsdecode(line) for line in listing.read_bytes().splitlines())
    return tuple((folder / line).resolve() for line in lines if line and not line.startswith("#"))


def _new_attributes(folder: Path, entries: tuple[Entry, ...]) -> set[str]:
    """Paths of `.gitattributes` files that are not in the commit but act on files that are."""
    tracked = {entry.path for entry in entries}
    folders = {str(parent) for path in tracked for parent in Path(path).parents}
    possible = {str(Path(name, ".gitattributes")) for name in folders}
    return {path for path in possible - tracked if os.path.lexists(folder / path)}
