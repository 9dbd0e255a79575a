"""A watch whose teacher stands behind an endpoint: paused while it stalls, and taught by what passed."""

import json
import re
import time

import msgspec
import pytest
from tests.support import chat_server, tiny_watch
from tests.support.chat_server import KEY, ChatServer, answering
from tests.support.tiny_watch import call, events, kinds

from longwatch.learn.experiment.collecting import Collected
from longwatch.learn.teachers.provenance import Teacher

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
_OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}


def solved(prompt):
    name, one, first, two, second = re.fullmatch(
        r"Write `(\w)\(x\)`: x (\w+) (\d), then (\w+) (\d)\.", prompt
    ).groups()
    return f"```python\ndef {name}(x):\n    return (x {_OPERATIONS[one]} {first}) {_OPERATIONS[two]} {second}\n```"


@pytest.mark.guarantee("L9", "L14", "K24")
def test_a_pause_is_obeyed_while_a_teacher_stalls_and_what_it_taught_later_says_so(
    tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.setitem(tiny_watch.ENVIRONMENT, "TEACHER_KEY", KEY)
    watch = tiny_watch.copy(tiny_watch.prepared(tmp_path_factory), tmp_path / "watch")
    with ChatServer(chat_server.stalling) as server:
        table = {"model": "large", "base_url": server.base_url, "key": "TEACHER_KEY", "timeout_s": 300.0}
        tiny_watch.configure(watch.root, training={"teacher": "endpoint", "max_steps": 2}, teacher=table)
        call(watch.root, "resume", check=True)
        with tiny_watch.running(watch.root) as supervisor:
            tiny_watch.wait_for(lambda: len(server.bodies) >= 4, supervisor)
            began_s = time.monotonic()
            call(watch.root, "pause", check=True)
            assert supervisor.wait(60) == 0
            assert time.monotonic() - began_s < 8, "5 s for the step, the rest for two programs of Python"
        asked = len(server.bodies)
        server.behave = answering(solved)
        call(watch.root, "resume", check=True)
        with tiny_watch.running(watch.root) as supervisor:
            first = tiny_watch.experiment(watch.root) / "round-1" / "collected.json"
            tiny_watch.wait_for(first.exists, supervisor)
            call(watch.root, "stop", check=True)
            assert supervisor.wait(60) == 0
    collected = msgspec.json.decode(first.read_bytes(), type=Collected)
    taught = [one for one in collected.examples if one.provenance]
    assert taught
    assert {(one.provenance.teacher, one.provenance.origin) for one in taught} == {
        (Teacher.ENDPOINT, server.url)
    }
    prompts = [json.loads(body)["messages"][0]["content"] for body in server.bodies]
    assert len(set(prompts[asked:])) == len(prompts[asked:]), "each is answered once"
    assert chat_server.holds(watch.root, KEY) == []
    spent = json.loads((watch.hidden / "teacher" / "ledger.json").read_bytes())
    assert spent["life"]["requests"] == len(server.bodies)
    assert dict(json.loads(call(watch.root, "status", "--json", check=True).stdout)["summary"])["teacher"]
    assert "teacher.failed" not in kinds(watch.root), events(watch.root)
