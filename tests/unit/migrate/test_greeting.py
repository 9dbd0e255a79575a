"""`doctor` starts the agent of an `acp` worker, in its sandbox, and asks who it is."""

import json
from pathlib import Path

import pytest
from tests.support import acp_agent
from tests.support.repositories import commit_all, new_repository, write

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.watch import Watch
from longwatch.migrate.attempt.greeting import greet
from longwatch.migrate.init import WorkerChoice, initialise
from longwatch.migrate.place import Place
from longwatch.migrate.settings import load

HELLO = {"id": "@ID@", "result": {"protocolVersion": 1, "agentInfo": {"name": "Fake", "version": "2"}}}
CHECKS = '[[checks]]\nname = "tests"\nargv = ["pytest"]\n'


def place(tmp_path: Path, *steps: object) -> Place:
    root = new_repository(tmp_path / "repo")
    write(root, "hello.py", "print(1)\n")
    commit_all(root)
    script = write(root, "script.json", json.dumps({"initialize": steps}))
    initialise(root, WorkerChoice(adapter="acp", argv=("python3", acp_agent.__file__, str(script))))
    with (root / "longwatch.toml").open("a") as settings:
        settings.write(CHECKS)
    watch = Watch(root)
    watch.hidden.mkdir()
    return Place(watch, load(root))


@pytest.mark.guarantee("M36", "M6")
def test_who_it_is(tmp_path: Path) -> None:
    found = place(tmp_path, HELLO)
    assert greet(found) == "Fake 2"
    assert list(found.watch.hidden.iterdir()) == [], "nothing is left behind"


def test_an_agent_without_a_name(tmp_path: Path) -> None:
    assert greet(place(tmp_path, {"id": "@ID@", "result": {}})) == "nothing"


@pytest.mark.guarantee("M36")
@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"exit": 3}, "ended before it answered initialize"),
        ({"id": "@ID@", "error": {"code": -1, "message": "too old"}}, "too old"),
    ],
)
def test_an_agent_that_does_not_say_it(tmp_path: Path, step: object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        greet(place(tmp_path, step))
