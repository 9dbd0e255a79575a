"""`service` prints, or writes, a unit that fits this watch."""

import pytest
from tests.support import watches

from longwatch.kernel.watch import Watch
from longwatch.observe import units


@pytest.fixture
def watch(tmp_path) -> Watch:
    return watches.migrate(tmp_path / "my 100% repo")


@pytest.mark.guarantee("K10", "K39")
def test_the_unit_is_printed_and_nothing_is_written(watch, tmp_path):
    finished = watches.longwatch(watch.root, "service", XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert finished.returncode == 0
    assert "RestartPreventExitStatus=2 3 4" in finished.stdout
    assert "my 100%% repo" in finished.stdout
    assert "systemctl --user" in finished.stdout
    assert not (tmp_path / "config").exists()


@pytest.mark.guarantee("K39")
def test_write_puts_it_where_systemd_looks_and_says_how_to_begin(watch, tmp_path):
    finished = watches.longwatch(watch.root, "service", "--write", XDG_CONFIG_HOME=str(tmp_path / "config"))
    (unit,) = (tmp_path / "config/systemd/user").iterdir()
    assert str(unit) in finished.stdout
    assert f"enable --now {unit.name}" in finished.stdout


@pytest.mark.guarantee("K39")
def test_a_newline_in_the_folder_is_refused(tmp_path):
    root = tmp_path / "two\nlines"
    watches.migrate(root)
    finished = watches.longwatch(root, "service")
    assert finished.returncode == 2
    assert "newline" in finished.stderr


@pytest.mark.guarantee("K24", "K39")
def test_no_secret_of_the_environment_stands_in_the_unit(watch, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert "sk-very-secret" not in units.describe(watch)


@pytest.mark.guarantee("K39")
def test_a_pause_does_not_end_the_service(watch):
    assert "--stay" in units.command(watch)
