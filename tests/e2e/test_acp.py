"""The real opencode over the Agent Client Protocol, in a real sandbox, against a scripted model on loopback."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.support.agent_runs import AGENTS, NONCE, Ran, request, work
from tests.support.messages_server import Messages, messages_server
from tests.support.model_server import Answer, ModelServer, reading
from tests.support.repositories import git
from tests.support.shop import Shop, brought, open_shop, settle

from longwatch.kernel.limits import LimitHit
from longwatch.migrate.attempt.result import Result, Status, read_result
from longwatch.migrate.attempt.trace import Ending
from longwatch.migrate.attempt.workers import WorkRequest
from longwatch.migrate.attempt.workers.acp import PROGRAM
from longwatch.migrate.settings import WorkerSettings

pytestmark = [pytest.mark.agent, pytest.mark.e2e]

OPENCODE = AGENTS / "opencode-linux-x64" / "bin" / "opencode"
KEY = "sk-very-secret-key"
RESULT = {
    "nonce": NONCE,
    "status": "done",
    "summary": "Prints 42 now.",
    "changed": ["hello.py"],
    "reason": "",
}
EDIT = {"filePath": "/repo/hello.py", "oldString": "+ 1", "newString": "+ 2"}
COMMAND = "python3 hello.py; (setsid sleep 300 >/dev/null 2>&1 &); touch /etc/escaped || exit 3"
SCRIPT: list[Answer] = [
    [{"words": "I look."}, {"tool": "read", "arguments": {"filePath": "/etc/passwd"}}],
    [{"tool": "edit", "arguments": EDIT}],
    [{"tool": "bash", "arguments": {"command": COMMAND, "description": "try it"}}],
    [{"words": f"```json\n{json.dumps(RESULT)}\n```"}],
]


@pytest.fixture(autouse=True)
def _installed() -> None:
    if not OPENCODE.is_file():
        pytest.fail(
            "opencode is not installed; run `make agents` (or `npm ci` in tests/agents)", pytrace=False
        )


def variables(url: str, **changed: object) -> dict[str, str]:
    """What makes opencode ask our server and nobody else."""
    model = {"name": "m", "limit": {"context": 200000, "output": 8000}, "cost": {"input": 3, "output": 15}}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "options": {"baseURL": f"{url}/v1", "apiKey": "{env:SCRIPTED_KEY}"},
        "models": {"m": model},
    }
    settings = {"provider": {"scripted": provider}, "model": "scripted/m", **changed}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "SCRIPTED_KEY": KEY,
    }


def ask(
    tmp_path: Path, url: str, *, model: str = "", start_s: float = 60.0, **changed: object
) -> WorkRequest:
    settings = WorkerSettings(
        adapter="acp",
        argv=(str(OPENCODE), "acp"),
        model=model,
        model_start_timeout_s=start_s,
        model_idle_timeout_s=3.0,
    )
    return request(tmp_path, settings, environment=variables(url, **changed))


def drive(tmp_path: Path, mode: str, *, wall_s: float = 60.0, hurried: bool = False, **given: object) -> Ran:
    with messages_server(SCRIPT, mode) as model:
        asked = ask(tmp_path, model.url, **given)
        hurry = (lambda: model.bodies) if hurried else None
        ran = work(tmp_path, asked, wall_s=wall_s, expose=(AGENTS,), hurry=hurry)
        assert model.bodies, ran.log
    assert KEY not in ran.log
    return ran


@pytest.mark.guarantee("M6", "M8", "M11", "M12", "K18")
def test_a_run_that_edits_a_repository(tmp_path: Path) -> None:
    """It asks whether it may read outside the repository; nobody is there, and the sandbox is the answer."""
    ran = drive(tmp_path, "ok", permission={"*": "ask"})
    assert ran.failure is None, ran.log
    assert ran.state.ended is Ending.SUCCEEDED
    assert ran.state.agent == "OpenCode 1.18.33"
    assert (ran.state.calls_done, ran.state.denied, ran.state.unknown_events) == (3, (), 0)
    assert ran.state.tokens is None, "it counts its last message alone"
    assert ran.state.cost_usd == pytest.approx(4 * (1000 * 3 + 20 * 15) / 1e6)
    assert ran.answer is not None
    assert read_result(ran.answer, NONCE) == Result(
        status=Status.DONE, summary="Prints 42 now.", changed=("hello.py",)
    )
    assert (tmp_path / "repo" / "hello.py").read_text() == "print(40 + 2)\n"
    assert not Path("/etc/escaped").exists()


@pytest.mark.guarantee("M6", "M9", "K25")
@pytest.mark.parametrize(("mode", "kind"), [("401", "auth"), ("quota", "quota")])
def test_the_provider_refuses(tmp_path: Path, mode: str, kind: str) -> None:
    ran = drive(tmp_path, mode)
    assert ran.failure is not None
    assert ran.failure.kind == kind, (ran.failure, ran.log)
    assert ran.record.limit is None
    assert ran.state.first_action_s is None


@pytest.mark.guarantee("M9")
@pytest.mark.parametrize("mode", ["429", "429-late", "hang", "hang-mid"])
def test_a_provider_that_is_tried_again_in_silence(tmp_path: Path, mode: str) -> None:
    ran = drive(tmp_path, mode, hurried=True)
    assert ran.failure is not None
    assert ran.failure.kind == "transient"
    assert ran.record.limit is LimitHit.MONITOR
    assert "the model took no action" in ran.record.limit_detail


@pytest.mark.guarantee("M9")
def test_a_refused_port(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ran = work(tmp_path, ask(tmp_path, url, start_s=8.0), expose=(AGENTS,))
    assert ran.failure is not None
    assert ran.failure.kind == "transient"
    assert ran.record.limit is LimitHit.MONITOR


@pytest.mark.guarantee("M9", "M10")
@pytest.mark.parametrize(
    ("mode", "limit", "wall_s"), [("hang-later", LimitHit.MONITOR, 60.0), ("truncate", LimitHit.WALL, 30.0)]
)
def test_a_model_that_breaks_off_after_an_action(
    tmp_path: Path, mode: str, limit: LimitHit, wall_s: float
) -> None:
    """Edits may be half done. A stream that always ends too early is asked for again and again."""
    ran = drive(tmp_path, mode, wall_s=wall_s)
    assert ran.failure is not None
    assert ran.failure.kind == "interrupted"
    assert ran.record.limit is limit
    assert ran.state.calls_done >= 1


@pytest.mark.guarantee("M12")
def test_denied_tools(tmp_path: Path) -> None:
    """Without a sandbox of ours, files outside the repository are not for the agent."""
    with messages_server([SCRIPT[0], [{"words": "Done."}]]) as model:
        asked = msgspec.structs.replace(ask(tmp_path, model.url), confined=False)
        ran = work(tmp_path, asked, expose=(AGENTS, PROGRAM.parent))
    assert ran.failure is not None
    assert ran.failure.kind == "fault"
    assert "was denied every tool (/etc)" in ran.failure.message


@pytest.mark.guarantee("M9")
def test_an_unknown_model(tmp_path: Path) -> None:
    with messages_server(SCRIPT) as model:
        ran = work(tmp_path, ask(tmp_path, model.url, model="scripted/none"), expose=(AGENTS,))
        assert model.bodies == []
    assert ran.failure is not None
    assert "model not found: scripted/none" in ran.failure.message


# -- a whole watch


def job() -> list[Answer]:
    result = {**RESULT, "nonce": "@NONCE@", "summary": "Brought a.", "changed": list(brought("a"))}
    writes = [
        {"tool": "write", "arguments": {"filePath": path, "content": text}}
        for path, text in brought("a").items()
    ]
    return [writes, [{"words": json.dumps(result)}]]


@contextmanager
def shop_with_opencode(
    folder: Path, mode: str = "ok", **worker: object
) -> Iterator[tuple[Shop, ModelServer]]:
    with ModelServer(reading(Messages, job()), job(), mode) as model:
        shop = open_shop(folder, adapter="acp", argv=(str(OPENCODE), "acp"))
        shop.card("a")
        shop.variables |= variables(model.url)
        shop.configure(worker={"environment": list(variables("")), **worker})
        yield shop, model


@pytest.mark.guarantee("M6", "M7", "M9", "M12", "M15", "K24", "K26")
def test_opencode_does_a_job_after_its_provider_was_down(tmp_path: Path) -> None:
    """What the provider could not do is no attempt at the job."""
    with shop_with_opencode(tmp_path, "503", model_start_timeout_s=10.0) as (shop, model):
        supervisor = shop.begin()
        seen = shop.wait("waiting", lambda seen: seen.phase == "waiting", timeout_s=60)
        assert "transient" in seen.reason
        shop.configure(worker={"model_start_timeout_s": 60.0})
        model.mode = "ok"
        assert settle(shop, supervisor, timeout_s=120) == 0, shop.said()
        assert model.bodies
    assert shop.done() == ["a"]
    assert git(shop.root, "show", "--format=", "--name-only", "HEAD").split() == list(brought("a"))
    assert shop.call("verify").returncode == 0
    assert not any(kind.startswith("attempt.refused") for kind in shop.kinds())
    assert shop.living() == []
    for kept in shop.watch.hidden.rglob("*"):
        if kept.is_file() and not kept.is_symlink():
            assert KEY.encode() not in kept.read_bytes(), kept


@pytest.mark.guarantee("M9", "M36", "K26")
def test_a_model_that_does_not_exist_costs_no_attempt(tmp_path: Path) -> None:
    with shop_with_opencode(tmp_path, model="scripted/none") as (shop, model):
        shop.configure(backoff={"max_faults": 1})
        told = shop.call("doctor")
        assert "calls itself OpenCode 1.18.33" in told.stdout, told
        finished = shop.call("run")
        assert finished.returncode == 2, (finished, shop.said())
        assert "model not found: scripted/none" in shop.status().reason
        assert model.bodies == []
    assert not any(kind.startswith("attempt.refused") for kind in shop.kinds())
