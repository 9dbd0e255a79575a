import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from repositories import git, sample, write

from longwatch.kernel.errors import NotReadyError
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.locks import clear_stranded, holders


@pytest.fixture
def repository(tmp_path: Path) -> Git:
    return sample(tmp_path / "r")[0]


def _lock(repository: Git, name: str = "index.lock", age_s: float = 60.0) -> Path:
    lock = write(repository.git_dir(), name, "")
    os.utime(lock, (time.time() - age_s,) * 2)
    return lock


@pytest.mark.guarantee("M29")
def test_nothing_locked_is_nothing_removed(repository: Git) -> None:
    assert clear_stranded(repository, ["refs/heads/main"]) == ()


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize(
    "name", ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock", "next-index-12.lock"]
)
def test_a_stranded_lock_is_removed_and_named(repository: Git, name: str) -> None:
    lock = _lock(repository, name)
    assert clear_stranded(repository, ["refs/heads/main"]) == (lock.name,)
    assert not lock.exists()


def test_locks_of_others_are_left_alone(repository: Git) -> None:
    lock = _lock(repository, "refs/heads/other.lock")
    assert clear_stranded(repository, ["refs/heads/main"]) == ()
    assert lock.exists()


@pytest.mark.guarantee("M29")
def test_a_young_lock_is_waited_for(repository: Git) -> None:
    lock = _lock(repository, age_s=0.0)
    begun = time.monotonic()
    assert clear_stranded(repository, [], stranded_after_s=0.5) == ("index.lock",)
    assert time.monotonic() - begun >= 0.4
    assert not lock.exists()


def _waiting(argv: list[str], cwd: Path) -> "subprocess.Popen[bytes]":
    child = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.mark.guarantee("M29")
def test_an_open_lock_is_not_removed_whoever_holds_it(repository: Git, tmp_path: Path) -> None:
    lock = _lock(repository)
    program = "import sys; f = open(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
    child = _waiting([sys.executable, "-c", program, str(lock)], tmp_path)
    try:
        assert holders(repository, [lock]) == (child.pid,)
        with pytest.raises(NotReadyError, match=f"process {child.pid}"):
            clear_stranded(repository, [], patience_s=0.2)
        assert lock.exists()
    finally:
        child.communicate()
    assert clear_stranded(repository, []) == ("index.lock",)


@pytest.mark.guarantee("M29")
def test_a_git_at_work_in_the_repository_holds_a_closed_lock(repository: Git, tmp_path: Path) -> None:
    lock = _lock(repository)
    real = shutil.which("git")
    assert real is not None
    child = _waiting([real, "-c", "alias.wait=!echo ready; cat >/dev/null", "wait"], repository.root / "src")
    elsewhere = _waiting([real, "-c", "alias.wait=!echo ready; cat >/dev/null", "wait"], tmp_path)
    try:
        assert holders(repository, [lock]) == (child.pid,)
        with pytest.raises(NotReadyError):
            clear_stranded(repository, [], patience_s=0.2)
    finally:
        child.communicate()
        elsewhere.communicate()
    assert clear_stranded(repository, []) == ("index.lock",)


@pytest.mark.guarantee("M29")
def test_locks_of_a_linked_worktree_are_its_own(repository: Git, tmp_path: Path) -> None:
    git(repository.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))
    linked = Git.open(tmp_path / "w")
    mine, theirs = _lock(linked), _lock(repository)
    assert clear_stranded(linked, ["refs/heads/side"]) == ("index.lock",)
    assert not mine.exists()
    assert theirs.exists()
