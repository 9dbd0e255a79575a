"""`longwatch export` on a finished watch: the champion leaves it as a model of its own."""

import json

import pytest
from tests.support import tiny_watch
from tests.support.tiny_watch import call, state

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture
def finished(tmp_path, tmp_path_factory):
    return tiny_watch.copy(tiny_watch.finished(tmp_path_factory), tmp_path / "watch").root


@pytest.mark.guarantee("L37", "K10", "K15")
def test_a_champion_is_exported_in_both_formats_and_proved_from_the_new_files(tmp_path, finished):
    made = call(finished, "export", "--to", str(tmp_path / "folder"), "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["provenance"]["adapter"] == state(finished).champion
    assert told["provenance"]["evaluation"]["exported_passed"] > 0
    again = call(finished, "export", "--to", str(tmp_path / "folder"))
    assert (again.returncode, "exists and was left as it is" in again.stderr) == (2, True)
    made = call(finished, "export", "--to", str(tmp_path / "file"), "--format", "gguf", "--type", "q8_0")
    assert made.returncode == 0, made.stderr
    assert "sealed tasks passed" in made.stdout
    assert sorted(path.name for path in (tmp_path / "file").iterdir()) == [
        "longwatch-export.json",
        "model.gguf",
    ]
    assert call(finished, "verify").returncode == 0


@pytest.mark.guarantee("L37", "K15")
def test_without_a_champion_there_is_nothing_to_export(tmp_path, tmp_path_factory):
    root = tiny_watch.copy(tiny_watch.prepared(tmp_path_factory), tmp_path / "watch").root
    refused = call(root, "export", "--to", str(tmp_path / "out"))
    assert refused.returncode == 2
    assert "There is no champion yet" in refused.stderr
    assert not (tmp_path / "out").exists()
