"""Lists what a worker left in its folder, and refuses by name what no commit should take from there.

The folder is read with `scandir` and `lstat` alone: nothing is opened, no link is followed, nothing of its `.git` is
read. What is ignored is decided by the `.gitignore` files of the *baseline*, by `.git/info/exclude` and by the
person's own ignore file: a worker cannot hide files by ignoring them.
"""

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.migrate.repository.git import GITLINK, SYMLINK, Entry, Git, GitError, names, nul

MIB = 1024 * 1024
_READ_BY_GIT = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap"})
_sha1 = partial(hashlib.sha1, usedforsecurity=False)
# Characters that some file systems leave out of a name, so that `.g<U+200C>it` would be `.git` there.
_INVISIBLE = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much one attempt may bring."""

    entries: int = 1_000_000
    """Files and folders that are looked at, ignored ones left out."""
    files: int = 5_000
    """New files, and changed files."""
    file_bytes: int = 32 * MIB
    total_bytes: int = 256 * MIB
    path_bytes: int = 1_024
    patch_bytes: int = 32 * MIB
    """Of the patch that is kept of a cut attempt."""


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the folder: paths to take in, and what is wrong, by name."""

    present: frozenset[str]
    """Files and links that may be taken in, tracked or not ignored."""
    refused: Mapping[str, str]
    """Path to the reason why it is not taken."""


class _Found(msgspec.Struct):
    """What the walk gathers, and within which bounds."""

    folder: Path
    bounds: Bounds
    files: dict[str, os.stat_result] = {}
    refused: dict[str, str] = {}
    seen: int = 0


def scan(git: Git, folder: Path, entries: tuple[Entry, ...], scratch: Path, bounds: Bounds) -> Scan:
    """Walk `folder` and tell what may be taken in. `entries` are those of the baseline; `scratch` is a folder of ours."""
    known = _Known(entries)
    ignored = _Ignored(git, entries, scratch / "ignore")
    found = _Found(folder=folder, bounds=bounds)
    level = [""]
    while level:
        level = _walk_level(level, known, ignored, found)
        if found.seen > bounds.entries:
            found.refused["."] = f"more than {bounds.entries} files and folders"
            break
    _refuse_sizes(found, known)
    _refuse_links(found, known)
    _refuse_collisions(found, known)
    return Scan(present=frozenset(found.files.keys() - found.refused.keys()), refused=found.refused)


def printable(path: str) -> str:
    """A path as a message may show it."""
    return path.encode("utf-8", "backslashreplace").decode().encode("unicode_escape").decode("ascii")


class _Known:
    """The baseline's paths."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.files = {entry.path: entry for entry in entries if entry.mode != GITLINK}
        self.links = {entry.path for entry in entries if entry.mode == GITLINK}
        self.folders = {folder for path in (*self.files, *self.links) for folder in parents(path)}


class _Ignored:
    """Asks git what is ignored, in a folder of ours that holds only the baseline's `.gitignore` files."""

    def __init__(self, git: Git, entries: tuple[Entry, ...], skeleton: Path) -> None:
        self.skeleton = files.make_folder(skeleton)
        variables = {
            "GIT_DIR": str(git.git_dir()),
            "GIT_WORK_TREE": str(skeleton),
            "GIT_INDEX_FILE": str(skeleton) + ".index",
        }
        asked = git.with_variables(**variables).with_config("core.fsmonitor=false")
        # `check-ignore` knows no literal paths; behind `./` a path has no magic, and it does not take patterns.
        self.git = msgspec.structs.replace(
            asked, root=skeleton, options=(*asked.options, "--no-literal-pathspecs")
        )
        for entry in entries:
            if Path(entry.path).name == ".gitignore" and entry.mode not in {GITLINK, SYMLINK}:
                target = skeleton / entry.path
                files.make_folder(target.parent)
                files.replace(target, git.blob(entry.blob))

    def among(self, paths: Iterable[str], folders: Iterable[str]) -> set[str]:
        """Those of the paths and folders that are ignored."""
        there = list(folders)
        for folder in there:
            # Only a pattern's `/` at the end needs to know that it is a folder.
            (self.skeleton / folder).mkdir(parents=True, exist_ok=True)
        arguments = ("check-ignore", "--no-index", "-z", "--stdin")
        finished = self.git.answer(*arguments, stdin=nul(f"./{path}" for path in (*paths, *there)))
        if finished.code not in {0, 1}:
            raise GitError(arguments, finished)
        return {path.removeprefix("./") for path in names(finished.stdout)}


def parents(path: str) -> tuple[str, ...]:
    """The folders above a path, nearest first, without the root."""
    parts = path.split("/")
    return tuple("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))


def _walk_level(level: list[str], known: _Known, ignored: _Ignored, found: _Found) -> list[str]:
    """Sort the content of a level's folders into `found`, and return the folders of the next level."""
    listed: dict[str, os.stat_result] = {}
    for name in level:
        listed |= _listing(name, found)
    asked = {path: facts for path, facts in listed.items() if _may_ask(path, facts, known, found)}
    strange = {
        path: facts for path, facts in asked.items() if path not in known.files and path not in known.folders
    }
    folders = [path for path, facts in strange.items() if stat.S_ISDIR(facts.st_mode)]
    dropped = ignored.among(strange.keys() - set(folders), folders) if strange else set()
    kept = {path: facts for path, facts in asked.items() if path not in dropped}
    found.seen += len(kept)
    return [path for path, facts in kept.items() if _sorted_in(path, facts, found)]


def _listing(name: str, found: _Found) -> dict[str, os.stat_result]:
    try:
        with os.scandir(found.folder / name) as listing:
            here = list(islice(listing, found.bounds.entries + 1))
            named = [(f"{name}/{entry.name}" if name else entry.name, entry) for entry in here]
            found.seen += len(here) if len(here) > found.bounds.entries else 0
            return {path: entry.stat(follow_symlinks=False) for path, entry in named if path != ".git"}
    except PermissionError:
        found.refused[name or "."] = "the folder may not be read"
        return {}


def _may_ask(path: str, facts: os.stat_result, known: _Known, found: _Found) -> bool:
    """True if nothing is wrong with the name itself, which a baseline's own names are spared."""
    if path in known.links:
        if not stat.S_ISDIR(facts.st_mode) or _listing(path, found):
            found.refused[path] = "it changes a submodule, which is not supported"
        return False
    if path in known.files or path in known.folders:
        return True
    reason = _wrong_name(path, found.bounds)
    if reason:
        found.refused[path] = reason
    return not reason


def _wrong_name(path: str, bounds: Bounds) -> str:
    name = path.rpartition("/")[2]
    if is_git_name(name):
        return "a nested repository, or a name that can stand for `.git`"
    if any(0xDC80 <= ord(letter) <= 0xDCFF for letter in name):
        return "its name is not UTF-8"
    if any(unicodedata.category(letter) in {"Cc", "Zl", "Zp"} for letter in name):
        return "its name has a control character"
    if len(os.fsencode(path)) > bounds.path_bytes:
        return f"its path has more than {bounds.path_bytes} bytes"
    return ""


def is_git_name(name: str) -> bool:
    """True for `.git` and for what some file system takes for it (case, trailing dots, short names, invisible letters)."""
    plain = unicodedata.normalize("NFKC", name).translate(_INVISIBLE).casefold()
    return plain.partition(":")[0].rstrip(" .") in {".git", "git~1"}


def _sorted_in(path: str, facts: os.stat_result, found: _Found) -> bool:
    """Put one path where it belongs; True if it is a folder to go into."""
    if stat.S_ISDIR(facts.st_mode):
        if path.rpartition("/")[2] in _READ_BY_GIT:
            found.refused[path] = "a folder in the place of a file that git reads"
        return path not in found.refused
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISLNK(facts.st_mode):
        found.refused[path] = "neither a file, nor a folder, nor a symbolic link"
    elif stat.S_ISREG(facts.st_mode) and not os.access(found.folder / path, os.R_OK):
        found.refused[path] = "it may not be read"
    else:
        found.files[path] = facts
    return False


def _refuse_sizes(found: _Found, known: _Known) -> None:
    """Refuse before anything is read: a file of its baseline's size is no larger than what is there already."""
    bounds = found.bounds
    grown = {
        path: facts.st_size
        for path, facts in found.files.items()
        if path not in known.files or facts.st_size != known.files[path].size_bytes
    }
    for path, size in grown.items():
        if size > bounds.file_bytes:
            found.refused[path] = f"{size} bytes, more than {bounds.file_bytes}"
    fresh = grown.keys() - known.files.keys()
    if len(fresh) > bounds.files:
        reason = f"one of {len(fresh)} new files that are not ignored, more than {bounds.files}"
        found.refused.update(dict.fromkeys(fresh, reason))
    if sum(grown.values()) > bounds.total_bytes:
        reason = (
            f"new and changed files have {sum(grown.values())} bytes in all, more than {bounds.total_bytes}"
        )
        found.refused.update(dict.fromkeys(grown, reason))


def _refuse_links(found: _Found, known: _Known) -> None:
    for path, facts in found.files.items():
        if not stat.S_ISLNK(facts.st_mode):
            continue
        target = os.readlink(found.folder / path)  # noqa: PTH115 - a Path would lose its `./` and `//`
        if path.rpartition("/")[2] in _READ_BY_GIT:
            found.refused[path] = "git must not read it through a symbolic link"
        elif not _is_the_same_link(path, target, known) and _leads_out(found.folder, path, target):
            found.refused[path] = f"a symbolic link that leads outside the repository: {printable(target)}"


def _is_the_same_link(path: str, target: str, known: _Known) -> bool:
    entry = known.files.get(path)
    return (
        entry is not None
        and entry.mode == SYMLINK
        and entry.blob == _blob_name(os.fsencode(target), entry.blob)
    )


def _blob_name(data: bytes, like: str) -> str:
    """Git's name of a blob, with the hash that the name `like` was made with."""
    content = b"blob %d\0%b" % (len(data), data)
    return (hashlib.sha256 if len(like) == 64 else _sha1)(content).hexdigest()


def _leads_out(folder: Path, path: str, target: str) -> bool:
    """True if a link leads out of the folder or into its `.git`, by its text or by where it ends up now."""
    written = os.path.normpath(Path(path).parent / target)
    root = os.path.realpath(folder)
    ends = os.path.relpath(os.path.realpath(folder / path), root)
    return target.startswith("/") or any(_is_out(where) for where in (written, ends))


def _is_out(relative: str) -> bool:
    first = relative.split("/", maxsplit=1)[0]
    return first == ".." or any(is_git_name(part) for part in relative.split("/"))


def _refuse_collisions(found: _Found, known: _Known) -> None:
    """Refuse new paths that a file system without case, or with other Unicode forms, takes for another path."""
    taken: dict[str, set[str]] = {}
    for path in found.files:
        for part in (path, *parents(path)):
            taken.setdefault(_folded(part), set()).add(part)
    old = known.files.keys() | known.folders
    for path in found.files.keys() - known.files.keys():
        for part in (path, *parents(path)):
            others = taken[_folded(part)] - {part}
            if others and part not in old:
                found.refused[path] = f"differs from {printable(min(others))} only in case or Unicode form"


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
