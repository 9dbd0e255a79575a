"""Takes what a worker changed out of its folder, with nothing of the folder's own `.git` believed or run.

The person's repository is the judge: its objects say what the baseline was, an index of ours says what is there now.
Every file is read; time stamps prove nothing about a folder that somebody else could write.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import LongwatchError
from longwatch.migrate.repository.checkout import fill_index, index_info
from longwatch.migrate.repository.git import GITLINK, SYMLINK, Change, Entry, Git, names, nul
from longwatch.migrate.repository.scan import Bounds, parents, printable, scan

BOUNDS = Bounds()
CANDIDATES = "refs/longwatch/candidates/"
_AUTHOR = ("Longwatch", "longwatch@longwatch.invalid")
# Settings whose value is a path that git obeys, and those whose value is a program that it runs.
_PATH_KEYS = re.compile(r".*(hookspath|path|attributesfile|excludesfile|template)")
_PROGRAM_KEYS = re.compile(
    r".*(fsmonitor|command|textconv|driver|program|helper|clean|smudge|process|editor|pager|askpass|hook|pack|cmd)"
)


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker left, as a tree. A change with anything `refused` must not become a candidate."""

    tree: str
    """The baseline with every change that was not refused."""
    changes: tuple[Change, ...]
    refused: tuple[str, ...]
    """`path: reason`, in order of the paths."""


class Salvage(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept of a cut attempt for the person to look at."""

    patch: Path | None
    """`git apply` takes it on the baseline; `None` if there was no change."""
    changes: tuple[Change, ...]
    omitted: tuple[str, ...]
    """Changed paths that the bound left out of the patch, and what was refused."""


def harvest(git: Git, baseline: str, folder: Path, index_dir: Path, bounds: Bounds = BOUNDS) -> Harvest:
    """Take the changes since `baseline` out of `folder`. Writes objects to the repository, and scratch to `index_dir`."""
    scratch = index_dir / "harvest"
    files.make_folder(index_dir)
    files.remove_recorded(scratch, index_dir)
    files.make_folder(scratch)
    view = git.outside(folder, scratch / "index")
    entries = fill_index(view, baseline)
    seen = scan(git, folder, entries, scratch, bounds)
    refused = dict(seen.refused)
    _take_in(view, entries, seen.present, refused)
    _restore_stored(view, entries, git.diff_names(baseline, view.line("write-tree")))
    if submodules := index_info(entry for entry in entries if entry.mode == GITLINK):
        view.run("update-index", "-z", "--index-info", stdin=submodules)
    tree = view.line("write-tree")
    changes = git.diff_names(baseline, tree)
    refused |= _refused_changes(git, view, baseline, changes, bounds)
    reasons = tuple(f"{printable(path)}: {reason}" for path, reason in sorted(refused.items()))
    return Harvest(tree=tree, changes=changes, refused=reasons)


def candidate(git: Git, baseline: str, tree: str, message: str, ref: str) -> str:
    """Make `tree` a commit on `baseline` that `ref` keeps alive. The same input gives the same commit.

    The person's identity is not used: what is published later is a commit of their own.
    """
    when = git.line("show", "--no-patch", "--format=%cd", "--date=raw", "--no-show-signature", baseline)
    variables = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in zip(("NAME", "EMAIL", "DATE"), (*_AUTHOR, when), strict=True)
    }
    committer = git.neutral().with_variables(**variables)
    # `commit-tree` would sign if the person's configuration says so; this commit is no one's word.
    arguments = ("commit-tree", "--no-gpg-sign", "-p", baseline, "-F", "-", tree)
    commit = committer.run(*arguments, stdin=message.encode("utf-8", "replace")).decode().strip()
    git.update_ref(ref, commit)
    return commit


def salvage(
    git: Git, baseline: str, folder: Path, index_dir: Path, *, patch: Path, bounds: Bounds = BOUNDS
) -> Salvage:
    """Keep the partial work of a cut attempt as a patch file, as far as it fits into `bounds.patch_bytes`."""
    kept = harvest(git, baseline, folder, index_dir, bounds)
    data, omitted = _patch(git, baseline, kept, bounds.patch_bytes)
    if data:
        files.replace(patch, data)
    left_out = (*(printable(path) for path in omitted), *kept.refused)
    return Salvage(patch=patch if data else None, changes=kept.changes, omitted=left_out)


def obeyed_paths(git: Git, paths: Iterable[str]) -> dict[str, str]:
    """Those of `paths` that the person's git configuration runs or obeys (a hooks folder inside the tree, a filter's
    script, an included configuration file), with the reason: who changes them runs programs as the person.
    """
    named: dict[str, str] = {}
    for key, value in git.configuration():
        named |= dict.fromkeys(_inside(git, _files_named(key, value)), key)
    found = ((path, next((p for p in (path, *parents(path)) if p in named), None)) for path in paths)
    return {path: f"your git configuration obeys it ({named[hit]})" for path, hit in found if hit is not None}


def _files_named(key: str, value: str) -> list[str]:
    """The words of a setting that can be files. A bare word in a command is a program on PATH or its argument."""
    if _PATH_KEYS.fullmatch(key):
        return [value]
    if not _PROGRAM_KEYS.fullmatch(key):
        return []
    words = (word.strip("'\"!;&|()") for word in value.split())
    return [word for word in words if "/" in word or "." in word]


def _inside(git: Git, words: list[str]) -> set[str]:
    """The paths inside the working tree that words name, relative to its top."""
    if not words:
        return set()
    top = os.path.realpath(git.root)
    starts = (Path(top), git.common_dir())
    places = {os.path.realpath(start / os.path.expandvars(word)) for word in words for start in starts}
    return {os.path.relpath(place, top) for place in places if place.startswith(top + "/")}


def _take_in(view: Git, entries: tuple[Entry, ...], present: frozenset[str], refused: dict[str, str]) -> None:
    """Bring the index to what is present; refused paths stay as they were."""
    files_before = {entry.path for entry in entries if entry.mode != GITLINK}
    covered = refused.keys()
    gone = [p for p in files_before - present if not any(part in covered for part in (p, *parents(p), "."))]
    if gone:
        view.run("update-index", "-z", "--force-remove", "--stdin", stdin=nul(gone))
    finished = view.answer("update-index", "-z", "--add", "--replace", "--stdin", stdin=nul(sorted(present)))
    if not finished.ok:
        said = finished.stderr.decode("utf-8", "replace").strip()[:1000]
        refused["."] = f"git does not take the files in: {said}"
    submodules = (entry.path for entry in entries if entry.mode == GITLINK)
    lost = (path for path in submodules if present.intersection(parents(path)))
    refused.update(dict.fromkeys(lost, "it replaces a submodule, which is not supported"))


def _restore_stored(view: Git, entries: tuple[Entry, ...], changes: tuple[Change, ...]) -> None:
    """Undo changes that only git's conversion of line ends made: the file's bytes are those that are stored."""
    before = {entry.path: entry for entry in entries}
    texts = (c for c in changes if c.kind == "M" and c.mode == before[c.path].mode != SYMLINK)
    maybe = [change.path for change in texts if "\n" not in change.path]
    if not maybe:
        return
    listing = "".join(f"{path}\n" for path in maybe)
    raw = (
        view.run("hash-object", "--no-filters", "--stdin-paths", stdin=os.fsencode(listing)).decode().split()
    )
    same = [before[path] for path, name in zip(maybe, raw, strict=True) if before[path].blob == name]
    view.run("update-index", "-z", "--index-info", stdin=index_info(same))


def _refused_changes(
    git: Git, view: Git, baseline: str, changes: tuple[Change, ...], bounds: Bounds
) -> dict[str, str]:
    """What is wrong with changes that git could take in."""
    paths = [change.path for change in changes]
    refused = obeyed_paths(git, paths)
    refused |= dict.fromkeys(
        _filtered(view, paths), "a filter of git (such as LFS) applies to it, and is not run here"
    )
    view.run("read-tree", "--reset", baseline)
    refused |= dict.fromkeys(
        _filtered(view, paths), "a filter of git (such as LFS) applies to it, and is not run here"
    )
    if len(paths) > bounds.files:
        refused["."] = f"{len(paths)} changed files, more than {bounds.files}"
    return refused


def _filtered(view: Git, paths: list[str]) -> tuple[str, ...]:
    """Paths to which a `filter` attribute applies, by the `.gitattributes` files in the index."""
    answers = names(view.run("check-attr", "--cached", "-z", "--stdin", "filter", stdin=nul(paths)))
    rows = zip(answers[::3], answers[2::3], strict=True)
    return tuple(path for path, value in rows if value not in {"unspecified", "unset"})


def _patch(git: Git, baseline: str, kept: Harvest, limit: int) -> tuple[bytes, list[str]]:
    """The changes as one patch within `limit` bytes, and the paths that found no room."""
    whole = _diff(git, baseline, kept.tree, limit)
    if whole is not None:
        return whole, []
    parts, omitted, room = [], [], limit
    for change in kept.changes:
        part = _diff(git, baseline, kept.tree, room, change.path)
        if part is None:
            omitted.append(change.path)
        else:
            parts.append(part)
            room -= len(part)
    return b"".join(parts), omitted


def _diff(git: Git, before: str, after: str, limit: int, *paths: str) -> bytes | None:
    """A patch that `git apply` takes, or `None` if it has more than `limit` bytes."""
    options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    finished = git.neutral().answer("diff-tree", "-r", "-p", *options, before, after, "--", *paths)
    if finished.ended_by == "output" or len(finished.stdout) > limit:
        return None
    if not finished.ok:
        raise LongwatchError(
            f"git cannot show the changes of a cut attempt: {finished.stderr.decode('utf-8', 'replace')}"
        )
    return finished.stdout
