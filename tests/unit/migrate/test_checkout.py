import os
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import commit_all, git, hook, new_repository, sample, write

from longwatch.kernel.errors import IntegrityError, PathError, RefusedError
from longwatch.migrate.repository.checkout import (
    clean_checkout,
    object_folders,
    private_clone,
    remove,
    unchanged,
)
from longwatch.migrate.repository.git import Git, GitError


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_private_clone_holds_the_commit_and_nothing_of_the_person(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    git(repository.root, "remote", "add", "origin", "https://me:secret@example.org/x")
    hook(repository.root, "post-checkout", f"touch {tmp_path}/ran")
    write(repository.root, "README.md", "dirty\n")
    before = snapshot(repository.git_dir())
    clone = tmp_path / "work" / "clone"
    private_clone(repository, first, clone)
    assert git(clone, "rev-parse", "HEAD") == first
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "remote") == ""
    assert (clone / "README.md").read_text() == "hello\n"
    assert "secret" not in (clone / ".git" / "config").read_text()
    assert not (tmp_path / "ran").exists()
    assert snapshot(repository.git_dir()) == before


def test_a_worker_may_commit_in_its_clone_without_a_trace_outside(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    before = snapshot(repository.git_dir())
    private_clone(repository, first, tmp_path / "clone")
    write(tmp_path / "clone", "src/a.py", "a = 2\n")
    git(tmp_path / "clone", "commit", "--quiet", "-am", "mine", GIT_CONFIG_GLOBAL=os.devnull)
    assert git(tmp_path / "clone", "log", "--format=%s") == "mine\nbegin"
    assert snapshot(repository.git_dir()) == before


@pytest.mark.guarantee("K6")
def test_an_interrupted_creation_does_not_break_the_next(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    write(tmp_path / "clone.part" / ".git", "index.lock", "")
    write(tmp_path / "clone.part", "rest", "x")
    private_clone(repository, first, tmp_path / "clone")
    assert unchanged(repository, first, tmp_path / "clone") == ()
    assert not (tmp_path / "clone" / "rest").exists()
    assert not (tmp_path / "clone.part").exists()


def test_a_failed_creation_leaves_no_target(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    with pytest.raises(GitError):
        private_clone(repository, "0" * 40, tmp_path / "clone")
    assert not (tmp_path / "clone").exists()
    remove(tmp_path / "clone", tmp_path)
    assert not (tmp_path / "clone.part").exists()


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    (tmp_path / "clone").symlink_to("nowhere")
    with pytest.raises(RefusedError, match="remove it"):
        private_clone(repository, first, tmp_path / "clone")


@pytest.mark.guarantee("M24")
def test_a_clean_checkout_is_at_exactly_the_commit(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    write(repository.root, "src/a.py", "a = 2\n")
    commit_all(repository.root)
    clean_checkout(repository, first, tmp_path / "base")
    assert (tmp_path / "base" / "src" / "a.py").read_text() == "a = 1\n"
    assert git(tmp_path / "base", "status", "--porcelain", "--ignored") == ""


@pytest.mark.guarantee("M24")
def test_filters_and_line_endings_cannot_make_a_checkout_differ(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    write(root, ".gitattributes", "*.bat text eol=crlf\n*.up filter=up\n*.txt text\n")
    write(root, "x.bat", "one\r\ntwo\r\n")
    write(root, "x.up", "up\n")
    write(root, "plain.txt", "a\nb\n")
    git(root, "config", "filter.up.clean", "tr a-z A-Z")
    git(root, "config", "filter.up.smudge", f"touch {tmp_path}/ran; cat")
    git(root, "config", "filter.up.required", "true")
    git(root, "config", "core.autocrlf", "true")
    commit = commit_all(root)
    (tmp_path / "ran").unlink(missing_ok=True)
    clean_checkout(Git.open(root), commit, tmp_path / "c")
    assert (tmp_path / "c" / "x.bat").read_bytes() == b"one\r\ntwo\r\n"
    assert (tmp_path / "c" / "x.up").read_text() == "UP\n"
    assert (tmp_path / "c" / "plain.txt").read_bytes() == b"a\nb\n"
    assert not (tmp_path / "ran").exists()


def test_a_checkout_that_differs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, first = sample(tmp_path / "r")
    monkeypatch.setattr("longwatch.migrate.repository.checkout.unchanged", lambda *_: ("src/a.py",))
    with pytest.raises(IntegrityError, match=r"src/a\.py"):
        clean_checkout(repository, first, tmp_path / "c")


def _tamper_content(folder: Path) -> None:
    stat = (folder / "src/a.py").stat()
    (folder / "src/a.py").write_text("a = 9\n")
    os.utime(folder / "src/a.py", ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _tamper_flag(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "src/a.py")
    write(folder, "src/a.py", "a = 9\n")


def _tamper_attributes(folder: Path) -> None:
    write(folder, "src/.gitattributes", "*.py text\n")
    write(folder, "src/a.py", "a = 1\r\n")


def _tamper_commit(folder: Path) -> None:
    write(folder, "src/a.py", "a = 9\n")
    git(folder, "commit", "-qam", "hide")


def _tamper_fifo(folder: Path) -> None:
    (folder / "src/a.py").unlink()
    os.mkfifo(folder / "src/a.py")


def _tamper_link(folder: Path) -> None:
    (folder / "src").rename(folder / "other")
    (folder / "src").symlink_to("other")


def _tamper_git(folder: Path) -> None:
    remove(folder / ".git", folder)
    write(folder, "src/a.py", "a = 9\n")


@pytest.mark.guarantee("M17")
@pytest.mark.parametrize(
    "tamper",
    [
        _tamper_content,
        _tamper_flag,
        _tamper_attributes,
        _tamper_commit,
        _tamper_fifo,
        _tamper_link,
        _tamper_git,
        lambda folder: (folder / "run.sh").chmod(0o644),
        lambda folder: (folder / "link").unlink(),
    ],
)
def test_no_change_by_a_check_stays_unseen(tmp_path: Path, tamper: Callable[[Path], object]) -> None:
    repository, first = sample(tmp_path / "r")
    clean_checkout(repository, first, tmp_path / "c")
    assert unchanged(repository, first, tmp_path / "c") == ()
    tamper(tmp_path / "c")
    assert unchanged(repository, first, tmp_path / "c") != ()


@pytest.mark.guarantee("M17")
def test_looking_runs_nothing_that_the_folder_names(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    clone = tmp_path / "c"
    clean_checkout(repository, first, clone)
    trap = write(tmp_path, "trap", f"#!/bin/sh\ntouch {tmp_path}/ran\n", 0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "diff.x.command", "diff.x.textconv", "core.pager"):
        git(clone, "config", key, str(trap))
    write(clone, ".gitattributes", "* filter=x diff=x\n")
    assert ".gitattributes" in unchanged(repository, first, clone)
    assert not (tmp_path / "ran").exists()


def test_what_checks_leave_untracked_does_not_count(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    clean_checkout(repository, first, tmp_path / "c")
    write(tmp_path / "c", "node_modules/x/.gitattributes", "* text\n")
    write(tmp_path / "c", "src/cache.pyc", "x")
    assert unchanged(repository, first, tmp_path / "c") == ()


def test_submodules_are_empty_folders_and_are_not_looked_into(tmp_path: Path) -> None:
    inner, inner_commit = sample(tmp_path / "inner")
    repository, _ = sample(tmp_path / "r")
    git(repository.root, "update-index", "--add", "--cacheinfo", f"160000,{inner_commit},sub")
    git(repository.root, "commit", "-qm", "submodule")
    commit = repository.head()
    assert commit is not None
    assert inner.head() == inner_commit
    clean_checkout(repository, commit, tmp_path / "c")
    assert list((tmp_path / "c" / "sub").iterdir()) == []
    new_repository(tmp_path / "c" / "sub")
    git(tmp_path / "c" / "sub", "config", "core.fsmonitor", f"touch {tmp_path}/ran")
    write(tmp_path / "c" / "sub", "x", "x")
    commit_all(tmp_path / "c" / "sub")
    (tmp_path / "ran").unlink(missing_ok=True)
    assert unchanged(repository, commit, tmp_path / "c") == ()
    assert not (tmp_path / "ran").exists()


def test_clones_are_made_from_shallow_linked_borrowing_and_sha256_repositories(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    second = commit_all(repository.root, "second")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository.root}", "shallow")
    git(tmp_path, "clone", "--quiet", "--shared", "r", "shared")
    git(repository.root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    for name in ("shallow", "shared", "linked"):
        clean_checkout(Git.open(tmp_path / name), second, tmp_path / "work" / name)
        assert git(tmp_path / "work" / name, "log", "--format=%s").startswith("second")
    assert len(object_folders(Git.open(tmp_path / "shared"))) == 2
    modern = new_repository(tmp_path / "m", "--object-format=sha256")
    write(modern, "x", "x")
    clean_checkout(Git.open(modern), commit_all(modern), tmp_path / "work" / "m")


@pytest.mark.guarantee("K9")
def test_removal_is_proved_and_stays_below_its_root(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    clean_checkout(repository, first, tmp_path / "work" / "c")
    (tmp_path / "work" / "c" / "src").chmod(0o500)
    (tmp_path / "work" / "c" / "out").symlink_to(repository.root)
    remove(tmp_path / "work" / "c", tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []
    assert repository.dirty_paths() == ()
    assert git(repository.root, "worktree", "list").count("\n") == 0
    with pytest.raises(PathError):
        remove(repository.root, tmp_path / "work")
