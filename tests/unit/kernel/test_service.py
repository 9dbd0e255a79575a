"""The unit file is read back by systemd itself: `systemd-analyze verify`, and the manager's own dump of what it loaded."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.service import lingering, unit, unit_folder, unit_name, write_unit

pytestmark = pytest.mark.guarantee("K39")

MANAGER = "/lib/systemd/systemd"
NASTY = (
    "plain",
    "two  blanks ",
    "50%n%%",
    "a\"b'c",
    "back\\slash\\",
    "$HOME ${X}",
    "grün 監視",
    "tab\there",
    ";",
    "#",
    "-x",
)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def verify(path: Path) -> None:
    environment = os.environ | {"XDG_RUNTIME_DIR": str(path.parent)}
    done = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def loaded(path: Path) -> str:
    """Let a user manager load the unit, as another user than root, and return its dump of it."""
    folder = path.parent
    (folder / "default.target").write_text(f"[Unit]\nWants={path.name}\n")
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:", "XDG_RUNTIME_DIR": str(folder)}
    inside = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--dev-bind", "/", "/"]
    done = subprocess.run(
        [*inside, MANAGER, "--user", "--test", "--log-target=console"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    dump = done.stdout.decode()
    begin = dump.index(f"-> Unit {path.name}:")
    return dump[begin : dump.find("-> Unit ", begin + 1)]


def field(dump: str, name: str) -> str:
    found = re.search(rf"^\t*{re.escape(name)}: (.*)$", dump, re.MULTILINE)
    assert found, f"the manager's dump has no {name}"
    return found[1]


def words(line: str) -> list[str]:
    """Undo the quoting of the manager's dump."""
    found = re.findall(r'"((?:\\.|[^"\\])*)"|(\S+)', line)
    return [re.sub(r"\\(.)", lambda m: {"t": "\t"}.get(m[1], m[1]), quoted) or bare for quoted, bare in found]


def written(
    tmp_path: Path,
    argv: Sequence[str] = (sys.executable,),
    watch: str = "watch",
    environment: Mapping[str, str] | None = None,
) -> Path:
    folder = tmp_path / watch
    folder.mkdir(exist_ok=True)
    units = tmp_path / "units"
    return write_unit(folder, argv, environment=environment or {}, description=watch, folder=units)


@pytest.mark.parametrize("name", NASTY)
def test_systemd_accepts_any_folder_and_any_program(tmp_path: Path, name: str) -> None:
    argv = (str(program(tmp_path / name / f"run {name}")), "--watch-dir", str(tmp_path / name))

    verify(written(tmp_path, argv, name, {"NOTE": name}))


@pytest.mark.parametrize("name", NASTY)
def test_systemd_reads_back_what_was_meant(tmp_path: Path, name: str) -> None:
    argv = (sys.executable, *NASTY, name)

    dump = loaded(written(tmp_path, argv, name, {"NOTE": name}))

    assert words(field(dump, "Command Line")) == list(argv)
    assert field(dump, "WorkingDirectory") == str(tmp_path / name)
    assert field(dump, "Environment") == f"NOTE={name}"
    assert field(dump, "Description") == f"Longwatch ({name})"


def test_a_program_whose_name_systemd_refuses_is_run_by_a_shell_that_only_passes_on(tmp_path: Path) -> None:
    path = tmp_path / 'a"b\\c'
    path.write_text('#!/bin/sh\nprintf "%s|" "$@" >"$OUT"\n')
    path.chmod(0o755)
    out = tmp_path / "out"
    command = words(field(loaded(written(tmp_path, (str(path), "$x", "a b"))), "Command Line"))

    subprocess.run(command, env=os.environ | {"OUT": str(out)}, check=True)

    assert out.read_text() == "$x|a b|"


def test_it_restarts_on_failure_but_not_when_a_person_must_look(tmp_path: Path) -> None:
    path = written(tmp_path)
    dump = loaded(path)

    assert field(dump, "Restart") == "on-failure"
    assert "\nRestartPreventExitStatus=2 3 4\n" in path.read_text()
    assert field(dump, "OOMPolicy") == "continue"
    assert field(dump, "RestartSec") == "30s"
    assert "\nStartLimitIntervalSec=0\n" in path.read_text()


def test_it_starts_at_boot_and_leaves_the_supervisor_its_15_seconds(tmp_path: Path) -> None:
    path = written(tmp_path)
    dump = loaded(path)

    assert path.read_text().endswith("[Install]\nWantedBy=default.target\n")
    assert field(dump, "KillMode") == "process"
    assert field(dump, "TimeoutStopSec") == "30s"
    assert "pids" in field(dump, "CGroup delegate mask")


@pytest.mark.parametrize("bad", ["\n", "\r", "\0", "\x1b"])
@pytest.mark.parametrize("where", ["watch", "argument", "program", "environment", "description"])
def test_what_a_unit_cannot_hold_is_refused_by_name(where: str, bad: str) -> None:
    value = f"x{bad}ExecStartPre=/bin/evil"
    given_values = {name: value if name == where else "x" for name in ("watch", "argument", "program")}

    with pytest.raises(ConfigError, match=r"a newline|a carriage return|a NUL|control character") as caught:
        unit(
            Path("/", given_values["watch"]),
            (f"/{given_values['program']}", given_values["argument"]),
            {"A": value if where == "environment" else "x"},
            value if where == "description" else "x",
        )

    assert "ExecStartPre" in str(caught.value)


@pytest.mark.parametrize("name", ["", "A B", "1A", "A=B", "Ä"])
def test_a_name_that_is_no_variable_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no name of an environment variable"):
        unit(Path("/w"), ("/bin/true",), {name: "x"}, "x")


def test_relative_programs_and_folders_and_other_encodings_are_refused() -> None:
    with pytest.raises(ConfigError, match="absolute path of its program"):
        unit(Path("/w"), ("longwatch",), {}, "x")
    with pytest.raises(ConfigError, match="absolute path of its program"):
        unit(Path("/w"), (), {}, "x")
    with pytest.raises(ConfigError, match="absolute path of its watch"):
        unit(Path("w"), ("/bin/true",), {}, "x")
    with pytest.raises(ConfigError, match="not UTF-8"):
        unit(Path(os.fsdecode(b"/w\xff")), ("/bin/true",), {}, "x")


@given(st.text(st.characters(blacklist_categories=("Cc", "Cs"))), st.text())
def test_no_value_ever_adds_a_line(good: str, wild: str) -> None:
    lines = unit(Path("/w"), ("/bin/true", "x"), {"A": "x"}, "x").count("\n")

    assert unit(Path("/w", good.lstrip("/")), ("/bin/true", good), {"A": good}, good).count("\n") == lines
    try:
        text = unit(Path("/w"), ("/bin/true", wild), {"A": wild}, wild)
    except ConfigError:
        return
    assert text.count("\n") == lines


def test_names_are_stable_plain_and_tell_folders_apart() -> None:
    names = [
        unit_name(Path(path)) for path in ("/a/My Watch", "/b/My Watch", "/a/50%\\", "/a/" + "x" * 250, "/")
    ]

    assert names == [
        unit_name(Path(path)) for path in ("/a/My Watch", "/b/My Watch", "/a/50%\\", "/a/" + "x" * 250, "/")
    ]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"longwatch-[a-z0-9-]{1,51}\.service", name) for name in names)
    assert names[0].startswith("longwatch-my-watch-")


def test_the_unit_is_written_where_the_user_manager_looks(tmp_path: Path) -> None:
    assert unit_folder({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "systemd/user"
    assert unit_folder({"XDG_CONFIG_HOME": "relative"}) == Path.home() / ".config/systemd/user"


def test_lingering_is_known_only_where_systemd_runs(tmp_path: Path) -> None:
    assert lingering(tmp_path) is None

    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert lingering(tmp_path) is False

    linger = tmp_path / "var/lib/systemd/linger"
    linger.mkdir(parents=True)
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    (linger / user).touch()
    assert lingering(tmp_path) is True
