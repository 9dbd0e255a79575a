"""The scripts of the house, each run as the program it is, on small trees of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SPECIFICATION = """# Kernel

Words that are no behaviour.
- a list item without an id
## Ownership
- K1 One supervisor per watch. The lease is a lock
  that is never unlinked.
- K2 It costs 0.5 s: no more. Truly.

  A paragraph that belongs to nothing.
- K3 No full stop
"""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(ROOT / "scripts" / script), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("docs/spec", "tests", "src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/spec/kernel.md").write_text(SPECIFICATION)
    return tmp_path


def guarantees(project: Path, test: str, *, check: bool = False) -> subprocess.CompletedProcess[str]:
    (project / "tests/test_it.py").write_text(test)
    return run("guarantees.py", "--root", str(project), *(["--check"] if check else []))


def test_each_guarantee_stands_with_its_first_sentence_and_its_tests(project: Path) -> None:
    done = guarantees(project, 'import pytest\n@pytest.mark.guarantee("K2")\ndef test_a(): ...\n')

    page = (project / "docs/guarantees.md").read_text()
    assert (done.returncode, done.stderr) == (0, "")
    assert "- kernel: 1 of 3 have tests; not yet tested: K1, K3.\n" in page
    assert "- **K1** One supervisor per watch.\n    - not yet tested\n" in page
    assert "- **K2** It costs 0.5 s: no more.\n    - `tests/test_it.py::test_a`\n" in page
    assert "- **K3** No full stop\n" in page


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ('@pytest.mark.guarantee("K1", "K2")\ndef test_a(): ...', "tests/test_it.py::test_a"),
        ('@pytest.mark.guarantee("K1")\nasync def test_a(): ...', "tests/test_it.py::test_a"),
        (
            '@pytest.mark.guarantee("K1")\nclass TestA:\n def test_b(self): ...',
            "tests/test_it.py::TestA::test_b",
        ),
        (
            'class TestA:\n @pytest.mark.guarantee("K1")\n def test_b(self): ...',
            "tests/test_it.py::TestA::test_b",
        ),
        ('pytestmark = pytest.mark.guarantee("K1")\ndef test_a(): ...', "tests/test_it.py::test_a"),
        (
            'pytestmark = [pytest.mark.e2e, pytest.mark.guarantee("K1")]\ndef test_a(): ...',
            "tests/test_it.py::test_a",
        ),
        (
            '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.guarantee("K1"))])\ndef test_a(x): ...',
            "tests/test_it.py::test_a",
        ),
        ('CASES = [pytest.param(1, marks=pytest.mark.guarantee("K1"))]', "tests/test_it.py"),
    ],
)
def test_marks_are_found_wherever_pytest_takes_them(project: Path, test: str, name: str) -> None:
    guarantees(project, test)

    assert f"One supervisor per watch.\n    - `{name}`\n" in (project / "docs/guarantees.md").read_text()


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ('@pytest.mark.guarantee("K99")\ndef test_a(): ...', "docs/spec has no K99"),
        ('pytestmark = pytest.mark.guarantee("K99")\ndef test_a(): ...', "docs/spec has no K99"),
        ("@pytest.mark.guarantee(ID)\ndef test_a(): ...", "write the id out"),
    ],
)
def test_a_mark_that_names_nothing_fails(project: Path, test: str, message: str) -> None:
    done = guarantees(project, test)

    assert done.returncode == 1
    assert "tests/test_it.py::test_a (line" in done.stderr
    assert message in done.stderr


def test_a_stale_page_fails_the_check_and_is_not_written(project: Path) -> None:
    missing = guarantees(project, "", check=True)
    assert not (project / "docs/guarantees.md").exists()
    guarantees(project, "")
    fresh = guarantees(project, "", check=True)
    stale = guarantees(project, '@pytest.mark.guarantee("K1")\ndef test_a(): ...', check=True)

    assert [missing.returncode, fresh.returncode, stale.returncode] == [1, 0, 1]
    assert "make docs" in stale.stderr


def test_the_lifecycle_page_has_every_edge_of_the_table(tmp_path: Path) -> None:
    from longwatch.kernel.lifecycle import EDGES  # noqa: PLC0415 - only this test needs it

    done = run("lifecycle_diagram.py", "--root", str(tmp_path))
    page = (tmp_path / "docs/lifecycle.md").read_text()

    assert done.returncode == 0
    assert [
        e for e in EDGES if f"| {e.phase} | {e.event} | {e.to} | {e.name} | {e.sentence} |" not in page
    ] == []
    drawn = "".join(path.read_text() for path in (tmp_path / "docs/images").iterdir())
    arrows = re.findall(r"<title>(\w+) to (\w+): ([^<]+)</title>", drawn)
    assert {(begin, end, name) for begin, end, names in arrows for name in names.split(", ")} == {
        (e.phase, e.to, e.name) for e in EDGES if e.phase != e.to
    }
    assert run("lifecycle_diagram.py", "--root", str(tmp_path), "--check").returncode == 0
    for path in (tmp_path / "docs/lifecycle.md", tmp_path / "docs/images/lifecycle-hold.svg"):
        kept = path.read_text()
        path.write_text(f"{kept}x")
        assert run("lifecycle_diagram.py", "--root", str(tmp_path), "--check").returncode == 1
        path.write_text(kept)


def function(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        (function(2) * 9 + function(24), ""),
        (function(2) * 8 + function(25) * 2, "one function in ten"),
        (function(9) * 3, ""),
        (function(10) * 3, "the median function has 10 lines"),
        ("def f():\n    pass\n" + "x = 1\n" * 398, ""),
        ("def f():\n    pass\n" + "x = 1\n" * 399, "src/m.py has 401 lines"),
        ("x = 1\n", "nothing to measure"),
    ],
)
def test_the_size_rules_hold_exactly_at_their_bounds(project: Path, source: str, broken: str) -> None:
    (project / "src/m.py").write_text(source)

    done = run("sizes.py", "--root", str(project))

    assert done.returncode == bool(broken)
    assert broken in done.stderr
    assert bool(done.stderr) == bool(broken)


def tools(folder: Path, *names: str, **scripts: str) -> Path:
    """A PATH with exactly these programs."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or name)
    for name, body in scripts.items():
        (folder / name.replace("_", "-")).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name.replace("_", "-")).chmod(0o755)
    return folder


def install(path: Path, target: str) -> subprocess.CompletedProcess[str]:
    argv = ["/bin/sh", str(ROOT / "scripts/install-debian"), target]
    environment = {"PATH": str(path), "LOG": str(path / "log")}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


BASE = ("cat", "mktemp", "rm", "env")


def test_nothing_is_installed_where_nothing_is_missing(tmp_path: Path) -> None:
    present = {"python3": "exit 0", "git": "", "bwrap": "", "apt_get": 'echo "$@" >>"$LOG"'}
    path = tools(tmp_path / "bin", *BASE, id="echo 0", **present)

    done = install(path, "demo")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (path / "log").exists()


def test_root_installs_exactly_what_is_missing(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", *BASE, id="echo 0", python3="exit 1", git="", apt_get='echo "$@" >>"$LOG"')

    done = install(path, "demo")

    assert done.returncode == 0, done.stderr
    assert (path / "log").read_text().splitlines() == [
        "-q update",
        "-q -y --no-install-recommends install python3 python3-venv bubblewrap",
    ]


def test_an_ordinary_user_uses_sudo_only_where_it_asks_for_no_password(tmp_path: Path) -> None:
    sudo = '[ "$1" = -n ] && shift; echo "sudo $*" >>"$LOG"; exec "$@"'
    path = tools(
        tmp_path / "bin", *BASE, "true", id="echo 1000", python3="", git="", sudo=sudo, apt_get="exit 0"
    )

    assert install(path, "demo").returncode == 0
    assert "sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update" in (path / "log").read_text()


@pytest.mark.parametrize("lacks", ["rights", "apt-get"])
def test_who_may_not_install_is_told_the_packages(tmp_path: Path, lacks: str) -> None:
    scripts = {"id": "echo 1000", "apt_get": 'echo "$@" >>"$LOG"'} if lacks == "rights" else {"id": "echo 0"}
    path = tools(tmp_path / "bin", *BASE, python3="", **scripts)

    done = install(path, "test")

    assert done.returncode != 0
    assert "apt-get install git bubblewrap strace systemd nodejs npm" in done.stderr
    assert not (path / "log").exists()


def test_a_failed_installation_shows_its_words(tmp_path: Path) -> None:
    path = tools(
        tmp_path / "bin", *BASE, id="echo 0", python3="", git="", apt_get="echo no route >&2; exit 100"
    )

    done = install(path, "demo")

    assert done.returncode != 0
    assert "no route" in done.stderr
    assert "could not install bubblewrap" in done.stderr


def test_make_alone_says_what_it_can_do() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    targets = {line.split()[1] for line in done.stdout.splitlines()}
    assert targets == {
        "help",
        "learn",
        "demo",
        "test",
        "check",
        "bench",
        "docs",
        "clean",
        "demo-migrate",
        "demo-learn",
        "demo-blender",
        "e2e",
    }


@pytest.mark.parametrize("fails", ["check", "test", "demo-migrate", ""])
def test_the_pipeline_fails_with_any_of_its_parts_and_says_how_the_tests_ended(
    tmp_path: Path, fails: str
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    closing = "===== 3 passed, 1 skipped in 75.12s (0:01:15) ====="
    targets = (
        f"{name}:\n\t@echo '{closing}'; {'false' if name == fails else 'true'}\n"
        for name in ("check", "test", "demo-migrate")
    )
    (tmp_path / "Makefile").write_text("".join(targets))

    done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)

    good = not fails
    assert (done.returncode == 0) is good
    assert done.stdout.endswith(f"== result\n{closing}\n") is good
    assert ("== make demo" in done.stdout) is (fails in {"", "demo-migrate"})
