"""Budgets of a whole watch: overspent, cut by kill -9, and cut by something that a person has to look at."""

import json
import signal
from pathlib import Path

import pytest
from tests.support import acp_agent
from tests.support.repositories import write
from tests.support.shop import WORKER, Shop, kill, open_shop, settle

pytestmark = pytest.mark.e2e


def charged(shop: Shop) -> list[str]:
    return [text for kind, text in shop.events() if kind == "attempt.charged"]


def spent(shop: Shop) -> tuple[str, str]:
    rows = dict(shop.status().summary)
    return rows["tokens"], rows["USD"]


def update(kind: str, **data: object) -> dict[str, object]:
    return {
        "method": "session/update",
        "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **data}},
    }


@pytest.mark.guarantee("M11", "K15", "K26")
def test_an_attempt_that_overspends_is_ended_and_the_watch_stops_once(tmp_path: Path) -> None:
    """It works on and tells what it costs; nobody has to wait for its end."""
    script = {
        "initialize": [{"id": "@ID@", "result": {"protocolVersion": 1}}],
        "session/new": [{"id": "@ID@", "result": {"sessionId": "s"}}],
        "session/prompt": [
            update("tool_call", toolCallId="t1", title="think", status="pending"),
            update("usage_update", cost={"amount": 9.0, "currency": "USD"}),
            {"wait": True},
        ],
    }
    written = write(tmp_path, "script.json", json.dumps(script))
    shop = open_shop(tmp_path, adapter="acp", argv=("python3", acp_agent.__file__, str(written)))
    shop.card("a")
    shop.configure(budget={"usd_per_attempt": 2.0, "usd": 20.0})
    finished = shop.call("run")
    assert finished.returncode == 4, (finished, shop.said())
    assert "it used 9.00 USD, and budget.usd_per_attempt is 2.00" in shop.status().reason
    assert "Raise in longwatch.toml what is spent" in finished.stdout
    assert charged(shop) == ["a: attempt 1 costs 9.00 USD."]
    assert spent(shop) == ("0", "9.00 of 20.00")
    assert not any(kind.startswith("attempt.refused") for kind in shop.kinds())
    assert shop.living() == []


@pytest.mark.guarantee("M11", "K5", "K15")
def test_what_was_reserved_is_charged_where_nobody_knows(tmp_path: Path) -> None:
    """First worker and supervisor are killed; then something protected changes while a worker works."""
    shop = open_shop(tmp_path, worker=WORKER)
    shop.card("a")
    shop.configure(budget={"tokens_per_attempt": 60, "tokens": 130})
    shop.raise_flag("worker")
    supervisor = shop.begin()
    shop.in_step("attempt", "worker")
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    kill(shop.programs())
    supervisor = shop.begin()
    shop.wait("charged", lambda _: len(charged(shop)) == 1)
    shop.in_step("a.2.attempt", "worker")
    shop.configure(budget={"tokens": 120})
    shop.lower_flag("worker")
    assert settle(shop, supervisor) == 3, shop.said()
    assert charged(shop) == [
        f"a: attempt {n} costs 60 tokens (all that was reserved: what it used is not known)." for n in (1, 2)
    ]
    assert shop.call("resume", "--accept").returncode == 0
    for tokens, code in ((120, 4), (120, 4), (240, 0)):
        shop.configure(budget={"tokens": tokens})
        assert shop.call("run").returncode == code, shop.said()
        assert len(charged(shop)) == (3 if code == 0 else 2)
    assert shop.done() == ["a"]
    assert spent(shop) == ("180 of 240", "0.00")
