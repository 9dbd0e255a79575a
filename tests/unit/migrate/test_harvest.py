import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import commit_all, git, new_repository, sample, write

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.repository.checkout import private_clone
from longwatch.migrate.repository.git import Change, Git
from longwatch.migrate.repository.harvest import Harvest, candidate, harvest, salvage
from longwatch.migrate.repository.scan import Bounds, is_git_name


class Attempt:
    """A repository, its baseline, and a worker's clone of it."""

    def __init__(self, path: Path, git: Git, baseline: str) -> None:
        self.path, self.git, self.baseline, self.folder = path, git, baseline, path / "clone"
        private_clone(git, baseline, self.folder)

    def harvest(self, bounds: Bounds | None = None) -> Harvest:
        return harvest(self.git, self.baseline, self.folder, self.path / "evidence", bounds or Bounds())


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path, *sample(tmp_path / "r"))


def kinds(changes: tuple[Change, ...]) -> dict[str, str]:
    return {change.path: change.kind + change.mode for change in changes}


def test_nothing_changed_is_the_baselines_tree(attempt: Attempt) -> None:
    result = attempt.harvest()
    assert result == Harvest(tree=attempt.git.tree_of(attempt.baseline), changes=(), refused=())


@pytest.mark.guarantee("M18")
def test_every_kind_of_change_is_seen(attempt: Attempt) -> None:
    folder = attempt.folder
    write(folder, "src/a.py", "a = 2\n")
    (folder / "README.md").unlink()
    (folder / "run.sh").chmod(0o644)
    write(folder, "new folder/:(glob)**.txt", "new", 0o755)
    (folder / "link").unlink()
    (folder / "link").symlink_to("src/b.py")
    (folder / "inside").symlink_to("src")
    shutil.rmtree(folder / "src" / "deep")
    write(folder, "src/deep", "now a file")
    (folder / "src" / "b.py").unlink()
    write(folder, "src/b.py/x", "now a folder")
    write(folder, "out.log", "ignored")
    write(folder, "build/deep/x.o", "ignored")
    result = attempt.harvest()
    assert result.refused == ()
    assert kinds(result.changes) == {
        "src/a.py": "M100644",
        "README.md": "D000000",
        "run.sh": "M100644",
        "new folder/:(glob)**.txt": "A100755",
        "link": "M120000",
        "inside": "A120000",
        "src/deep/c.py": "D000000",
        "src/deep": "A100644",
        "src/b.py": "D000000",
        "src/b.py/x": "A100644",
    }
    shown = git(attempt.git.root, "show", f"{result.tree}:new folder/:(glob)**.txt")
    assert shown == "new"


@pytest.mark.guarantee("M18")
def test_time_stamps_and_the_workers_index_hide_nothing(attempt: Attempt) -> None:
    folder = attempt.folder
    before = (folder / "src/a.py").stat()
    write(folder, "src/a.py", "a = 9\n")
    os.utime(folder / "src/a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    write(folder, "src/b.py", "b = 9\n")
    git(folder, "update-index", "--assume-unchanged", "src/b.py")
    write(folder, "README.md", "committed\n")
    git(folder, "commit", "-qm", "mine", "README.md")
    assert kinds(attempt.harvest().changes).keys() == {"src/a.py", "src/b.py", "README.md"}


@pytest.mark.guarantee("M18")
def test_a_worker_cannot_hide_files_by_ignoring_them(attempt: Attempt) -> None:
    write(attempt.folder, ".gitignore", "*\n")
    write(attempt.folder, "src/.gitignore", "*\n")
    write(attempt.folder, ".git/info/exclude", "*\n")
    git(attempt.folder, "config", "core.excludesFile", str(attempt.folder / ".gitignore"))
    write(attempt.folder, "src/new.py", "x")
    assert kinds(attempt.harvest().changes).keys() == {".gitignore", "src/.gitignore", "src/new.py"}


def test_the_baselines_and_the_persons_ignore_files_are_obeyed(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    write(repository.root, "src/.gitignore", "gen/*\n!gen/keep\n")
    write(repository.root, ".git/info/exclude", "*.mine\n")
    baseline = commit_all(repository.root)
    attempt = Attempt(tmp_path, Git.open(repository.root), baseline)
    for path in ("src/gen/x", "src/gen/keep", "a.mine", "private", "sub/private", "sub/build/x", "buildx"):
        write(attempt.folder, path, "x")
    assert kinds(attempt.harvest().changes).keys() == {"src/gen/keep", "sub/private", "buildx"}


@pytest.mark.guarantee("M29", "M16")
def test_nothing_in_the_folder_runs(attempt: Attempt, tmp_path: Path) -> None:
    folder = attempt.folder
    trap = write(tmp_path, "trap", f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n", 0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.process", "diff.x.textconv", "core.sshCommand"):
        git(folder, "config", key, str(trap))
    git(folder, "config", "core.hooksPath", "hooks")
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit"):
        write(folder, f"hooks/{name}", trap.read_bytes(), 0o755)
        write(folder, f".git/hooks/{name}", trap.read_bytes(), 0o755)
    write(folder, ".git/info/attributes", "* filter=x diff=x\n")
    write(folder, "src/a.py", "a = 2\n")
    result = attempt.harvest()
    candidate(attempt.git, attempt.baseline, result.tree, "m", "refs/longwatch/candidates/1")
    salvage(attempt.git, attempt.baseline, folder, tmp_path / "evidence", patch=tmp_path / "patch")
    assert result.refused == ()
    assert not (tmp_path / "ran").exists()


@pytest.mark.guarantee("M16")
def test_a_relative_filter_of_the_person_does_not_run_the_workers_file(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    root = repository.root
    write(root, "tools/clean.sh", "cat", 0o755)
    write(root, "data.x", "x")
    write(root, ".gitattributes", "*.x filter=x\n")
    baseline = commit_all(root)
    git(root, "config", "filter.x.clean", "./tools/clean.sh")
    git(root, "config", "filter.x.required", "true")
    attempt = Attempt(tmp_path, repository, baseline)
    write(attempt.folder, "tools/clean.sh", f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n", 0o755)
    write(attempt.folder, "data.x", "changed")
    write(attempt.folder, ".gitattributes", "*.md filter=x\n")
    write(attempt.folder, "README.md", "changed")
    refused = dict(line.split(": ", 1) for line in attempt.harvest().refused)
    assert refused.keys() == {"tools/clean.sh", "data.x", "README.md"}
    assert "filter.x.clean" in refused["tools/clean.sh"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        ("core.hooksPath", ".husky", ".husky/pre-commit"),
        ("core.hooksPath", "hooks/", "hooks/pre-push"),
        ("include.path", "../.gitconfig", ".gitconfig"),
        ("core.fsmonitor", "./tools/watch", "tools/watch"),
        ("gpg.program", "tools/sign.sh", "tools/sign.sh"),
        ("core.sshCommand", "ssh -F config/ssh.conf", "config/ssh.conf"),
    ],
)
def test_what_the_persons_configuration_obeys_is_refused(
    tmp_path: Path, key: str, value: str, path: str
) -> None:
    attempt = Attempt(tmp_path, *sample(tmp_path / "r"))
    git(attempt.git.root, "config", key, value)
    write(attempt.folder, path, "x", 0o755)
    write(attempt.folder, "store", "x")
    assert [
        line
        for line in attempt.harvest().refused
        if line.startswith(f"{path}: ") and key.lower() in line.lower()
    ]
    assert len(attempt.harvest().refused) == 1


def _nested(folder: Path) -> None:
    new_repository(folder / "vendor")


def _gitfile(folder: Path) -> None:
    write(folder, "vendor/.git", "gitdir: ../.git\n")


def _nested_in_tracked(folder: Path) -> None:
    git(folder / "src", "init", "--quiet")


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "fifo")


def _fifo_in_place(folder: Path) -> None:
    (folder / "README.md").unlink()
    os.mkfifo(folder / "README.md")


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # a socket's path is short
    try:
        socket.socket(socket.AF_UNIX).bind("socket")
    finally:
        os.chdir(here)


def _hop(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "top").symlink_to("../..")
    (folder / "deep" / "er" / "out").symlink_to("top/../clone-secret")


@pytest.mark.guarantee("M29", "K34")
@pytest.mark.parametrize(
    ("act", "named"),
    [
        (_nested, "vendor/.git: a nested repository"),
        (_gitfile, "vendor/.git: a nested repository"),
        (_nested_in_tracked, "src/.git: a nested repository"),
        (lambda f: write(f, "a/.GIT/config", "x"), "a/.GIT: a nested"),
        (lambda f: write(f, "a/git~1/config", "x"), "a/git~1: a nested"),
        (lambda f: write(f, "a/.gi\u200ct/config", "x"), "a/.gi"),
        (_fifo, "fifo: neither"),
        (_fifo_in_place, "README.md: neither"),
        (_socket, "socket: neither"),
        (lambda f: (f / "out").symlink_to("/etc/passwd"), "out: a symbolic link that leads outside"),
        (lambda f: (f / "src" / "out").symlink_to("../../x"), "src/out: a symbolic link"),
        (lambda f: (f / "hook").symlink_to(".git/hooks"), "hook: a symbolic link"),
        (_hop, "deep/er/out: a symbolic link"),
        (lambda f: (f / ".gitmodules").symlink_to("README.md"), ".gitmodules: git must not"),
        (lambda f: write(f, "src/.gitignore/x/y", "x"), "src/.gitignore: a folder"),
        (lambda f: write(f, "SRC/x", "x"), "SRC/x: differs from src only in case"),
        (lambda f: write(f, "readme.md", "x"), "readme.md: differs from README.md"),
        (lambda f: [write(f, "é", "x"), write(f, "e\u0301", "x")], "differs from"),
        (lambda f: write(f, "a\nb", "x"), "a\\nb: its name has a control"),
        (lambda f: Path(os.fsdecode(bytes(f) + b"/\xff")).write_text("x"), "is not UTF-8"),
        (lambda f: write(f, "/".join(["x" * 200] * 6), "x"), "its path has more than"),
    ],
)  # fmt: skip
def test_what_no_commit_should_take_is_refused_by_name(
    attempt: Attempt, act: Callable[[Path], object], named: str
) -> None:
    write(attempt.folder, "fine.py", "x")
    act(attempt.folder)
    result = attempt.harvest()
    assert [line for line in result.refused if named in line], result.refused
    assert "fine.py" in kinds(result.changes)


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git ", ".git.", "git~1", "GIT~1", ".git::$INDEX", ".g\u200dit"]
)
def test_every_spelling_of_the_repositorys_folder_is_known(name: str) -> None:
    assert is_git_name(name)


@pytest.mark.parametrize("name", [".github", ".gitignore", "git", "x.git", "git~2"])
def test_innocent_names_are_not_taken_for_it(name: str) -> None:
    assert not is_git_name(name)


def test_a_baselines_own_outward_link_is_spared_and_a_changed_one_is_not(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    (repository.root / "out").symlink_to("/etc/motd")
    attempt = Attempt(tmp_path, repository, commit_all(repository.root))
    assert attempt.harvest().refused == ()
    (attempt.folder / "out").unlink()
    (attempt.folder / "out").symlink_to("/etc/mtab")
    assert attempt.harvest().refused[0].startswith("out: a symbolic link")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_refused(attempt: Attempt) -> None:
    write(attempt.folder, "secret", "x").chmod(0)
    (attempt.folder / "src").chmod(0)
    try:
        refused = attempt.harvest().refused
    finally:
        (attempt.folder / "src").chmod(0o755)
    assert refused == ("secret: it may not be read", "src: the folder may not be read")


def test_too_much_is_refused_before_it_is_read(attempt: Attempt) -> None:
    for number in range(6):
        write(attempt.folder, f"new/{number}", "x" * 100)
    for bounds, named in (
        (Bounds(files=5), "new/0: one of 6 new files"),
        (Bounds(file_bytes=50), "new/0: 100 bytes, more than 50"),
        (Bounds(total_bytes=500), "new/0: new and changed files have 600 bytes"),
        (Bounds(entries=5), ".: more than 5"),
    ):
        assert [line for line in attempt.harvest(bounds).refused if line.startswith(named)]
    huge = attempt.folder / "huge"
    with huge.open("wb") as file:
        file.truncate(2**40)
    assert "huge" not in kinds(attempt.harvest().changes)


def test_too_many_changed_files_are_refused(attempt: Attempt) -> None:
    for path in ("src/a.py", "src/b.py", "src/deep/c.py"):
        (attempt.folder / path).unlink()
    assert attempt.harvest(Bounds(files=2)).refused == (".: 3 changed files, more than 2",)


def test_ignored_masses_are_not_counted(attempt: Attempt) -> None:
    for number in range(50):
        write(attempt.folder, f"build/{number}/x", "x")
    os.mkfifo(attempt.folder / "build" / "fifo")
    new_repository(attempt.folder / "build" / "repo")
    assert attempt.harvest(Bounds(files=5, entries=20)) == attempt.harvest()
    assert attempt.harvest().refused == ()


def test_line_ends_follow_the_attributes_and_stored_ones_are_no_change(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    write(root, "old.txt", "a\r\nb\r\n")
    commit_all(root)
    write(root, ".gitattributes", "*.txt text\n*.bat text eol=crlf\n")
    write(root, "x.bat", "a\r\n")
    git(root, "add", ".gitattributes", "x.bat")
    git(root, "commit", "-qm", "attributes")
    attempt = Attempt(tmp_path, Git.open(root), git(root, "rev-parse", "HEAD"))
    assert attempt.harvest().changes == ()
    write(attempt.folder, "x.bat", "a\r\nb\r\n")
    write(attempt.folder, "old.txt", "c\r\n")
    result = attempt.harvest()
    assert kinds(result.changes).keys() == {"x.bat", "old.txt"}
    assert git(root, "cat-file", "blob", f"{result.tree}:x.bat") == "a\nb"


def test_submodules_stay_as_they_are(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    git(repository.root, "update-index", "--add", "--cacheinfo", f"160000,{first},libs/sub")
    git(repository.root, "commit", "-qm", "submodule")
    attempt = Attempt(tmp_path, repository, git(repository.root, "rev-parse", "HEAD"))
    assert attempt.harvest().changes == ()
    write(attempt.folder, "libs/sub/x", "x")
    assert attempt.harvest().refused == ("libs/sub: it changes a submodule, which is not supported",)
    shutil.rmtree(attempt.folder / "libs")
    assert attempt.harvest().changes == ()
    write(attempt.folder, "libs", "x")
    assert "libs/sub: it replaces a submodule, which is not supported" in attempt.harvest().refused


def test_a_harvest_leaves_the_person_alone(attempt: Attempt) -> None:
    write(attempt.git.root, "README.md", "mine\n")
    git(attempt.git.root, "add", "README.md")
    index = (attempt.git.git_dir() / "index").read_bytes()
    write(attempt.folder, "src/a.py", "a = 2\n")
    attempt.harvest()
    assert (attempt.git.git_dir() / "index").read_bytes() == index
    assert (attempt.git.root / "README.md").read_text() == "mine\n"
    assert git(attempt.git.root, "status", "--porcelain") == "M  README.md"


def test_a_candidate_stands_on_the_baseline_and_is_the_same_twice(attempt: Attempt) -> None:
    write(attempt.folder, "src/a.py", "a = 2\n")
    git(attempt.git.root, "config", "commit.gpgSign", "true")
    tree = attempt.harvest().tree
    first = candidate(attempt.git, attempt.baseline, tree, "message", "refs/longwatch/candidates/1")
    second = candidate(attempt.git, attempt.baseline, tree, "message", "refs/longwatch/candidates/1")
    assert first == second
    assert attempt.git.parents(first) == (attempt.baseline,)
    assert attempt.git.tree_of(first) == tree
    git(attempt.git.root, "gc", "--quiet", "--prune=now")
    assert attempt.git.has(first)
    assert attempt.git.head() == attempt.baseline
    with pytest.raises(ConfigError, match="refs/longwatch"):
        candidate(attempt.git, attempt.baseline, tree, "message", "refs/heads/main")


def test_partial_work_is_kept_as_a_patch_that_applies(attempt: Attempt, tmp_path: Path) -> None:
    write(attempt.folder, "src/a.py", "a = 2\n")
    write(attempt.folder, "picture", bytes(range(256)))
    os.mkfifo(attempt.folder / "fifo")
    patch = tmp_path / "partial.patch"
    kept = salvage(attempt.git, attempt.baseline, attempt.folder, tmp_path / "evidence", patch=patch)
    assert kept.patch == patch
    assert kept.omitted == ("fifo: neither a file, nor a folder, nor a symbolic link",)
    git(attempt.git.root, "apply", str(patch))
    assert (attempt.git.root / "picture").read_bytes() == bytes(range(256))


def test_a_patch_is_bounded_and_says_what_it_left_out(attempt: Attempt, tmp_path: Path) -> None:
    write(attempt.folder, "src/a.py", "a = 2\n")
    write(attempt.folder, "large", os.urandom(10_000))
    bounds = Bounds(patch_bytes=2_000)
    patch = tmp_path / "p"
    kept = salvage(attempt.git, attempt.baseline, attempt.folder, tmp_path / "e", patch=patch, bounds=bounds)
    assert kept.omitted == ("large",)
    assert b"a = 2" in patch.read_bytes()
    assert len(patch.read_bytes()) <= 2_000


def test_no_change_leaves_no_patch(attempt: Attempt, tmp_path: Path) -> None:
    kept = salvage(attempt.git, attempt.baseline, attempt.folder, tmp_path / "e", patch=tmp_path / "p")
    assert kept.patch is None
    assert not (tmp_path / "p").exists()
