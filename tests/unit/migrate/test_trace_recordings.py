"""Every recorded run of codex and claude, alone and over the Agent Client Protocol, read and classified."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.limits import LimitHit
from longwatch.migrate.attempt.trace import AcpTrace, ClaudeTrace, CodexTrace, Ending, Trace, TraceState
from longwatch.migrate.attempt.trace.model import Tokens
from longwatch.migrate.attempt.workers import WORKERS
from longwatch.migrate.attempt.workers.acp_failures import ACP_FAILURES
from longwatch.migrate.attempt.workers.claude_failures import CLAUDE_FAILURES
from longwatch.migrate.attempt.workers.codex_failures import CODEX_FAILURES
from longwatch.migrate.attempt.workers.verdict import RunEnd, Table, classify

RECORDED = Path(__file__).parents[2] / "recorded"
NOW = datetime(2026, 11, 30, 16, 6, tzinfo=UTC)
PROGRAMS: dict[str, tuple[Trace, Table]] = {
    "codex": (CodexTrace(), CODEX_FAILURES),
    "claude": (ClaudeTrace(), CLAUDE_FAILURES),
    "acp": (AcpTrace(), ACP_FAILURES),
}


def read(program: str, name: str) -> TraceState:
    state = TraceState()
    for number, line in enumerate((RECORDED / program / f"{name}.jsonl").read_bytes().splitlines()):
        state = PROGRAMS[program][0].feed(state, line, float(number))
    return state


# recording, ending, tool calls that worked, class of the failure
CODEX = [
    ("ok-gpt55", "succeeded", 4, None),
    ("ok-fallback", "succeeded", 4, None),
    ("503-recover", "succeeded", 4, None),
    ("refused-recover", "succeeded", 4, None),
    ("resume", "succeeded", 4, None),
    ("400", "failed", 0, "fault"),
    ("401", "failed", 0, "auth"),
    ("401-default", "failed", 0, "auth"),
    ("429", "failed", 0, "transient"),
    ("429-default", "failed", 0, "transient"),
    ("429ra", "failed", 0, "transient"),
    ("429ra3600", None, 0, "transient"),
    ("503", "failed", 0, "transient"),
    ("503-default", "failed", 0, "transient"),
    ("failed", "failed", 0, "transient"),
    ("failed-default", "failed", 0, "transient"),
    ("hang-mid", "failed", 0, "transient"),
    ("refused", None, 0, "transient"),
    ("quota", "failed", 0, "quota"),
    ("usage", "failed", 0, "quota"),
    ("truncate", "failed", 2, "transient"),
    ("truncate-default", "failed", 4, "transient"),
    ("badjson", "succeeded", 0, "fault"),
    ("badtool", "succeeded", 0, "fault"),
    ("emptymsg", "succeeded", 0, "fault"),
    ("home-in-tmp", "succeeded", 0, "fault"),
    ("no-sandbox", "succeeded", 0, "fault"),
    ("hang", None, 0, "fault"),
]
CLAUDE = [
    ("ok", "succeeded", 4, None),
    ("bare", "succeeded", 2, None),
    ("bwrap", "succeeded", 4, None),
    ("400", "failed", 0, "fault"),
    ("401", None, 0, "auth"),
    ("403", "failed", 0, "auth"),
    ("404", "failed", 0, "fault"),
    ("r1-401", "failed", 0, "auth"),
    ("r1-429", "failed", 0, "transient"),
    ("429ra", "failed", 0, "transient"),
    ("r1-503", "failed", 0, "transient"),
    ("r1-529", "failed", 0, "transient"),
    ("r1-refused", "failed", 0, "transient"),
    ("hang", "failed", 0, "transient"),
    ("credit", "failed", 0, "quota"),
    ("usage", "failed", 0, "quota"),
    ("default", "succeeded", 0, "fault"),
    ("dontask", "succeeded", 0, "fault"),
    ("nonroot", "succeeded", 0, "fault"),
    ("r1-sse-error", "succeeded", 0, "fault"),
    ("r1-truncate", "succeeded", 0, "fault"),
    ("schematext", "succeeded", 0, "fault"),
    ("529-recover", "succeeded", 0, "fault"),
    ("schemabad", "failed", 0, "fault"),
    ("hang-mid", None, 0, "fault"),
    ("hang-mid-wd", None, 0, "fault"),
    ("skip-root", None, 0, "fault"),
]
ACP = [
    ("opencode", "succeeded", 2, None),
    ("codex", "succeeded", 2, None),
    ("claude", "succeeded", 3, None),
    ("opencode-401", "failed", 0, "auth"),
    ("opencode-404", "failed", 0, "fault"),
    ("opencode-quota", "failed", 0, "quota"),
    ("opencode-rejected", "succeeded", 2, None),
    ("opencode-503", None, 0, "fault"),
]
ALL = [
    (program, *row) for program, rows in (("codex", CODEX), ("claude", CLAUDE), ("acp", ACP)) for row in rows
]


@pytest.mark.guarantee("M8", "M9", "M12", "K25")
@pytest.mark.parametrize(
    ("program", "name", "ending", "worked", "kind"), ALL, ids=[f"{r[0]}-{r[1]}" for r in ALL]
)
def test_recording(program: str, name: str, ending: str | None, worked: int, kind: str | None) -> None:
    state = read(program, name)
    end = RunEnd(exit_code=0 if state.ended is Ending.SUCCEEDED else 1)
    failure = classify(state, end, PROGRAMS[program][1], NOW)
    assert (state.ended, state.calls_done) == (ending, worked)
    assert (failure and failure.kind) == kind
    # The recorder kept an extension of codex's adapter that our own program leaves out.
    assert state.unknown_events == ((program, name) == ("acp", "codex"))
    assert state.in_flight == ()


def test_no_recording_is_left_out() -> None:
    files = {(path.parent.name, path.stem) for path in RECORDED.glob("*/*.jsonl")}
    assert files == {(row[0], row[1]) for row in ALL}


@pytest.mark.guarantee("M8")
def test_what_a_success_tells() -> None:
    codex, claude = read("codex", "ok-gpt55"), read("claude", "ok")
    assert (codex.actions, codex.first_action_s, codex.calls) == (7, 2.0, 4)
    assert codex.tokens is not None
    assert codex.tokens.total == 50617
    assert codex.cost_usd is None
    assert codex.answer is not None
    assert b'"done"' in codex.answer
    assert claude.tokens is not None
    assert (claude.tokens.input, claude.tokens.output) == (146575, 100)
    assert claude.cost_usd == pytest.approx(0.441225)
    assert claude.answer == b'{"status":"done","summary":"created hello.py","files":["hello.py"]}'
    assert claude.live_tokens >= claude.tokens.total


@pytest.mark.guarantee("M8", "M11")
def test_what_a_success_over_acp_tells() -> None:
    opencode, codex, claude = (read("acp", name) for name in ("opencode", "codex", "claude"))
    assert opencode.agent == "OpenCode 1.18.33"
    assert opencode.tokens is None, "it counts its last message alone"
    assert opencode.answer == b'{"status":"done"}'
    assert codex.tokens is not None
    assert codex.tokens.total == 56629
    assert codex.answer is not None
    assert codex.answer.startswith(b'{"status":"done","summary"')
    assert claude.tokens is not None
    assert claude.tokens.total == 181265
    assert claude.cost_usd == pytest.approx(0.545235)
    assert (claude.actions, claude.calls, claude.current) == (7, 5, "All done.")


@pytest.mark.guarantee("M12")
def test_a_permission_that_was_refused_is_named() -> None:
    assert read("acp", "opencode-rejected").denied == ("/etc",)


@pytest.mark.guarantee("M11")
def test_a_cut_stream_says_zero_tokens_and_that_is_unknown() -> None:
    state = read("claude", "r1-truncate")
    assert (state.tokens, state.cost_usd) == (None, None)


def test_a_remark_about_the_model_is_no_failure() -> None:
    state = read("codex", "ok-fallback")
    assert state.provider_errors == ()
    assert state.error is None


def test_reconnecting_is_not_terminal_and_no_progress() -> None:
    state = read("codex", "refused")
    assert state.ended is None
    assert len(state.provider_errors) == 4
    assert state.last_activity_s > state.last_progress_s


@pytest.mark.guarantee("M12")
def test_claude_without_structured_output_gives_no_answer() -> None:
    assert read("claude", "schematext").answer is None


@pytest.mark.guarantee("M12")
def test_denied_tools_are_named() -> None:
    state = read("claude", "default")
    assert set(state.denied) == {"Write", "Bash"}
    failure = classify(state, RunEnd(exit_code=0), CLAUDE_FAILURES, NOW)
    assert failure is not None
    assert "denied every tool (Write, Bash)" in failure.message


@pytest.mark.guarantee("K26", "M12")
def test_a_usage_limit_says_when_it_ends() -> None:
    failure = classify(read("codex", "usage"), RunEnd(exit_code=0), CODEX_FAILURES, NOW)
    assert failure is not None
    assert failure.kind is FailureClass.QUOTA
    assert failure.retry_after_s == 61 * 60 + 60  # 16:06 to 5:07 PM, and the minute that the text cut off
    failure = classify(read("claude", "usage"), RunEnd(exit_code=1), CLAUDE_FAILURES, NOW)
    assert failure is not None
    assert failure.kind is FailureClass.QUOTA
    assert failure.retry_after_s == 1796085408 - NOW.timestamp() + 60  # its event has the second


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize(("name", "asked_s"), [("429ra", 3.0), ("r1-429", None), ("r1-503", None)])
def test_what_a_provider_asks_for_is_told_from_claudes_own_delays(name: str, asked_s: float | None) -> None:
    failure = classify(read("claude", name), RunEnd(exit_code=1), CLAUDE_FAILURES, NOW)
    assert failure is not None
    assert failure.retry_after_s == asked_s


@pytest.mark.guarantee("M9")
@pytest.mark.parametrize(
    ("program", "name", "kind"),
    [
        ("codex", "hang", "transient"),
        ("codex", "refused", "transient"),
        ("codex", "429ra3600", "transient"),
        ("claude", "hang-mid", "transient"),
        ("claude", "401", "auth"),
        ("acp", "opencode-503", "transient"),
    ],
)
def test_a_recording_that_never_ends_is_classed_by_what_it_said_when_it_is_ended(
    program: str, name: str, kind: str
) -> None:
    """A provider that was tried in silence is down; where the program named another reason, that one counts."""
    end = RunEnd(exit_code=None, limit=LimitHit.MONITOR, limit_detail="the model took no action")
    failure = classify(read(program, name), end, PROGRAMS[program][1], NOW)
    assert failure is not None
    assert failure.kind == kind


UNSERVED = {"401", "429", "429ra", "429ra3600", "503", "quota", "usage", "refused"}
"""Recordings of codex in which no request was served; in all others something may have been used."""


@pytest.mark.guarantee("M11")
@pytest.mark.parametrize("name", [row[0] for row in CODEX])
def test_only_what_was_refused_before_an_answer_began_costs_nothing(name: str) -> None:
    assert WORKERS["codex"]().unserved(read("codex", name)) == (name.removesuffix("-default") in UNSERVED)


@pytest.mark.guarantee("M11")
@pytest.mark.parametrize("name", ["403", "r1-401", "r1-429", "r1-503", "r1-refused", "credit", "usage"])
def test_claude_counts_itself(name: str) -> None:
    state = read("claude", name)
    assert (state.tokens, state.cost_usd) == (Tokens(), 0.0)


@pytest.mark.guarantee("M12")
def test_a_sandbox_that_ran_no_command_is_named() -> None:
    tail = 'WARNING: Refusing to create helper binaries\n{"type":"turn.completed"}'
    failure = classify(read("codex", "home-in-tmp"), RunEnd(exit_code=0, log_tail=tail), CODEX_FAILURES, NOW)
    assert failure is not None
    assert "no command could run in the sandbox of codex" in failure.message
    failure = classify(read("codex", "no-sandbox"), RunEnd(exit_code=0), CODEX_FAILURES, NOW)
    assert failure is not None
    assert "no command could run in the sandbox of codex: bwrap: Creating new namespace" in failure.message
