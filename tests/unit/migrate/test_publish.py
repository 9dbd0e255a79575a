import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from publications import change, leave_unfinished, picture, verified, waiting, work_of_a_person
from repositories import commit_all, git, hook, new_repository, sample, write

from longwatch.kernel.errors import ExitCode, IntegrityError, LongwatchError
from longwatch.migrate.repository.checkout import private_clone
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.publish import (
    PUBLISHING,
    CommitRefusedError,
    DirtyPathsError,
    MovedError,
    NotPublished,
    OtherTreeError,
    Published,
    PublishRequest,
    Unclear,
    UndeclaredError,
    confirm,
    publish,
    withdraw,
)


def _with_person(tmp_path: Path) -> tuple[Git, PublishRequest]:
    """A waiting change in a repository that is full of a person's unfinished work."""
    repository, _ = sample(tmp_path / "r")
    work_of_a_person(repository.root)
    baseline = git(repository.root, "rev-parse", "HEAD")
    private_clone(repository, baseline, tmp_path / "clone")
    change(tmp_path / "clone")
    request = verified(tmp_path, repository, baseline, tmp_path / "clone")
    leave_unfinished(repository.root)
    return repository, request


@pytest.mark.guarantee("M29")
def test_the_change_becomes_one_commit_of_the_person(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    published = publish(request, repository)
    assert published.notes == ()
    assert repository.head() == published.commit
    assert repository.parents(published.commit) == (request.baseline,)
    assert repository.tree_of(published.commit) == repository.tree_of(request.candidate)
    assert repository.dirty_paths() == ()
    shown = git(repository.root, "show", "-s", "--format=%an|%B%(trailers:key=Longwatch-Attempt,valueonly)")
    assert shown.startswith("A Person|Port the module\n\nWith a body.\n\n")
    assert shown.endswith("a1")
    assert f"Longwatch-Receipt: {'0' * 64}" in shown
    assert git(repository.root, "for-each-ref", "refs/longwatch/publishing") == ""
    assert not (repository.root / "src/deep").exists()
    assert (repository.root / "new/run").stat().st_mode & 0o111
    assert confirm(request, repository) == published


@pytest.mark.guarantee("M28")
def test_a_persons_work_stays_as_it_is_and_staged(tmp_path: Path) -> None:
    repository, request = _with_person(tmp_path)
    before = picture(repository.root, request.paths)
    publish(request, repository)
    assert picture(repository.root, request.paths) == before
    assert "A  mine/new" in before["status"]
    assert "MM mine/both" in before["status"]
    assert git(repository.root, "diff", "--name-only", "HEAD~1", "HEAD").split("\n") == sorted(request.paths)


@pytest.mark.guarantee("M29")
def test_files_and_folders_may_change_places(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    clone = tmp_path / "clone"
    private_clone(repository, baseline, clone)
    (clone / "README.md").unlink()
    write(clone, "README.md/part", "x")
    shutil.rmtree(clone / "src" / "deep")
    write(clone, "src/deep", "a file")
    (clone / "link").unlink()
    write(clone, "link/x", "x")
    request = verified(tmp_path, repository, baseline, clone)
    publish(request, repository)
    assert repository.dirty_paths() == ()
    hook(repository.root, "pre-commit", "exit 1")
    second = repository.head()
    assert second is not None
    shutil.rmtree(clone)
    private_clone(repository, second, clone)
    shutil.rmtree(clone / "README.md")
    write(clone, "README.md", "again")
    shutil.rmtree(clone / "src")
    (clone / "new").mkdir()
    write(clone, "new/a.py", "x")
    (clone / "src").symlink_to("new")
    request = verified(tmp_path, repository, second, clone)
    before = picture(repository.root)
    with pytest.raises(CommitRefusedError):
        publish(request, repository)
    assert picture(repository.root).keys() == before.keys()
    assert repository.dirty_paths() == ()
    (repository.git_dir() / "hooks" / "pre-commit").unlink()
    publish(request, repository)
    assert repository.dirty_paths() == ()
    assert (repository.root / "src" / "a.py").read_text() == "x"


def _elsewhere(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")


def _merge(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    write(root, "side", "x")
    commit_all(root)
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "--no-commit", "side")


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda r: commit_all(r, "moved"), "verified on"),
        (_elsewhere, "other is checked out"),
        (lambda r: git(r, "checkout", "-q", "--detach"), "detached HEAD"),
        (_merge, "merge is under way"),
    ],
)
def test_only_on_the_branch_at_the_baseline(
    tmp_path: Path, act: Callable[[Path], object], named: str
) -> None:
    repository, request = waiting(tmp_path)
    act(repository.root)
    before, head = picture(repository.root), repository.head()
    with pytest.raises(MovedError, match=named):
        publish(request, repository)
    assert picture(repository.root) == before
    assert repository.head() == head


def _stage_back(root: Path) -> None:
    write(root, "src/a.py", "staged\n")
    git(root, "add", "src/a.py")
    write(root, "src/a.py", "a = 1\n")


def _ignored(root: Path) -> None:
    write(root, ".git/info/exclude", "new/\n")
    write(root, "new/run", "mine")


def _assume(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "src/a.py")
    write(root, "src/a.py", "mine\n")


def _intent(root: Path) -> None:
    write(root, "new/run", "mine")
    git(root, "add", "--intent-to-add", "new/run")


def _linked_folder(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "new").symlink_to("elsewhere")


@pytest.mark.guarantee("M28", "M29")
@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda r: write(r, "src/a.py", "mine\n"), "src/a.py"),
        (lambda r: write(r, "src/a.py", ""), "src/a.py"),
        (lambda r: (r / "src/a.py").unlink(), "src/a.py"),
        (lambda r: (r / "src/a.py").chmod(0o755), "src/a.py"),
        (_stage_back, "src/a.py"),
        (lambda r: git(r, "rm", "-q", "--cached", "src/a.py"), "src/a.py"),
        (_assume, "src/a.py"),
        (lambda r: write(r, "src/deep/c.py", "mine\n"), "src/deep/c.py"),
        (lambda r: write(r, "new/run", "mine"), "new/run"),
        (lambda r: write(r, "new/run/x", "mine"), "new/run/x"),
        (lambda r: write(r, "new", "a file"), "new is no folder"),
        (_linked_folder, "new is no folder"),
        (_ignored, "new/run"),
        (_intent, "new/run"),
        (lambda r: (r / "link").unlink(), "link"),
    ],
)
def test_nothing_of_the_persons_is_overwritten(
    tmp_path: Path, act: Callable[[Path], object], named: str
) -> None:
    repository, request = waiting(tmp_path)
    act(repository.root)
    before = picture(repository.root)
    with pytest.raises(DirtyPathsError, match=named) as caught:
        publish(request, repository)
    assert caught.value.exit_code is ExitCode.BLOCKED
    assert picture(repository.root) == before
    assert repository.head() == request.baseline


@pytest.mark.guarantee("M28", "M29")
@pytest.mark.parametrize("dirty", ["src/a.py", "new", "new/folder"])
def test_paths_that_were_dirty_before_are_not_published(tmp_path: Path, dirty: str) -> None:
    repository, request = waiting(tmp_path, dirty_before=(dirty,))
    with pytest.raises(DirtyPathsError, match="dirty before"):
        publish(request, repository)


@pytest.mark.guarantee("M28")
def test_a_folder_with_ignored_files_is_not_replaced(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    private_clone(repository, baseline, tmp_path / "clone")
    shutil.rmtree(tmp_path / "clone" / "src" / "deep")
    write(tmp_path / "clone", "src/deep", "a file")
    request = verified(tmp_path, repository, baseline, tmp_path / "clone")
    write(repository.root, "src/deep/x.log", "ignored, and mine")
    with pytest.raises(DirtyPathsError, match=r"src/deep/x\.log"):
        publish(request, repository)
    assert (repository.root / "src/deep/x.log").read_text() == "ignored, and mine"


@pytest.mark.guarantee("M29", "M18")
def test_only_the_verified_paths(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    for paths in (request.paths[1:], (*request.paths, "README.md"), ()):
        with pytest.raises(UndeclaredError) as caught:
            publish(msgspec.structs.replace(request, paths=paths), repository)
        assert isinstance(caught.value, IntegrityError)
    other = msgspec.structs.replace(request, baseline=commit_all(repository.root, "next"))
    with pytest.raises(UndeclaredError, match="does not stand on"):
        publish(other, repository)


@pytest.mark.guarantee("M29")
def test_a_hooks_folder_inside_the_tree_cannot_be_changed(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    git(repository.root, "config", "core.hooksPath", "new")
    with pytest.raises(UndeclaredError, match=r"core\.hookspath"):
        publish(request, repository)
    assert repository.dirty_paths() == ()


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize("name", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_a_hook_that_refuses_is_named_and_leaves_everything_as_it_was(tmp_path: Path, name: str) -> None:
    repository, request = _with_person(tmp_path)
    hook(repository.root, name, "echo 'I do not like it' >&2; exit 1")
    before = picture(repository.root)
    with pytest.raises(CommitRefusedError, match=rf"the hook {name} refused.*I do not like it"):
        publish(request, repository)
    assert picture(repository.root) == before
    assert repository.head() == request.baseline
    (repository.git_dir() / "hooks" / name).unlink()
    assert publish(request, repository).notes == ()


@pytest.mark.guarantee("M29")
def test_a_hook_that_hangs_is_named_and_ended(tmp_path: Path) -> None:
    repository, request = _with_person(tmp_path)
    hook(repository.root, "pre-commit", "trap '' TERM INT; while :; do sleep 1; done")
    before = picture(repository.root)
    with pytest.raises(CommitRefusedError, match="the hook pre-commit did not end in time"):
        publish(msgspec.structs.replace(request, timeout_s=1.0), repository)
    assert picture(repository.root) == before


@pytest.mark.guarantee("M29")
def test_a_hook_that_hangs_after_the_commit_is_told(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    hook(repository.root, "post-commit", "sleep 1000")
    published = publish(msgspec.structs.replace(request, timeout_s=1.0), repository)
    assert "the hook post-commit did not end in time" in published.notes[0]
    assert repository.head() == published.commit
    assert repository.dirty_paths() == ()


@pytest.mark.guarantee("M29")
def test_a_hook_that_changes_the_tree_needs_a_person(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    hook(repository.root, "pre-commit", "echo '# formatted' >> src/a.py; git add src/a.py")
    with pytest.raises(OtherTreeError, match="the hook pre-commit") as caught:
        publish(request, repository)
    assert caught.value.exit_code is ExitCode.NEEDS_RECONCILE
    assert isinstance(confirm(request, repository), Unclear)


def test_what_a_refusing_hook_wrote_is_kept_as_a_blob(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    hook(repository.root, "pre-commit", "echo precious > src/a.py; exit 1")
    with pytest.raises(CommitRefusedError, match=r"src/a\.py: git cat-file blob (\w+)") as caught:
        publish(request, repository)
    blob = str(caught.value).partition("cat-file blob ")[2].split(".")[0]
    assert repository.blob(blob) == b"precious\n"
    assert repository.dirty_paths() == ()


def test_a_message_hook_may_add_a_line(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    hook(repository.root, "commit-msg", 'echo "Change-Id: I1" >> "$1"')
    published = publish(request, repository)
    assert "Change-Id: I1" in repository.message(published.commit)
    assert confirm(request, repository) == published


def test_a_message_of_a_worker_is_made_text(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path, message="Port\x00 \x1b[2J it\udcff\n\nLongwatch-Attempt: other")
    commit = publish(request, repository).commit
    assert repository.message(commit).startswith("Port\ufffd \ufffd[2J it\ufffd\n")
    assert git(repository.root, "show", "-s", "--format=%(trailers:key=Longwatch-Attempt,valueonly)") == "a1"


def test_lines_that_begin_with_a_hash_stay_in_the_message(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path, message="Mend #12\n\n#12 is mended")
    assert "#12 is mended" in repository.message(publish(request, repository).commit)


@pytest.mark.guarantee("M29")
def test_signing_is_the_persons(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    git(repository.root, "config", "commit.gpgSign", "true")
    signer = write(tmp_path, "signer", "#!/bin/sh\nexit 1\n", 0o755)
    git(repository.root, "config", "gpg.program", str(signer))
    with pytest.raises(CommitRefusedError, match="signer refused"):
        publish(request, repository)
    assert repository.dirty_paths() == ()
    signed = "echo '[GNUPG:] SIG_CREATED ' >&2; echo '-----BEGIN PGP SIGNATURE-----'; cat >/dev/null"
    write(tmp_path, "signer", f"#!/bin/sh\n{signed}\n", 0o755)
    commit = publish(request, repository).commit
    assert "gpgsig" in git(repository.root, "cat-file", "commit", commit)


def test_a_missing_identity_is_told_and_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, request = waiting(tmp_path)
    for key in ("user.name", "user.email"):
        git(repository.root, "config", "--unset", key)
    git(repository.root, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CommitRefusedError, match="tell me who you are"):
        publish(request, repository)
    assert repository.dirty_paths() == ()


@pytest.mark.guarantee("M29")
def test_a_configuration_that_would_change_the_content_is_seen_before_the_commit(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    git(repository.root, "config", "core.fileMode", "false")
    with pytest.raises(CommitRefusedError, match=r"core\.fileMode"):
        publish(request, repository)
    git(repository.root, "config", "core.fileMode", "true")
    assert repository.dirty_paths() == ()
    assert repository.head() == request.baseline


def test_line_ends_of_the_persons_tree_are_theirs(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    write(root, ".gitattributes", "*.bat text eol=crlf\n")
    write(root, "x.bat", "a\r\n")
    write(root, "y.txt", "a\n")
    baseline = commit_all(root)
    repository = Git.open(root)
    private_clone(repository, baseline, tmp_path / "clone")
    write(tmp_path / "clone", "x.bat", "a\r\nb\r\n")
    write(tmp_path / "clone", "y.txt", "a\nb\n")
    request = verified(tmp_path, repository, baseline, tmp_path / "clone")
    git(root, "config", "core.autocrlf", "input")
    publish(request, repository)
    assert (root / "x.bat").read_bytes() == b"a\r\nb\r\n"
    assert repository.dirty_paths() == ()


def test_a_linked_worktree_is_published_in(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    git(repository.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))
    linked = Git.open(tmp_path / "w")
    private_clone(linked, baseline, tmp_path / "clone")
    write(tmp_path / "clone", "src/a.py", "a = 2\n")
    publish(verified(tmp_path, linked, baseline, tmp_path / "clone", branch="side"), linked)
    assert linked.dirty_paths() == repository.dirty_paths() == ()
    assert repository.head() == baseline


def test_confirm_before_anything_happened(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    write(repository.root, "src/a.py", "the person's own")
    assert confirm(request, repository) == NotPublished()


@pytest.mark.guarantee("K6")
def test_confirm_finds_the_commit_below_later_ones(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    published = publish(request, repository)
    commit_all(repository.root, "the person works on")
    git(repository.root, "checkout", "-q", "-b", "other")
    assert confirm(request, repository) == Published(commit=published.commit)


@pytest.mark.guarantee("K6", "M29")
@pytest.mark.parametrize("gone_on", [False, True], ids=["at the tip", "below a later commit"])
def test_a_try_that_failed_after_its_commit_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone_on: bool
) -> None:
    repository, request = _with_person(tmp_path)

    def no_process(_git: Git, _ref: str) -> None:
        raise LongwatchError("cannot run git: Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(Git, "delete_ref", no_process)
        with pytest.raises(LongwatchError, match="temporarily"):
            publish(request, repository)
    made = repository.head()
    if gone_on:
        git(repository.root, "commit", "-q", "--allow-empty", "-m", "the person goes on")
    tip, unfinished = repository.head(), picture(repository.root)
    assert publish(request, repository) == Published(commit=made)
    assert repository.parents(made) == (request.baseline,)
    assert (repository.head(), picture(repository.root)) == (tip, unfinished)
    assert not repository.has(f"{PUBLISHING}{request.attempt}")


@pytest.mark.guarantee("K6")
def test_confirm_does_not_take_another_commit_for_ours(tmp_path: Path) -> None:
    repository, request = waiting(tmp_path)
    commit_all(repository.root, "empty")
    assert isinstance(confirm(request, repository), Unclear)
    git(repository.root, "reset", "-q", "--hard", request.candidate)
    answer = confirm(request, repository)
    assert isinstance(answer, Unclear)
    assert "git log" in answer.reason


def _begun(tmp_path: Path) -> tuple[Git, PublishRequest]:
    """A publication that was cut after it had written."""
    repository, request = waiting(tmp_path)
    repository.update_ref("refs/longwatch/publishing/a1", request.candidate)
    git(repository.root, "checkout", request.candidate, "--", "src/a.py", "new")
    (repository.root / "link").unlink()
    (repository.root / "new/folder/n.py").write_text("n")
    return repository, request


@pytest.mark.guarantee("K6", "M29")
def test_half_written_paths_are_recognised_and_published(tmp_path: Path) -> None:
    repository, request = _begun(tmp_path)
    answer = confirm(request, repository)
    assert answer == NotPublished(half_written=("link", "new/folder/n.py", "new/run", "src/a.py"))
    publish(request, repository)
    assert repository.dirty_paths() == ()


@pytest.mark.guarantee("K6", "M28")
def test_half_written_paths_can_be_withdrawn(tmp_path: Path) -> None:
    repository, request = _begun(tmp_path)
    assert withdraw(request, repository) == ()
    assert repository.dirty_paths() == ()
    assert withdraw(request, repository) == ()
    assert not (repository.root / "new").exists()


@pytest.mark.guarantee("K6", "M28")
def test_a_persons_edit_after_the_cut_is_unclear_and_not_overwritten(tmp_path: Path) -> None:
    repository, request = _begun(tmp_path)
    write(repository.root, "src/a.py", "mine")
    answer = confirm(request, repository)
    assert isinstance(answer, Unclear)
    assert "src/a.py" in answer.reason
    with pytest.raises(DirtyPathsError, match=r"src/a\.py"):
        publish(request, repository)
    assert (repository.root / "src/a.py").read_text() == "mine"
    kept = withdraw(request, repository)
    assert repository.blob(kept[0].rpartition(" ")[2]) == b"mine"


def test_a_gone_branch_and_another_branch_are_unclear(tmp_path: Path) -> None:
    repository, request = _begun(tmp_path)
    git(repository.root, "checkout", "-q", "-f", "-b", "other")
    assert isinstance(confirm(request, repository), Unclear)
    git(repository.root, "branch", "-q", "-D", "main")
    answer = confirm(request, repository)
    assert isinstance(answer, Unclear)
    assert "is gone" in answer.reason
