"""Init: a repository becomes a watch, nothing is overwritten, and nothing that would spend a token is live."""

import os
import stat
from pathlib import Path

import pytest
from tests.support.repositories import commit_all, git, new_repository, write

from longwatch.kernel.errors import ConfigError, LongwatchError, RefusedError
from longwatch.migrate.attempt.prompt import template_problems
from longwatch.migrate.init import EXAMPLE, Initialised, WorkerChoice, initialise, shipped
from longwatch.migrate.queue.cards import parse_card
from longwatch.migrate.queue.order import read_queue
from longwatch.migrate.settings import load

CODEX = WorkerChoice(adapter="codex")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    repository = new_repository(tmp_path / "a repository")
    write(repository, "pytest.ini", "[pytest]\n")
    write(repository, "src/a.py", "a = 1\n")
    commit_all(repository)
    return repository


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".git/index" not in str(path)
    }


@pytest.mark.parametrize(
    "choice",
    [
        CODEX,
        WorkerChoice(adapter="claude", argv=("/opt/claude",)),
        WorkerChoice(adapter="command", argv=("./worker.sh", 'a "quoted" \\ wörd\x7f', "#")),
        WorkerChoice(adapter="replay", argv=("recorded",)),
        WorkerChoice(),
    ],
)
def test_the_written_settings_load_without_a_change(root: Path, choice: WorkerChoice) -> None:
    done = initialise(root, choice)
    settings = load(root)
    assert settings.worker.adapter == done.worker
    assert settings.worker.argv == choice.argv
    assert settings.worker.network == (done.worker in {"codex", "claude"})
    assert settings.repository.branch == "main"
    assert [check.argv for check in settings.checks] == [("pytest", "-q")]
    assert [one.check.name for one in done.checks] == ["pytest"]


@pytest.mark.guarantee("M2", "M20")
def test_a_profile_brings_its_policy_its_checks_and_its_prompt(root: Path) -> None:
    done = initialise(root, CODEX, profile="blender-web")
    policy = load(root).policy_in_force()
    assert policy.name == "blender-web"
    assert {check.kind for check in load(root).checks} == set(policy.required_kinds)
    template = (root / "prompt.md").read_text()
    assert list(template_problems(template, cases=True)) == []
    assert [one.where for one in template_problems(shipped("migrate.md"), cases=True)] == ["{{ evidence }}"]
    assert any("migration/manifests/start.json says point by point" in hint for hint in done.hints)
    with pytest.raises(ConfigError, match="did you mean `blender-web`"):
        initialise(root, CODEX, profile="blender")


@pytest.mark.guarantee("M2", "M23")
def test_no_card_is_live_after_an_init(root: Path) -> None:
    initialise(root, CODEX)
    assert (root / "tasks" / EXAMPLE).is_file()
    assert read_queue(root / "tasks").cards == ()


def test_the_example_becomes_a_card_when_it_is_copied(root: Path) -> None:
    initialise(root, CODEX)
    (root / "tasks" / "001-first.md").write_bytes((root / "tasks" / EXAMPLE).read_bytes())
    assert [card.id for card in read_queue(root / "tasks").cards] == ["greeting"]
    assert parse_card("x", shipped("example-card.md").encode()).title


def test_the_shipped_prompt_is_a_right_template() -> None:
    assert list(template_problems(shipped("migrate.md"))) == []


def test_what_was_written_is_named_and_readable_and_the_memory_is_excluded(root: Path) -> None:
    before = files_of(root)
    done = initialise(root, CODEX)
    after = files_of(root)
    assert {name for name in after if after[name] != before.get(name)} == set(done.files)
    assert set(done.files) == {".git/info/exclude", "longwatch.toml", "prompt.md", f"tasks/{EXAMPLE}"}
    for name in done.files:
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o644
    write(root, ".longwatch/state", "x")
    assert ".longwatch" not in git(root, "status", "--porcelain", "--untracked-files=all")
    assert not (root / ".gitignore").exists()


def test_the_persons_excludes_are_kept(root: Path) -> None:
    write(root, ".git/info/exclude", "*.swp")
    initialise(root, CODEX)
    assert (root / ".git/info/exclude").read_text() == "*.swp\n.longwatch/\n"
    (root / "longwatch.toml").unlink()
    initialise(root, CODEX)
    assert (root / ".git/info/exclude").read_text() == "*.swp\n.longwatch/\n"


def test_an_init_that_was_cut_short_can_be_repeated(root: Path) -> None:
    initialise(root, CODEX)
    (root / "longwatch.toml").unlink()
    done = initialise(root, CODEX)
    assert load(root).worker.prompt == "prompt.md"
    assert "longwatch.toml" in done.files


def test_nothing_is_overwritten(root: Path) -> None:
    initialise(root, CODEX)
    before = files_of(root)
    with pytest.raises(RefusedError, match=r"longwatch\.toml exists"):
        initialise(root, CODEX)
    assert files_of(root) == before


def test_a_dangling_link_in_place_of_the_settings_is_left_alone(root: Path) -> None:
    (root / "longwatch.toml").symlink_to("/nowhere/at/all")
    with pytest.raises(RefusedError):
        initialise(root, CODEX)


def test_taken_names_are_left_alone_and_others_are_used(root: Path) -> None:
    write(root, "prompt.md", "the person's own")
    write(root, "tasks/notes.md", "no card")
    done = initialise(root, CODEX)
    settings = load(root)
    assert settings.worker.prompt == "longwatch-prompt.md"
    assert settings.repository.tasks == "longwatch-tasks"
    assert (root / "prompt.md").read_text() == "the person's own"
    assert any("longwatch-tasks/001-first.md" in hint for hint in done.hints)
    (root / "longwatch.toml").unlink()
    write(root, "longwatch-prompt.md", "also taken")
    with pytest.raises(RefusedError, match=r"prompt\.md and longwatch-prompt\.md"):
        initialise(root, CODEX)


@pytest.mark.guarantee("K34")
def test_links_and_fifos_under_the_names_are_never_written_through(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "tasks").symlink_to(outside)
    os.mkfifo(root / "prompt.md")
    initialise(root, CODEX)
    assert list(outside.iterdir()) == []
    assert load(root).repository.tasks == "longwatch-tasks"


@pytest.mark.guarantee("M23")
def test_without_a_test_command_the_watch_says_so_and_does_not_load(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    commit_all(root)
    done = initialise(root, CODEX)
    assert "No test command was found" in done.hints[0]
    with pytest.raises(ConfigError, match="checks: there are none"):
        load(root)
    settings = (root / "longwatch.toml").read_text()
    (root / "longwatch.toml").write_text(
        settings.replace("# [[", "[[").replace("# name", "name").replace('# argv = ["sh', 'argv = ["sh')
    )
    assert load(root).checks[0].name == "tests"


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        initialise(folder, CODEX)
    for word in words:
        assert word in str(caught.value)


def test_what_is_no_working_repository_is_refused_with_the_mend(root: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    refused(plain, "git init")
    refused(tmp_path / "missing", "is no folder")
    refused(new_repository(tmp_path / "empty"), "no commit yet")
    refused(new_repository(tmp_path / "bare", "--bare"), "bare repository")
    refused(root / ".git", "inside a .git folder")
    refused(root / "src", "not the top of its repository", str(root))
    git(root, "checkout", "--quiet", "--detach")
    refused(root, "no branch checked out")
    assert not (root / "longwatch.toml").exists()


def test_a_linked_working_tree_is_a_place_for_a_watch(root: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "--quiet", "-b", "side", str(linked))
    done = initialise(linked, CODEX)
    assert load(linked).repository.branch == "side"
    write(linked, ".longwatch/state", "x")
    assert ".longwatch" not in git(linked, "status", "--porcelain", "--untracked-files=all")
    assert len(done.files) == 4


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (WorkerChoice(adapter="codx"), "did you mean `codex`"),
        (WorkerChoice(adapter="command"), "needs --argv: the program"),
        (WorkerChoice(adapter="replay"), "needs --argv: the folder"),
        (WorkerChoice(adapter="replay", argv=("a", "b")), "worker.argv"),
        (WorkerChoice(argv=("a",)), "--argv needs --worker"),
        (WorkerChoice(adapter="command", argv=("",)), "worker.argv"),
        (WorkerChoice(adapter="command", argv=("a\0",)), "worker.argv"),
    ],
)
def test_a_wrong_choice_of_worker_writes_nothing(root: Path, choice: WorkerChoice, told: str) -> None:
    before = files_of(root)
    with pytest.raises(ConfigError, match=told):
        initialise(root, choice)
    assert files_of(root) == before


def test_the_worker_is_the_agent_that_is_found_and_what_is_missing_is_named(
    root: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("claude", "bwrap"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    done: Initialised = initialise(root, WorkerChoice(), search_path=str(programs))
    assert done.worker == "claude"
    assert done.missing == ("pytest",)
    assert load(root).observe.secrets == ("ANTHROPIC_API_KEY",)
    (root / "longwatch.toml").unlink()
    done = initialise(root, WorkerChoice(), search_path="/nonexistent")
    assert done.missing == ("bwrap", "codex", "pytest")
    assert any("Install bubblewrap" in hint for hint in done.hints)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_repository_that_cannot_be_written_is_told(root: Path) -> None:
    root.chmod(0o555)
    try:
        with pytest.raises(LongwatchError, match="permission is denied"):
            initialise(root, CODEX)
    finally:
        root.chmod(0o755)
