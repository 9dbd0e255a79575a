import os
import time
from pathlib import Path

import pytest
from repositories import commit_all, git, hook, new_repository, sample, write

from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.migrate.repository.git import Change, Git, GitError, masked


def test_open_finds_the_top_from_a_folder_inside(tmp_path: Path) -> None:
    sample(tmp_path / "r")
    assert Git.open(tmp_path / "r" / "src").root == tmp_path / "r"


def test_open_refuses_what_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no git repository"):
        Git.open(tmp_path)


def test_open_refuses_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare")
    with pytest.raises(ConfigError, match="working tree"):
        Git.open(tmp_path / "bare")


def test_a_repository_without_commits_has_no_head(tmp_path: Path) -> None:
    repository = Git.open(new_repository(tmp_path / "r"))
    assert repository.head() is None
    assert repository.branch() == "main"
    assert repository.tip("main") is None


def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    git(repository.root, "checkout", "--quiet", "--detach")
    assert repository.branch() is None
    assert repository.head() == repository.tip("main") == first


def test_a_linked_worktree_is_asked_like_any_other(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    git(repository.root, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "w"))
    linked = Git.open(tmp_path / "w")
    assert (linked.branch(), linked.head()) == ("other", first)
    assert linked.internal("index.lock").parent.name == "w"
    assert linked.common_dir() == repository.git_dir()


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_an_operation_in_progress_is_named(tmp_path: Path, operation: str) -> None:
    repository, first = sample(tmp_path / "r")
    root = repository.root
    assert repository.operation() is None
    write(root, "README.md", "two\n")
    second = commit_all(root)
    write(root, "README.md", "three\n")
    commit_all(root)
    git(root, "branch", "side", first)
    git(root, "checkout", "--quiet", "side")
    write(root, "README.md", "other\n")
    commit_all(root)
    begin = {
        "merge": ["merge", "main"],
        "rebase": ["rebase", "main"],
        "cherry-pick": ["cherry-pick", "main"],
        "revert": ["revert", "--no-edit", second],
        "bisect": ["bisect", "start"],
    }[operation]
    repository.answer(*begin)
    assert repository.operation() == operation


def test_dirty_paths_names_every_kind(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    root = repository.root
    write(root, "README.md", "changed\n")
    write(root, "src/a.py", "staged\n")
    git(root, "add", "src/a.py")
    git(root, "mv", "src/b.py", "src/moved here.py")
    (root / "run.sh").unlink()
    write(root, "new/ä\nb.txt", "new")
    write(root, "intent.txt", "later")
    git(root, "add", "--intent-to-add", "intent.txt")
    write(root, "x.log", "ignored")
    assert set(repository.dirty_paths()) == {
        "README.md", "src/a.py", "src/b.py", "src/moved here.py", "run.sh", "new/ä\nb.txt", "intent.txt",
    }  # fmt: skip


def test_dirty_paths_names_unmerged_paths(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    root = repository.root
    write(root, "README.md", "two\n")
    commit_all(root)
    git(root, "checkout", "--quiet", "-b", "side", first)
    write(root, "README.md", "other\n")
    commit_all(root)
    repository.answer("merge", "main")
    assert repository.dirty_paths() == ("README.md",)


def test_dirty_paths_leaves_the_index_alone(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    os.utime(repository.root / "README.md")
    before = (repository.git_dir() / "index").read_bytes()
    assert repository.dirty_paths() == ()
    assert (repository.git_dir() / "index").read_bytes() == before


def test_hidden_paths_names_what_status_does_not_look_at(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    git(repository.root, "update-index", "--assume-unchanged", "README.md")
    git(repository.root, "update-index", "--skip-worktree", "run.sh")
    assert set(repository.hidden_paths()) == {"README.md", "run.sh"}


def test_diff_names_tells_kinds_and_modes(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    root = repository.root
    (root / "README.md").unlink()
    write(root, "src/a.py", "a = 2\n")
    write(root, "new dir/n", "n", 0o755)
    (root / "run.sh").unlink()
    (root / "run.sh").symlink_to("src/a.py")
    second = commit_all(root)
    kinds = {change.path: (change.kind, change.mode) for change in repository.diff_names(first, second)}
    assert kinds == {
        "README.md": ("D", "000000"),
        "src/a.py": ("M", "100644"),
        "new dir/n": ("A", "100755"),
        "run.sh": ("T", "120000"),
    }
    assert isinstance(repository.diff_names(first, second)[0], Change)
    assert repository.diff_names(first, first) == ()


def test_files_of_a_commit_are_read_from_the_commit(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    write(repository.root, "README.md", "later\n")
    assert repository.show(first, "README.md") == b"hello\n"
    assert repository.show(first, "missing") is None
    assert repository.show(first, "src") is None
    assert [entry.path for entry in repository.ls_tree(first, "src")] == [
        "src/a.py",
        "src/b.py",
        "src/deep/c.py",
    ]


def test_paths_are_never_patterns(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    write(repository.root, "*.py", "star\n")
    second = commit_all(repository.root)
    assert repository.show(second, "*.py") == b"star\n"
    assert [entry.path for entry in repository.ls_tree(second, "*.py")] == ["*.py"]


def test_an_error_holds_gits_own_words(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    with pytest.raises(GitError, match=r"rev-parse.*no-such"):
        repository.tree_of("no-such")


@pytest.mark.guarantee("K24")
def test_credentials_in_addresses_are_masked() -> None:
    assert (
        masked("fatal: https://me:secret@host/x and https://host/y")
        == "fatal: https://***@host/x and https://host/y"
    )


def test_the_environment_cannot_point_git_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, first = sample(tmp_path / "r")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other-index"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert repository.head() == first
    assert repository.dirty_paths() == ()


def test_a_hanging_command_is_ended_with_its_session(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    mark = tmp_path / "child"
    hook(repository.root, "pre-commit", f"trap '' TERM; echo $$ > {mark}; sleep 1000")
    finished = repository.answer("commit", "--allow-empty", "-m", "x", timeout_s=1.0)
    assert finished.ended_by == "time"
    assert not finished.ok
    child = int(mark.read_text())
    while (
        Path(f"/proc/{child}").exists()
        and "Z" not in Path(f"/proc/{child}/stat").read_text().rpartition(")")[2]
    ):
        os.sched_yield()
    assert not (repository.git_dir() / "index.lock").exists()


@pytest.mark.guarantee("K20")
def test_an_orphan_that_holds_the_output_does_not_hold_us(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    mark = tmp_path / "orphan"
    hook(repository.root, "pre-commit", f"sleep 100 & echo $! > {mark}")
    begun = time.monotonic()
    assert repository.answer("commit", "--allow-empty", "-m", "x", timeout_s=90.0).ok
    assert time.monotonic() - begun < 90.0
    os.kill(int(mark.read_text()), 9)


def test_endless_output_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, _ = sample(tmp_path / "r")
    monkeypatch.setattr("longwatch.migrate.repository.git.OUTPUT_BYTES", 1000)
    finished = repository.answer("-c", "alias.flood=!yes", "flood")
    assert finished.ended_by == "output"
    assert len(finished.stdout) == 1000


def test_only_our_own_references_are_written(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    repository.update_ref("refs/longwatch/candidates/1", first)
    assert git(repository.root, "rev-parse", "refs/longwatch/candidates/1") == first
    repository.delete_ref("refs/longwatch/candidates/1")
    repository.delete_ref("refs/longwatch/candidates/1")
    for change in (
        lambda: repository.update_ref("refs/heads/main", first),
        lambda: repository.delete_ref("refs/heads/main"),
    ):
        with pytest.raises(ConfigError, match="refs/longwatch"):
            change()


def test_ancestors_parents_and_messages(tmp_path: Path) -> None:
    repository, first = sample(tmp_path / "r")
    second = commit_all(repository.root, "second\n\nbody")
    assert repository.parents(second) == (first,)
    assert repository.is_ancestor(first, second)
    assert not repository.is_ancestor(second, first)
    assert repository.message(second).rstrip() == "second\n\nbody"
    assert repository.has(first)
    assert not repository.has("0" * 40)


def test_a_missing_git_or_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LongwatchError, match="gone"):
        Git(tmp_path / "gone").head()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LongwatchError, match="cannot run git"):
        Git(tmp_path).head()
