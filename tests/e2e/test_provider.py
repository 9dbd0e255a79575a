"""A whole watch with the real codex against a scripted model on loopback, and with a provider that refuses."""

import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from tests.support.agent_runs import AGENTS
from tests.support.model_server import Answer, ModelServer, reading
from tests.support.repositories import git, write
from tests.support.responses_server import Responses
from tests.support.shop import Shop, brought, open_shop, settle

pytestmark = [pytest.mark.agent, pytest.mark.e2e]

CODEX = AGENTS / "@openai" / "codex" / "bin" / "codex.js"
KEY = "sk-very-secret-key"
PATHS = ("shop/a.py", "tests/test_a.py")
RESULT = {"nonce": "@NONCE@", "status": "done", "summary": "Brought a.", "changed": list(PATHS), "reason": ""}


def patch() -> str:
    """The recorded change of job `a`, in codex's own form."""
    added = "".join(
        f"*** Add File: {path}\n{textwrap.indent(text, '+', lambda line: True)}"
        for path, text in brought("a").items()
    )
    return f"*** Begin Patch\n{added}*** End Patch\n"


SCRIPT: list[Answer] = [[{"patch": patch()}], [{"words": json.dumps(RESULT)}]]


@contextmanager
def shop_with_codex(folder: Path, mode: str = "ok") -> Iterator[tuple[Shop, ModelServer]]:
    if not CODEX.is_file():
        pytest.fail("codex is not installed; run `make agents` (or `npm ci` in tests/agents)", pytrace=False)
    with ModelServer(reading(Responses, SCRIPT), SCRIPT, mode) as model:
        shop = open_shop(folder, adapter="codex")
        shop.card("a")
        home = folder / "codex-home"
        write(
            home,
            "config.toml",
            'model_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{model.url}/v1"\nenv_key = "SCRIPTED_KEY"\nwire_api = "responses"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n",
        )
        shop.variables |= {"CODEX_HOME": str(home), "SCRIPTED_KEY": KEY}
        shop.configure(
            worker={
                "argv": [str(CODEX)],
                "model": "gpt-5.5",
                "environment": ["CODEX_HOME", "SCRIPTED_KEY"],
                "model_start_timeout_s": 60.0,
            }
        )
        yield shop, model


@pytest.mark.guarantee("M6", "M7", "M12", "M11", "K24", "M15")
def test_codex_does_a_job(tmp_path: Path) -> None:
    with shop_with_codex(tmp_path) as (shop, model):
        finished = shop.call("run")
        assert finished.returncode == 0, (finished, shop.said())
        assert model.bodies
    assert shop.commits() == ["a.1"]
    assert git(shop.root, "show", "--format=", "--name-only", "HEAD").split() == list(PATHS)
    assert shop.call("verify").returncode == 0
    assert dict(shop.status().summary)["tokens"] == "2,040"
    assert shop.living() == []
    for kept in shop.watch.hidden.rglob("*"):
        if kept.is_file() and not kept.is_symlink():
            assert KEY.encode() not in kept.read_bytes(), kept


def nothing_was_counted(shop: Shop) -> None:
    assert not any(kind.startswith("attempt.refused") for kind in shop.kinds())
    assert "job.blocked" not in shop.kinds()
    assert shop.living() == []


@pytest.mark.guarantee("M9", "K15", "K26", "K27")
def test_an_outage_is_waited_for_or_blocks_after_the_configured_maximum(tmp_path: Path) -> None:
    with shop_with_codex(tmp_path, "503") as (shop, model):
        shop.configure(backoff={"max_transients": 2})
        finished = shop.call("run")
        assert finished.returncode == 2, (finished, shop.said())
        assert "Selected model is at capacity" in shop.status().reason
        assert "(2 failures in a row, and backoff.max_transients is 2)" in finished.stdout
        assert "`longwatch resume --accept` and `longwatch run` go on" in finished.stdout
        nothing_was_counted(shop)
        shop.configure(backoff={"max_transients": 0})
        assert shop.call("resume", "--accept").returncode == 0
        supervisor = shop.begin()
        seen = shop.wait("waiting", lambda seen: seen.phase == "waiting")
        assert "transient" in seen.reason
        # Each wait is longer than the one before: a look at the queue in between is no success.
        shop.wait("failing again", lambda seen: seen.failures >= 2)
        model.mode = "ok"
        assert settle(shop, supervisor) == 0
    assert shop.done() == ["a"]
    nothing_was_counted(shop)


@pytest.mark.guarantee("K26", "K27", "M12", "K13", "K15")
def test_a_usage_limit_stops_or_is_parked_over_a_kill_and_a_resume(tmp_path: Path) -> None:
    with shop_with_codex(tmp_path, "usage") as (shop, model):
        finished = shop.call("run")
        assert finished.returncode == 4, (finished, shop.said())
        said = finished.stdout
        assert re.search(
            r"the usage limit lifts at \d{4}-\d\d-\d\d \d\d:\d\d UTC; backoff.park_for_quota is off", said
        )
        assert "Raise in longwatch.toml what is spent, or wait until the limit lifts" in said
        shop.configure(backoff={"park_for_quota": True})
        ends = []
        for _ in range(2):
            supervisor = shop.begin()
            shop.wait("parked", lambda seen: seen.phase == "waiting" and seen.supervisor.alive)
            supervisor.kill()
            supervisor.wait()
            shown = shop.json("status")
            assert 6000 < shown["parked_s"] < 7400
            assert shown["reason"].startswith("quota: a: attempt 2: codex ended with an error: ")
            ends.append(datetime.fromisoformat(shown["next_retry_at"]).timestamp())
        assert abs(ends[0] - ends[1]) <= 2, "killed and taken up again, it waits for the same moment"
        assert "in all, for usage limits" in shop.call("status").stdout
        supervisor = shop.begin()
        shop.wait("parked", lambda seen: seen.phase == "waiting")
        model.mode = "ok"
        assert shop.call("resume").returncode == 0
        assert settle(shop, supervisor) == 0, shop.said()
    assert shop.done() == ["a"]
    nothing_was_counted(shop)
