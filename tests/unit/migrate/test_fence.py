import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import commit_all, git, hook, sample, write

from longwatch.migrate.repository.fence import differences, take
from longwatch.migrate.repository.git import Git


def _watch(root: Path) -> list[Path]:
    write(root, "watch/longwatch.toml", "kind = 'migrate'\n")
    write(root, "watch/tasks/1.md", "card")
    return [root / "watch" / "longwatch.toml", root / "watch" / "tasks", root / "watch" / "queue.md"]


@pytest.mark.guarantee("M16")
def test_nothing_happened_is_no_difference(tmp_path: Path) -> None:
    repository, _ = sample(tmp_path / "r")
    protected = _watch(repository.root)
    before = take(repository, "main", protected)
    write(repository.root, "README.md", "the person works on\n")
    git(repository.root, "add", "README.md")
    assert differences(before, take(repository, "main", protected)) == ()


def _swap_for_link(root: Path) -> None:
    (root / "watch/longwatch.toml").rename(root / "elsewhere")
    (root / "watch/longwatch.toml").symlink_to(root / "elsewhere")


def _fifo(root: Path) -> None:
    (root / "watch/tasks/1.md").unlink()
    os.mkfifo(root / "watch/tasks/1.md")


@pytest.mark.guarantee("M16", "M29")
@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda r: write(r, "watch/longwatch.toml", "kind = 'other'\n"), "changed: .*longwatch.toml"),
        (lambda r: (r / "watch/longwatch.toml").chmod(0o600), "changed: .*longwatch.toml"),
        (_swap_for_link, "changed: .*longwatch.toml"),
        (_fifo, "changed: .*1.md"),
        (lambda r: (r / "watch/tasks/1.md").unlink(), "missing: .*1.md"),
        (lambda r: write(r, "watch/tasks/2.md", "mine"), "new: .*2.md"),
        (lambda r: write(r, "watch/queue.md", "mine"), "new: .*queue.md"),
        (lambda r: (r / "watch/tasks/empty").mkdir(), "new: .*empty/"),
        (lambda r: git(r, "config", "core.bare", "true"), "changed: git setting core.bare"),
        (lambda r: git(r, "config", "core.hooksPath", "x"), "new: git setting core.hookspath"),
        (lambda r: git(r, "config", "--add", "user.name", "B"), "changed: git setting user.name"),
        (lambda r: git(r, "config", "--unset", "gc.auto"), "missing: git setting gc.auto"),
        (lambda r: hook(r, "pre-commit", "true"), "new: .*hooks/pre-commit"),
        (lambda r: write(r, ".git/info/attributes", "* filter=x"), "new: .*info/attributes"),
        (lambda r: write(r, ".git/info/exclude", "*"), "new: .*info/exclude"),
        (lambda r: write(r, ".git/objects/info/alternates", "/x\n"), "new: .*alternates"),
        (commit_all, "changed: branch main"),
        (lambda r: git(r, "checkout", "-q", "-b", "other"), "changed: branch that is checked out"),
        (lambda r: git(r, "checkout", "-q", "--detach"), "missing: branch that is checked out"),
        (lambda r: git(r, "bisect", "start"), "new: operation in progress"),
    ],
)
def test_each_change_is_named(tmp_path: Path, act: Callable[[Path], object], named: str) -> None:
    repository, _ = sample(tmp_path / "r")
    protected = _watch(repository.root)
    before = take(repository, "main", protected)
    act(repository.root)
    # core.bare makes git refuse the working tree; its configuration can be read all the same.
    found = differences(before, take(Git(repository.root), "main", protected))
    assert [line for line in found if re.fullmatch(named, line)], found


@pytest.mark.guarantee("M29")
def test_hooks_elsewhere_and_settings_of_the_person_are_fenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, _ = sample(tmp_path / "r")
    settings = write(
        tmp_path, "gitconfig", f"[core]\nhooksPath = {tmp_path}/hooks\n[user]\nsigningKey = secret\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    write(tmp_path, "hooks/pre-push", "one")
    before = take(repository, "main", [])
    write(tmp_path, "hooks/pre-push", "two")
    settings.write_text(settings.read_text().replace("secret", "other"))
    found = differences(before, take(repository, "main", []))
    assert found == (f"changed: {tmp_path}/hooks/pre-push", "changed: git setting user.signingkey")
    assert "secret" not in str(before)


@pytest.mark.guarantee("M16", "M37")
def test_where_others_land_the_branch_may_move_and_receipts_may_come_but_none_may_change(
    tmp_path: Path,
) -> None:
    repository, _ = sample(tmp_path / "r")
    receipts = repository.root / "receipts"
    write(repository.root, "receipts/a.json", "a")
    before = take(repository, "main", [receipts], landing=True)
    write(repository.root, "receipts/b.json", "b")
    commit_all(repository.root)
    after = take(repository, "main", [receipts], landing=True)
    assert differences(before, after, growing=[receipts]) == ()
    assert [told.partition(":")[0] for told in differences(before, after)] == ["new"]
    write(repository.root, "receipts/a.json", "forged")
    (receipts / "b.json").unlink()
    git(repository.root, "checkout", "-q", "-b", "other")
    moved = differences(before, take(repository, "main", [receipts], landing=True), growing=[receipts])
    assert [told.partition(":")[0] for told in moved] == ["changed", "changed"]
