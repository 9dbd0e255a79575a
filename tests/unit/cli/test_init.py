"""`longwatch init migrate`: a stranger's repository becomes a watch, or nothing is lost."""

import json
import stat

import pytest
from tests.support import repositories, watches

from longwatch.cli import beginning
from longwatch.kernel.errors import LongwatchError, RefusedError
from longwatch.kernel.signing import PRIVATE_NAME
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import status


def init(root, *arguments: str):
    return watches.longwatch(root, "init", "migrate", *arguments)


@pytest.mark.guarantee("K10")
def test_a_repository_becomes_a_watch_that_answers(tmp_path):
    root = watches.repository(tmp_path / "repo")
    finished = init(root, "--worker", "command", "--argv", "sh", "--argv", "agent.sh")
    assert finished.returncode == 0, finished.stderr
    for told in ("longwatch.toml", "longwatch doctor", "longwatch run", "pytest -q"):
        assert told in finished.stdout
    watch = Watch(root)
    assert status.read(watch).phase == "idle"
    assert 'argv = ["sh", "agent.sh"]' in watch.config.read_text()
    assert stat.S_IMODE((watch.keys / PRIVATE_NAME).stat().st_mode) == 0o600
    assert watches.longwatch(root, "verify").returncode == 0
    assert ".longwatch" not in repositories.git(root, "status", "--porcelain")


@pytest.mark.guarantee("K10")
def test_json_names_what_was_written(tmp_path):
    root = watches.repository(tmp_path / "repo")
    made = json.loads(init(root, "--worker", "command", "--argv", "true", "--json").stdout)
    assert "longwatch.toml" in made["files"]
    assert made["worker"] == "command"


@pytest.mark.guarantee("K15")
def test_a_second_init_changes_nothing(tmp_path):
    root = watches.repository(tmp_path / "repo")
    init(root, "--worker", "command", "--argv", "true")
    before = watches.contents(root)
    finished = init(root, "--worker", "command", "--argv", "other")
    assert finished.returncode == 2
    assert watches.contents(root) == before


@pytest.mark.guarantee("K15")
def test_outside_a_repository_nothing_is_written(tmp_path):
    finished = init(tmp_path, "--worker", "command", "--argv", "true")
    assert finished.returncode == 2
    assert "git init" in finished.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_an_earlier_watch_is_not_taken_over(tmp_path):
    watch = watches.migrate(tmp_path / "repo")
    watch.config.unlink()
    with pytest.raises(RefusedError, match="earlier watch"):
        beginning.migrate(watch.root, adapter="command", argv=("true",))
    assert not watch.config.exists()


def test_a_failure_after_the_files_names_them(tmp_path, monkeypatch):
    root = watches.repository(tmp_path / "repo")

    def full(*_):
        raise LongwatchError("the disk is full.")

    monkeypatch.setattr(Store, "create", full)
    with pytest.raises(LongwatchError, match=r"the disk is full.*longwatch\.toml.*remove"):
        beginning.migrate(root, adapter="command", argv=("true",))
