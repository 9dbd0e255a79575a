"""The git program, with typed answers. Whatever a worker can write is looked at through `outside`, never through its own `.git`.

`Git(root)` speaks for the person: their configuration, hooks, signing and credentials are used as they are set up.
`Git.outside(folder, index)` looks at a folder that a worker wrote, with the person's repository as the only source of
truth: nothing in that folder is ever run, neither hooks, filters, monitors nor anything that its `.git` names.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.migrate.repository.git_process import Finished, finish

TIMEOUT_S = 300.0
OUTPUT_BYTES = 256 * 1024**2
GITLINK = "160000"
SYMLINK = "120000"

_MESSAGE_BYTES = 4000
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}
# Variables that would point git at another repository or configuration than the one that is meant.
_DROPPED = re.compile(
    r"GIT_(DIR|WORK_TREE|COMMON_DIR|INDEX_.*|OBJECT_DIRECTORY|ALTERNATE_.*|NAMESPACE|PREFIX|CEILING_.*|CONFIG(_PARAMETERS)?"
    r"|EXTERNAL_DIFF|DIFF_OPTS|.*_PATHSPECS|TRACE.*|EDITOR|SEQUENCE_EDITOR|PAGER|QUARANTINE_PATH|SHALLOW_FILE)"
)
_PROMPTLESS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
}
_NEUTRAL = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
_NEUTRAL_CONFIG = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    f"core.attributesFile={os.devnull}",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.sparseCheckout=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.trustctime=true",
    "index.sparse=false",
    "core.fsync=all",
    "gc.auto=0",
    "maintenance.auto=false",
)


class GitError(LongwatchError):
    """Git said no; the message holds the command and git's own words."""

    def __init__(self, arguments: Sequence[str], finished: Finished) -> None:
        said = (
            masked(finished.stderr[-_MESSAGE_BYTES:].decode("utf-8", "replace").strip())
            or "(it said nothing)"
        )
        super().__init__(f"git {shown(arguments)} {finished.ending}: {said}")
        self.finished = finished


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs between two trees. Renames are a deletion and an addition."""

    path: str
    kind: str
    """`A` added, `M` modified, `D` deleted, `T` another type of file."""
    mode: str
    """Of the new side (`100644`, `100755`, `120000`, `160000`); `000000` when it is deleted."""
    blob: str
    """Object name on the new side; all zeros when it is deleted."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a tree. `size_bytes` is `None` for a submodule."""

    path: str
    mode: str
    blob: str
    size_bytes: int | None


def masked(text: str) -> str:
    """Text without the credentials that an URL may carry."""
    return re.sub(r"(\w://)[^/@\s]+@", r"\1***@", text)


def shown(arguments: Sequence[str]) -> str:
    """A command as a person reads it: the first arguments, credentials masked."""
    return masked(" ".join(arguments[:8])) + (" ..." if len(arguments) > 8 else "")


def nul(paths: Iterable[str]) -> bytes:
    """Paths as git reads them with `-z`."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def names(output: bytes) -> tuple[str, ...]:
    """Paths as git prints them with `-z`; bytes that are not UTF-8 come as surrogates."""
    return tuple(os.fsdecode(name) for name in output.split(b"\0") if name)


def person_environment() -> dict[str, str]:
    """This process's environment without what would point git elsewhere or make it wait for a keyboard."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("GIT_") and _DROPPED.fullmatch(name))
    }
    return kept | _PROMPTLESS


class Git(msgspec.Struct, frozen=True, kw_only=False):
    """One repository with a working tree. `root` is the top of the working tree."""

    root: Path
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}

    @classmethod
    def open(cls, path: Path) -> Self:
        """The repository that holds `path`. Raises `ConfigError` if there is none with a working tree."""
        try:
            top = cls(path).run("rev-parse", "--show-toplevel")
        except GitError as error:
            raise ConfigError(f"{path} is in no git repository with a working tree: {error}") from error
        return cls(Path(os.fsdecode(top.rstrip(b"\n"))))

    # How git is run

    def answer(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_s: float = TIMEOUT_S,
        variables: Mapping[str, str] | None = None,
    ) -> Finished:
        """Run git and return what came of it, whatever its exit code is."""
        environment = {**person_environment(), **self.variables, **(variables or {})}
        argv = ("git", "--no-pager", "--literal-pathspecs", *self.options, *arguments)
        return finish(argv, self.root, environment, stdin, timeout_s=timeout_s, output_bytes=OUTPUT_BYTES)

    def run(self, *arguments: str, stdin: bytes = b"", timeout_s: float = TIMEOUT_S) -> bytes:
        """Run git and return its output. Raises `GitError` with git's own words unless it exits with 0."""
        finished = self.answer(*arguments, stdin=stdin, timeout_s=timeout_s)
        if not finished.ok:
            raise GitError(arguments, finished)
        return finished.stdout

    def line(self, *arguments: str) -> str:
        """Run git and return its one line of output."""
        return os.fsdecode(self.run(*arguments).rstrip(b"\n"))

    def maybe(self, *arguments: str) -> str | None:
        """Return the one line of output, or `None` where git answers "there is none" with exit code 1."""
        finished = self.answer(*arguments)
        if finished.code not in {0, 1}:
            raise GitError(arguments, finished)
        return os.fsdecode(finished.stdout.rstrip(b"\n")) if finished.ok else None

    def with_config(self, *settings: str) -> "Git":
        """The same repository with more `key=value` settings for each command."""
        options = tuple(part for setting in settings for part in ("-c", setting))
        return msgspec.structs.replace(self, options=self.options + options)

    def with_variables(self, **variables: str) -> "Git":
        """The same repository with more environment variables for each command."""
        return msgspec.structs.replace(self, variables={**self.variables, **variables})

    def quiet(self) -> "Git":
        """The same repository with nothing of the machine's or the person's own configuration; its filters still run."""
        return self.with_variables(**_NEUTRAL).with_config(*_NEUTRAL_CONFIG)

    def neutral(self) -> "Git":
        """The same repository with nothing of the person's or the machine's configuration that runs programs."""
        quiet = self.quiet()
        return quiet.with_config(*quiet.filter_switches())

    def outside(self, folder: Path, index: Path) -> "Git":
        """Look at `folder` as a working tree of this repository, with an index of our own and nothing that runs code."""
        bound = self.neutral().with_variables(
            GIT_DIR=str(self.git_dir()), GIT_WORK_TREE=str(folder), GIT_INDEX_FILE=str(index)
        )
        return msgspec.structs.replace(bound, root=folder)

    def filter_switches(self) -> tuple[str, ...]:
        """Settings that switch every configured filter off: a relative filter command would run a worker's file."""
        drivers = {key.rpartition(".")[0] for key, _ in self.configuration() if key.startswith("filter.")}
        ends = ("clean=", "smudge=", "process=", "required=false")
        return tuple(f"{driver}.{end}" for driver in sorted(drivers) for end in ends)

    def version(self) -> tuple[int, ...]:
        """The installed git's own version: major and minor."""
        return tuple(int(number) for number in re.findall(r"\d+", self.line("version"))[:2])

    # What the repository is

    def git_dir(self) -> Path:
        """The repository's folder; that of a linked working tree is its own."""
        return Path(self.line("rev-parse", "--absolute-git-dir"))

    def common_dir(self) -> Path:
        """The folder that all linked working trees share: configuration, hooks, objects, branches."""
        return (self.root / self.line("rev-parse", "--git-common-dir")).resolve()

    def internal(self, name: str) -> Path:
        """Path of a file inside the repository's folder, as git itself finds it (`index.lock`, `hooks`)."""
        return self.root / self.line("rev-parse", "--git-path", name)

    def internals(self, *names: str) -> tuple[Path, ...]:
        """The same for several files, in one question."""
        found = self.line("rev-parse", *(part for name in names for part in ("--git-path", name))).split("\n")
        if len(found) != len(names):  # the name of a folder above has a line end in it
            return tuple(map(self.internal, names))
        return tuple(self.root / path for path in found)

    def configuration(self) -> tuple[tuple[str, str], ...]:
        """Every effective setting as (key, value), in git's order; keys of a setting without value have ``true``."""
        items = self.run("config", "--list", "-z").split(b"\0")
        pairs = (os.fsdecode(item).partition("\n") for item in items if item)
        return tuple((key, value if mark else "true") for key, mark, value in pairs)

    def head(self) -> str | None:
        """The commit that is checked out; `None` where there is no commit yet."""
        return self.maybe("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def branch(self) -> str | None:
        """The branch that is checked out; `None` for a detached HEAD."""
        return self.maybe("symbolic-ref", "--quiet", "--short", "HEAD")

    def tip(self, branch: str) -> str | None:
        """The commit that a branch names; `None` if there is no such branch."""
        return self.maybe("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")

    def operation(self) -> str | None:
        """What the person has begun and not ended: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`."""
        folder = self.git_dir()
        return next((what for name, what in _OPERATIONS.items() if (folder / name).exists()), None)

    def dirty_paths(self) -> tuple[str, ...]:
        """Paths that differ from HEAD in the index or the working tree, and untracked ones; no ignored ones."""
        output = self.run(
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=none",
        )
        fields = {"1": 8, "2": 9, "u": 10, "?": 1}
        records = (record for record in names(output) if record[0] in fields)
        return tuple(record.split(" ", fields[record[0]])[-1] for record in records)

    def hidden_paths(self) -> tuple[str, ...]:
        """Tracked paths that `status` does not look at: assume-unchanged, or outside a sparse checkout."""
        records = names(self.run("ls-files", "-v", "-z"))
        return tuple(record[2:] for record in records if record[0].islower() or record[0] == "S")

    # Commits, trees, blobs

    def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return self.line("rev-parse", "--verify", f"{commit}^{{tree}}")

    def parents(self, commit: str) -> tuple[str, ...]:
        """The commits that a commit stands on."""
        return tuple(self.line("rev-list", "--parents", "--max-count=1", commit).split()[1:])

    def message(self, commit: str) -> str:
        """The whole message of a commit."""
        return self.run("show", "--no-patch", "--format=%B", "--no-show-signature", commit).decode(
            "utf-8", "replace"
        )

    def has(self, name: str) -> bool:
        """True if the object is here."""
        return self.answer("cat-file", "-e", name).ok

    def is_ancestor(self, older: str, newer: str) -> bool:
        """True if `newer` stands on `older`, or is it."""
        return self.maybe("merge-base", "--is-ancestor", older, newer) is not None

    def blob(self, name: str) -> bytes:
        """The bytes of a blob as they are stored."""
        return self.run("cat-file", "blob", name)

    def show(self, commit: str, path: str) -> bytes | None:
        """The bytes of a file at a commit as they are stored; `None` if there is no file."""
        entry = self.files(commit, path).get(path)
        return None if entry is None else self.blob(entry.blob)

    def files(self, commit: str, *paths: str) -> dict[str, Entry]:
        """Those of the paths that are files of a commit; a folder's name stands for nothing."""
        wanted = frozenset(paths)
        found = self.ls_tree(commit, *paths) if paths else ()
        return {entry.path: entry for entry in found if entry.path in wanted}

    def ls_tree(self, commit: str, *paths: str) -> tuple[Entry, ...]:
        """Every file of a commit, or only those at or below `paths`."""
        output = self.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *paths)
        return tuple(_entry(record) for record in names(output))

    def diff_names(self, before: str, after: str) -> tuple[Change, ...]:
        """What differs between two commits or trees, by path."""
        output = self.run(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-ext-diff", before, after
        )
        fields = names(output)
        return tuple(_change(raw, path) for raw, path in zip(fields[::2], fields[1::2], strict=True))

    # Our own references

    def update_ref(self, ref: str, commit: str) -> None:
        """Keep a commit alive. Only below `refs/longwatch/`."""
        self.run("update-ref", _own(ref), commit)

    def delete_ref(self, ref: str) -> None:
        """Let a commit go; harmless if it is gone already. Only below `refs/longwatch/`."""
        self.run("update-ref", "-d", _own(ref))


def _own(ref: str) -> str:
    if not ref.startswith("refs/longwatch/"):
        raise ConfigError(f"{ref} is not ours to write: only references below refs/longwatch/ are")
    return ref


def _entry(record: str) -> Entry:
    described, _, path = record.partition("\t")
    mode, _, blob, size = described.split()
    return Entry(path=path, mode=mode, blob=blob, size_bytes=None if size == "-" else int(size))


def _change(raw: str, path: str) -> Change:
    _, mode, _, blob, kind = raw.split(" ")
    return Change(path=path, kind=kind[0], mode=mode, blob=blob)
