"""The program that speaks the Agent Client Protocol, in a real sandbox, with agents that behave in every way."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support import acp_agent
from tests.support.agent_runs import Ran, request, work

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.attempt.trace import Ending, TraceState
from longwatch.migrate.attempt.workers import WORKERS
from longwatch.migrate.attempt.workers.acp import PROGRAM
from longwatch.migrate.settings import WorkerSettings

AGENT = Path(acp_agent.__file__)
MODELS = [{"id": "mode", "category": "mode"}, {"id": "llm", "category": "model"}]
OPTIONS = [
    {"optionId": "never", "kind": "reject_always"},
    {"optionId": "no", "kind": "reject_once"},
    {"optionId": "always", "kind": "allow_always"},
    {"optionId": "yes", "kind": "allow_once"},
]
Step = dict[str, Any]


def answer(**result: object) -> Step:
    return {"id": "@ID@", "result": result}


def refuse(code: int, message: str) -> Step:
    return {"id": "@ID@", "error": {"code": code, "message": message}}


def update(kind: str, **data: object) -> Step:
    return {
        "method": "session/update",
        "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **data}},
    }


def say(words: str, message: str = "m1") -> Step:
    return update("agent_message_chunk", messageId=message, content={"type": "text", "text": words})


def permission(options: list[dict[str, str]], **call: object) -> list[Step]:
    params = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "t1", "title": "write it", **call},
        "options": options,
    }
    return [{"id": 90, "method": "session/request_permission", "params": params}, {"wait": True}]


USED = {"inputTokens": 100, "outputTokens": 5, "totalTokens": 185, "cachedReadTokens": 80}
TOOL = [
    update("tool_call", toolCallId="t1", title="edit", status="pending"),
    update("tool_call_update", toolCallId="t1", title="hello.py", status="completed"),
]
HELLO: dict[str, list[Step]] = {
    "initialize": [answer(protocolVersion=1, agentInfo={"name": "Fake", "version": "2"})],
    "session/new": [answer(sessionId="s", configOptions=MODELS)],
    "session/set_config_option": [answer(configOptions=MODELS)],
    "session/prompt": [*TOOL, say("{}"), answer(stopReason="end_turn", usage=USED)],
}


def drive(
    tmp_path: Path, changed: dict[str, list[Step]], *, confined: bool = True, **settings: object
) -> Ran:
    worker = WorkerSettings(adapter="acp", argv=("python3", str(AGENT), "script.json"), **settings)
    asked = request(tmp_path, worker, confined=confined)
    (tmp_path / "repo" / "script.json").write_text(json.dumps({**HELLO, **changed}))
    return work(tmp_path, asked, expose=() if confined else (PROGRAM.parent, AGENT.parent))


def received(tmp_path: Path) -> list[Step]:
    lines = (tmp_path / "repo" / "script.received").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.guarantee("M6", "M8")
def test_a_conversation(tmp_path: Path) -> None:
    ran = drive(tmp_path, {}, model="big", options=("--quick",))
    assert ran.failure is None, ran.log
    assert ran.answer == b"{}"
    assert ran.state.ended is Ending.SUCCEEDED
    assert (ran.state.agent, ran.state.calls_done, ran.state.unknown_events) == ("Fake 2", 1, 0)
    assert ran.state.tokens is not None
    assert (ran.state.tokens.total, ran.state.tokens.cached) == (185, 80)
    hello, session, choice, prompt = (message["params"] for message in received(tmp_path))
    assert hello == {"protocolVersion": 1, "clientCapabilities": {}}
    assert session == {"cwd": "/repo", "mcpServers": []}
    assert choice == {"sessionId": "s", "configId": "llm", "value": "big"}
    assert prompt["prompt"] == [{"type": "text", "text": "Make hello.py print 42."}]


def outcome(tmp_path: Path, steps: list[Step], *, confined: bool) -> tuple[Ran, object]:
    ran = drive(tmp_path, {"session/prompt": [*steps, *HELLO["session/prompt"]]}, confined=confined)
    return ran, received(tmp_path)[-1]["result"]["outcome"]


@pytest.mark.guarantee("M6", "M15")
@pytest.mark.parametrize(
    ("confined", "call", "chosen"),
    [
        (True, {"locations": [{"path": "/etc/passwd"}]}, "yes"),
        (False, {"locations": [{"path": "/etc/passwd"}]}, "no"),
        (False, {"locations": [{"path": "/repo/hello.py"}, {"path": "/repo"}]}, "yes"),
        (False, {"locations": [{"path": "/repo/../etc/passwd"}]}, "no"),
        (False, {"locations": [{"path": "/repository/hello.py"}]}, "no"),
        (False, {"content": [{"type": "diff", "path": "/etc/passwd", "newText": ""}]}, "no"),
        (False, {"content": [{"type": "content"}], "locations": []}, "yes"),
    ],
)
def test_nobody_is_asked(tmp_path: Path, confined: bool, call: dict[str, object], chosen: str) -> None:
    """In the sandbox everything goes, for the sandbox decides; without one, files outside the repository do not."""
    ran, answered = outcome(tmp_path, permission(OPTIONS, **call), confined=confined)
    assert answered == {"outcome": "selected", "optionId": chosen}
    assert ran.state.denied == (() if chosen == "yes" else ("write it",))


def test_a_question_without_a_fitting_answer(tmp_path: Path) -> None:
    """Only `for ever` is offered, then nothing at all."""
    _, answered = outcome(tmp_path, permission(OPTIONS[2:3]), confined=True)
    assert answered == {"outcome": "selected", "optionId": "always"}
    (tmp_path / "none").mkdir()
    ran, answered = outcome(tmp_path / "none", permission([]), confined=True)
    assert answered == {"outcome": "cancelled"}
    assert ran.failure is None


def test_a_client_without_files_and_terminals(tmp_path: Path) -> None:
    steps = [{"id": 91, "method": "fs/write_text_file", "params": {}}, {"wait": True}, {"method": "x/tell"}]
    ran = drive(tmp_path, {"session/prompt": [*steps, *HELLO["session/prompt"]]})
    assert received(tmp_path)[-1]["error"]["code"] == -32601
    assert ran.failure is None


@pytest.mark.guarantee("M8")
def test_words_that_are_no_message_go_to_the_log(tmp_path: Path) -> None:
    noise = [
        {"raw": "starting up"},
        {"raw": "[1]"},
        {"raw": '"' + "x" * 300_000 + '"'},
        answer(stopReason="no"),
    ]
    noise[-1]["id"] = 77
    ran = drive(tmp_path, {"session/prompt": [*noise, *HELLO["session/prompt"]]})
    assert ran.failure is None
    assert (ran.answer, ran.state.unknown_events) == (b"{}", 0)
    assert "starting up" in (tmp_path / "worker.log").read_text()


@pytest.mark.guarantee("M9", "M12", "K25")
@pytest.mark.parametrize(
    ("method", "steps", "kind", "said"),
    [
        ("session/new", [refuse(-32000, "Authentication required")], "auth", "Authentication required"),
        ("session/set_config_option", [refuse(-32602, "model not found: big")], "fault", "model not found"),
        ("session/new", [answer(sessionId="s")], "fault", "offers no choice of model"),
        ("session/prompt", [refuse(-32603, "Your credit balance is too low")], "quota", "credit balance"),
        ("session/prompt", [refuse(-32603, "Rate limit reached")], "transient", "Rate limit"),
        ("session/prompt", [refuse(-32603, "bad request")], "fault", "bad request"),
        ("session/prompt", [answer(stopReason="refusal")], "fault", "the turn ended with refusal"),
        ("session/prompt", [{"exit": 5}], "fault", "the agent ended before it answered session/prompt"),
        ("initialize", [{"exit": 0}], "fault", "ended before it answered initialize"),
        ("session/prompt", [*TOOL, {"exit": 0}], "interrupted", "before a final result, after 1 tool calls"),
        (
            "session/prompt",
            [say("I would rather not."), answer(stopReason="end_turn")],
            "fault",
            "rather not",
        ),
    ],
)
def test_what_goes_wrong(tmp_path: Path, method: str, steps: list[Step], kind: str, said: str) -> None:
    ran = drive(tmp_path, {method: steps}, model="big")
    assert ran.failure is not None
    assert ran.failure.kind == kind, ran.failure
    assert said in ran.failure.message


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    ran = work(tmp_path, request(tmp_path, WorkerSettings(adapter="acp", argv=("no-such-agent", "acp"))))
    assert ran.failure is not None
    assert "No such file or directory: 'no-such-agent'" in ran.failure.message
    with pytest.raises(ConfigError, match="name the agent"):
        WORKERS["acp"]().prepare(request(tmp_path, WorkerSettings(adapter="acp")))


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        (b'```json\n{"a": 1}\n```\n', b'{"a": 1}'),
        (b' ```\n{"a":\n1}\n``` ', b'{"a":\n1}'),
        (b'Done.\n```json\n{"a": 1}\n```', b'Done.\n```json\n{"a": 1}\n```'),
        (None, None),
    ],
)
def test_a_fence_around_the_answer(said: bytes | None, read: bytes | None) -> None:
    state = msgspec.structs.replace(TraceState(), answer=said)
    assert WORKERS["acp"]().answer(state, Path("unused")) == read
