"""How codex and claude are started: programs, homes, configuration, credentials. No program runs here."""

import stat
import tomllib
from pathlib import Path

import msgspec
import pytest
from tests.support.agent_runs import request

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.attempt.workers import WORKERS, Launch, WorkRequest
from longwatch.migrate.settings import WorkerSettings

ELF = b"\x7fELF rest"
TRIPLE = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl"


def put(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def npm_codex(root: Path) -> Path:
    put(root / TRIPLE / "bin" / "codex", ELF)
    put(root / TRIPLE / "codex-path" / "rg", ELF)
    launcher = put(root / "node_modules/@openai/codex/bin/codex.js", b"#!/usr/bin/env node\n")
    link = root / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(launcher)
    return link


def asked(tmp_path: Path, adapter: str, **settings: object) -> WorkRequest:
    return request(tmp_path, WorkerSettings(adapter=adapter, **settings))


def prepare(asked: WorkRequest, **given: object) -> Launch:
    asked = msgspec.structs.replace(asked, **given)
    return WORKERS[asked.settings.adapter]().prepare(asked)


@pytest.mark.guarantee("M6")
def test_codex_is_found_behind_its_launcher(tmp_path: Path) -> None:
    link = npm_codex(tmp_path)
    launch = prepare(asked(tmp_path, "codex", model="m"), search_path=str(link.parent))
    assert launch.argv[0] == "/agent/codex/bin/codex"
    assert launch.readonly == ((tmp_path / TRIPLE, Path("/agent/codex")),)
    assert launch.argv[1:3] == ("exec", "--json")
    assert launch.argv[launch.argv.index("-s") + 1] == "danger-full-access"
    assert launch.argv[-1] == "-"
    assert launch.stdin == b"Make hello.py print 42."
    assert (launch.network, launch.nested) == (True, False)


@pytest.mark.guarantee("M6")
def test_without_a_sandbox_the_programs_keep_their_own_rules(tmp_path: Path) -> None:
    link = npm_codex(tmp_path)
    private = (tmp_path / "private", tmp_path / "private")
    launch = prepare(asked(tmp_path, "codex"), search_path=str(link.parent), private=private, confined=False)
    assert launch.argv[0] == str(tmp_path / TRIPLE / "bin" / "codex")
    assert launch.argv[launch.argv.index("-s") + 1] == "workspace-write"
    assert (launch.readonly, launch.nested) == ((), True)
    program = put(tmp_path / "claude", ELF)
    settings = WorkerSettings(adapter="claude", argv=(str(program),))
    ruled = prepare(
        msgspec.structs.replace(asked_again(tmp_path), settings=settings), private=private, confined=False
    )
    assert "--dangerously-skip-permissions" not in ruled.argv
    assert "acceptEdits" in ruled.argv


def asked_again(tmp_path: Path) -> WorkRequest:
    other = tmp_path / "other"
    other.mkdir()
    return asked(other, "claude")


@pytest.mark.parametrize(
    ("private", "temporary"), [("/private", "/var/tmp"), ("/tmp/w", "/var/tmp"), ("/var/tmp/w", "/tmp")]
)
def test_the_home_of_codex_is_never_in_its_temporary_folder(
    tmp_path: Path, private: str, temporary: str
) -> None:
    """There it runs no command, and exits with 0."""
    link = npm_codex(tmp_path)
    launch = prepare(
        asked(tmp_path, "codex"), search_path=str(link.parent), private=(tmp_path / "private", Path(private))
    )
    assert launch.environment["CODEX_HOME"] == private
    assert launch.environment["TMPDIR"] == temporary


@pytest.mark.parametrize("place", ["home", "environment"])
def test_codex_gets_copies_and_safe_settings(tmp_path: Path, place: str) -> None:
    link = npm_codex(tmp_path)
    theirs = tmp_path / "home" / ".codex" if place == "home" else tmp_path / "elsewhere"
    put(theirs / "auth.json", b'{"token":1}', 0o644)
    put(
        theirs / "config.toml",
        b'model_provider = "p"\nnotify = ["phone"]\napproval_policy = "on-request"\n'
        b'[shell_environment_policy]\nexclude = ["MINE"]\n'
        b'[model_providers.p]\nbase_url = "https://example.org"\nrequest_max_retries = 90\nstream_max_retries = 1\n'
        b"[model_providers.q]\nname = 'q'\n",
    )
    environment = {"CODEX_HOME": str(theirs)} if place == "environment" else {}
    prepare(asked(tmp_path, "codex"), search_path=str(link.parent), environment=environment)
    home = tmp_path / "private"
    assert (home / "auth.json").read_bytes() == b'{"token":1}'
    assert stat.S_IMODE((home / "auth.json").stat().st_mode) == 0o600
    config = tomllib.loads((home / "config.toml").read_text())
    assert config["approval_policy"] == "never"
    assert "notify" not in config
    assert config["shell_environment_policy"]["exclude"][:2] == ["MINE", "*KEY*"]
    assert config["model_providers"]["p"]["base_url"] == "https://example.org"
    assert config["model_providers"]["p"]["request_max_retries"] == 3
    assert config["model_providers"]["p"]["stream_max_retries"] == 1
    assert config["model_providers"]["q"]["stream_max_retries"] == 3
    assert (theirs / "config.toml").read_bytes().startswith(b'model_provider = "p"\nnotify')


def test_a_broken_configuration_is_named(tmp_path: Path) -> None:
    link = npm_codex(tmp_path)
    broken = put(tmp_path / "home" / ".codex" / "config.toml", b"a = = 1")
    with pytest.raises(ConfigError, match=str(broken)):
        prepare(asked(tmp_path, "codex"), search_path=str(link.parent))


@pytest.mark.guarantee("M6", "M11")
def test_claude(tmp_path: Path) -> None:
    program = put(tmp_path / "claude", ELF)
    put(tmp_path / "home" / ".claude" / ".credentials.json", b"{}")
    wanted = asked(
        tmp_path, "claude", argv=("claude",), model="m", options=("--bare",), model_idle_timeout_s=7
    )
    environment = {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_MAX_RETRIES": "9"}
    launch = prepare(
        msgspec.structs.replace(wanted, search_path=str(tmp_path)), environment=environment, budget_usd=2.5
    )
    assert launch.argv[:2] == ("/agent/claude", "-p")
    assert launch.readonly == ((program, Path("/agent/claude")),)
    assert "--dangerously-skip-permissions" in launch.argv
    assert launch.argv[launch.argv.index("--max-budget-usd") + 1] == "2.5"
    assert launch.argv[-1] == "--bare"
    assert "k" not in launch.argv
    variables = launch.environment
    assert variables["CLAUDE_CONFIG_DIR"] == "/private"
    assert (variables["CLAUDE_CODE_MAX_RETRIES"], variables["API_TIMEOUT_MS"]) == ("9", "7000")
    assert (tmp_path / "private" / ".credentials.json").read_bytes() == b"{}"


@pytest.mark.parametrize("adapter", ["codex", "claude"])
def test_a_missing_program_is_named(tmp_path: Path, adapter: str) -> None:
    with pytest.raises(ConfigError, match=f"{adapter} is not found: install"):
        prepare(asked(tmp_path, adapter), search_path=str(tmp_path))


def test_a_launcher_without_its_program_is_named(tmp_path: Path) -> None:
    put(tmp_path / "bin" / "codex", b"#!/usr/bin/env node\n")
    with pytest.raises(ConfigError, match=r"is a launcher.*install codex again"):
        prepare(asked(tmp_path, "codex"), search_path=str(tmp_path / "bin"))


def test_a_relative_program_starts_from_the_watch(tmp_path: Path) -> None:
    put(tmp_path / "tools" / "claude", ELF)
    launch = prepare(asked(tmp_path, "claude", argv=("tools/claude",)))
    assert launch.readonly[0][0] == tmp_path / "tools" / "claude"
