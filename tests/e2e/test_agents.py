"""The real codex and the real Claude Code, each in a real sandbox, against a scripted model on loopback."""

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest
from tests.support.agent_runs import AGENTS, NONCE, Ran, request, work
from tests.support.messages_server import messages_server
from tests.support.model_server import Answer, ModelServer
from tests.support.repositories import git
from tests.support.responses_server import responses_server

from longwatch.kernel.limits import LimitHit
from longwatch.migrate.attempt.result import Result, Status, read_result
from longwatch.migrate.attempt.trace import Ending
from longwatch.migrate.attempt.workers import WorkRequest
from longwatch.migrate.settings import WorkerSettings

pytestmark = [pytest.mark.agent, pytest.mark.e2e]

PROGRAMS = {
    "codex": AGENTS / "@openai" / "codex" / "bin" / "codex.js",
    "claude": AGENTS / "@anthropic-ai" / "claude-code" / "bin" / "claude.exe",
}
KEY = "sk-very-secret-key"
RESULT = {
    "nonce": NONCE,
    "status": "done",
    "summary": "Prints 42 now.",
    "changed": ["hello.py"],
    "reason": "",
}
PATCH = "*** Begin Patch\n*** Update File: hello.py\n@@\n-print(40 + 1)\n+print(40 + 2)\n*** End Patch\n"
CODEX_SCRIPT: list[Answer] = [
    [
        {"words": "I look first."},
        {"tool": "exec_command", "arguments": {"cmd": "env > seen.txt; python3 hello.py"}},
    ],
    [{"patch": PATCH}],
    [
        {
            "tool": "exec_command",
            "arguments": {"cmd": "setsid sleep 300 & python3 hello.py; exit 3", "yield_time_ms": 4000},
        }
    ],
    [{"words": msgspec.json.encode(RESULT).decode()}],
]
CLAUDE_SCRIPT: list[Answer] = [
    [{"words": "I look first."}, {"tool": "Read", "arguments": {"file_path": "/repo/hello.py"}}],
    [{"tool": "Edit", "arguments": {"file_path": "/repo/hello.py", "old_string": "+ 1", "new_string": "+ 2"}}],
    [{"tool": "Bash", "arguments": {"command": "(setsid sleep 300 &) ; python3 hello.py; id -u; touch /etc/escaped || exit 3"}}],
    [{"tool": "StructuredOutput", "arguments": RESULT}],
    [{"words": "Done."}],
]  # fmt: skip

Server = Callable[..., AbstractContextManager[ModelServer]]
SERVERS: dict[str, tuple[Server, list[Answer]]] = {
    "codex": (responses_server, CODEX_SCRIPT),
    "claude": (messages_server, CLAUDE_SCRIPT),
}
EACH = pytest.mark.parametrize("adapter", ["codex", "claude"])


@pytest.fixture(autouse=True)
def _installed() -> None:
    missing = [name for name, path in PROGRAMS.items() if not path.is_file()]
    if missing:
        pytest.fail(
            f"{', '.join(missing)}: not installed; run `make agents` (or `npm ci` in tests/agents)",
            pytrace=False,
        )


def ask(
    tmp_path: Path,
    adapter: str,
    url: str,
    *,
    start_s: float = 20.0,
    idle_s: float = 20.0,
    key: str = "ANTHROPIC_API_KEY",
) -> WorkRequest:
    settings = WorkerSettings(
        adapter=adapter,
        argv=(str(PROGRAMS[adapter]),),
        model={"codex": "gpt-5.5", "claude": "claude-sonnet-4-5"}[adapter],
        model_start_timeout_s=start_s,
        model_idle_timeout_s=idle_s,
    )
    if adapter == "claude":
        environment = {"ANTHROPIC_BASE_URL": url, key: KEY, "CLAUDE_CODE_MAX_RETRIES": "1"}
        return request(tmp_path, settings, environment=environment)
    theirs = tmp_path / "their-codex"
    theirs.mkdir()
    (theirs / "config.toml").write_text(
        'model_provider = "scripted"\nnotify = ["must-not-run"]\n[model_providers.scripted]\nname = "scripted"\n'
        f'base_url = "{url}/v1"\nenv_key = "SCRIPTED_KEY"\nwire_api = "responses"\n'
        "request_max_retries = 1\nstream_max_retries = 1\nstream_idle_timeout_ms = 60000\n"
    )
    return request(tmp_path, settings, environment={"CODEX_HOME": str(theirs), "SCRIPTED_KEY": KEY})


def drive(tmp_path: Path, adapter: str, mode: str, *, hurried: bool = False, **asked: object) -> Ran:
    server, script = SERVERS[adapter]
    with server(script, mode) as model:
        hurry = (lambda: model.bodies) if hurried else None
        ran = work(tmp_path, ask(tmp_path, adapter, model.url, **asked), hurry=hurry)
        assert model.bodies, ran.log
    return ran


@EACH
@pytest.mark.guarantee("M6", "M8", "M12", "K18")
def test_a_run_that_edits_a_repository(tmp_path: Path, adapter: str) -> None:
    ran = drive(tmp_path, adapter, "ok")
    assert ran.failure is None, ran.log
    assert ran.state.ended is Ending.SUCCEEDED
    assert ran.record.exit_code == 0
    assert ran.state.calls_done == 3
    assert ran.state.tokens is not None
    assert ran.state.tokens.output > 0
    assert ran.state.unknown_events == 0
    assert ran.answer is not None
    assert read_result(ran.answer, NONCE) == Result(
        status=Status.DONE, summary="Prints 42 now.", changed=("hello.py",)
    )
    assert (tmp_path / "repo" / "hello.py").read_text() == "print(40 + 2)\n"
    assert " M hello.py" in git(tmp_path / "repo", "status", "--porcelain")
    assert not Path("/etc/escaped").exists()


@pytest.mark.guarantee("M6")
def test_codex_hides_the_key_from_the_commands_of_its_model(tmp_path: Path) -> None:
    drive(tmp_path, "codex", "ok")
    seen = (tmp_path / "repo" / "seen.txt").read_text()
    assert "CODEX_HOME=/private" in seen
    assert KEY not in seen


FAILURES = [
    ("codex", "401", "auth"),
    ("codex", "429", "transient"),
    ("codex", "429-soon", "transient"),
    ("codex", "503", "transient"),
    ("codex", "quota", "quota"),
    ("codex", "400", "fault"),
    ("codex", "404", "fault"),
    ("claude", "401", "auth"),
    ("claude", "429", "transient"),
    ("claude", "429-soon", "transient"),
    ("claude", "429-late", "transient"),
    ("claude", "503", "transient"),
    ("claude", "529", "transient"),
    ("claude", "quota", "quota"),
    ("claude", "404", "fault"),
]


@pytest.mark.guarantee("M6", "M9", "K18", "K25", "K27")
@pytest.mark.parametrize(("adapter", "mode", "kind"), FAILURES)
def test_the_provider_refuses(tmp_path: Path, adapter: str, mode: str, kind: str) -> None:
    ran = drive(tmp_path, adapter, mode)
    assert ran.failure is not None
    assert ran.failure.kind == kind, (ran.failure, ran.log)
    assert ran.record.limit is None
    assert ran.answer is None
    assert KEY not in ran.log
    # Codex does not tell what its provider asks for, and claude only where it waited itself: then the back-off counts.
    assert ran.failure.retry_after_s == (1.0 if (adapter, mode) == ("claude", "429-soon") else None)


@EACH
@pytest.mark.guarantee("M9", "M6")
def test_a_refused_port(tmp_path: Path, adapter: str) -> None:
    """Codex would try for ever: our limit ends it, and its own words give the reason."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ran = work(tmp_path, ask(tmp_path, adapter, url, start_s=4.0))
    assert ran.failure is not None
    assert ran.failure.kind == "transient"
    assert ran.record.limit is (LimitHit.MONITOR if adapter == "codex" else None)


@pytest.mark.guarantee("M9")
@pytest.mark.parametrize(
    ("adapter", "mode"),
    [("codex", "429-late"), *((adapter, mode) for adapter in SERVERS for mode in ("hang", "hang-mid"))],
)
def test_a_model_that_never_answers(tmp_path: Path, adapter: str, mode: str) -> None:
    """Where a provider asks for an hour's patience, codex has it, and claude gives up."""
    ran = drive(tmp_path, adapter, mode, hurried=True)
    assert ran.failure is not None
    assert ran.failure.kind == "transient"
    assert "the model took no action" in ran.record.limit_detail
    assert ran.record.limit is LimitHit.MONITOR


@EACH
@pytest.mark.guarantee("M9")
def test_a_model_that_falls_silent_after_an_action(tmp_path: Path, adapter: str) -> None:
    """Edits may be half done: that is no provider's trouble any more."""
    ran = drive(tmp_path, adapter, "hang-later", idle_s=2.0)
    assert ran.failure is not None
    assert ran.failure.kind == "interrupted"
    assert "no progress for 2 s" in ran.record.limit_detail
    assert ran.state.calls_done == 1


@EACH
@pytest.mark.parametrize(("mode", "lifts_s"), [("usage", 7200), ("usage-week", 3 * 86_400)])
@pytest.mark.guarantee("K26", "M12")
def test_the_reset_time_of_a_usage_limit(tmp_path: Path, adapter: str, mode: str, lifts_s: float) -> None:
    """Claude tells of it only to those who pay by the month."""
    ran = drive(tmp_path, adapter, mode, key="CLAUDE_CODE_OAUTH_TOKEN")
    assert ran.failure is not None
    assert ran.failure.kind == "quota"
    assert ran.failure.retry_after_s is not None
    assert lifts_s - 1200 < ran.failure.retry_after_s < lifts_s + 200


@pytest.mark.guarantee("M9", "M10")
def test_codex_with_a_stream_that_always_breaks(tmp_path: Path) -> None:
    ran = drive(tmp_path, "codex", "truncate")
    assert ran.failure is not None
    assert ran.failure.kind == "transient"
    assert ran.state.calls > 0


@pytest.mark.guarantee("M11")
def test_claude_with_a_stream_that_always_breaks(tmp_path: Path) -> None:
    """It takes the part for the whole: a claim like any other, whose cost nobody knows."""
    ran = drive(tmp_path, "claude", "truncate")
    assert ran.state.ended is Ending.SUCCEEDED
    assert ran.failure is None
    assert (ran.state.tokens, ran.state.cost_usd) == (None, None)


@pytest.mark.guarantee("M12")
def test_words_instead_of_an_answer(tmp_path: Path) -> None:
    """Both exit with 0, and neither gave a result."""
    for adapter in ("codex", "claude"):
        folder = tmp_path / adapter
        folder.mkdir()
        server, script = SERVERS[adapter]
        with server([*script[:1], [{"words": "I refuse."}]]) as model:
            ran = work(folder, ask(folder, adapter, model.url))
        assert ran.record.exit_code == 0
        answer = None if ran.answer is None else read_result(ran.answer, NONCE)
        assert ran.failure is not None or isinstance(answer, tuple)


@pytest.mark.guarantee("M9")
def test_codex_works_with_a_model_that_it_does_not_know(tmp_path: Path) -> None:
    """It says so, and goes on."""
    with responses_server([*CODEX_SCRIPT[:1], *CODEX_SCRIPT[3:]]) as model:
        asked = ask(tmp_path, "codex", model.url)
        unknown = msgspec.structs.replace(asked.settings, model="no-such-model")
        ran = work(tmp_path, msgspec.structs.replace(asked, settings=unknown))
    assert ran.failure is None, ran.log
    assert "Model metadata for `no-such-model` not found" in ran.log


@pytest.mark.guarantee("M12")
def test_tools_that_codex_does_not_have(tmp_path: Path) -> None:
    """No event tells of the refusal: that nothing worked is all there is to see."""
    with responses_server([[{"tool": "no_such_tool", "arguments": {}}], CODEX_SCRIPT[3]]) as model:
        ran = work(tmp_path, ask(tmp_path, "codex", model.url))
    assert ran.record.exit_code == 0
    assert ran.failure is not None
    assert "without a single tool call that worked" in ran.failure.message


@pytest.mark.guarantee("M12")
def test_codex_with_a_sandbox_that_never_ran_a_command(tmp_path: Path) -> None:
    """Its own sandbox cannot be made here: it exits with 0 and the answer that it was asked for."""
    with responses_server([CODEX_SCRIPT[0], CODEX_SCRIPT[3]]) as model:
        asked = msgspec.structs.replace(ask(tmp_path, "codex", model.url), confined=False)
        ran = work(tmp_path, asked, expose=(AGENTS,), nested=False)
    assert ran.record.exit_code == 0
    assert not (tmp_path / "repo" / "seen.txt").exists()
    assert ran.failure is not None
    assert ran.failure.kind == "fault"
    assert "no command could run in the sandbox of codex: bwrap: " in ran.failure.message


@pytest.mark.guarantee("M12")
def test_tools_that_claude_was_denied(tmp_path: Path) -> None:
    with messages_server(CLAUDE_SCRIPT[2:]) as model:
        asked = ask(tmp_path, "claude", model.url)
        ruled = {**asked.environment, "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1"}
        ran = work(tmp_path, msgspec.structs.replace(asked, environment=ruled))
    assert ran.record.exit_code == 0
    assert ran.failure is not None
    assert "was denied every tool (Bash)" in ran.failure.message
