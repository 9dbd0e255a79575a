"""Detection reads tracked files and suggests checks that the guard lets through."""

import json
import os
from pathlib import Path

import pytest

from longwatch.migrate.commands.refusals import refusals
from longwatch.migrate.detect import Detected, Repository, detect
from longwatch.migrate.settings import Census, check_problems


def program(folder: Path, *names: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


def detected(root: Path, files: dict[str, str], *programs: str) -> Detected:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    bin_folder = program(root.parent / "bin", *programs)
    return detect(Repository(root=root, files=frozenset(files), search_path=bin_folder))


def commands(found: Detected) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.check.kind, one.check.argv) for one in found.found]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "repository").mkdir()
    return tmp_path / "repository"


class View:
    """The guard's view of a repository, on a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def is_file(self, path: str) -> bool:
        return (self.root / path).is_file()

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def leads_outside(self, path: str) -> bool:
        return not (self.root / path).resolve().is_relative_to(self.root.resolve())

    def package_scripts(self, folder: str) -> frozenset[str]:
        return frozenset(json.loads((self.root / folder / "package.json").read_text())["scripts"])


@pytest.mark.parametrize(
    ("files", "because"),
    [
        ({"pytest.ini": "[pytest]\n"}, "pytest.ini"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pyproject.toml"),
        ({"setup.cfg": "[tool:pytest]\n"}, "setup.cfg"),
        ({"tests/conftest.py": ""}, "tests/conftest.py"),
        ({"tests/test_a.py": "def test_a(): pass\n"}, "tests/test_a.py"),
        ({"src/a_test.py": ""}, "src/a_test.py"),
    ],
)
def test_pytest_is_found_by_its_traces(root: Path, files: dict[str, str], because: str) -> None:
    found = detected(root, files, "pytest")
    assert commands(found) == [("test", ("pytest", "-q"))]
    assert found.found[0].because == because
    assert found.found[0].check.census is Census.PYTEST
    assert found.missing == ()


def test_a_configured_pytest_that_is_not_here_is_named_as_missing(root: Path) -> None:
    found = detected(root, {"pytest.ini": ""})
    assert commands(found) == [("test", ("pytest", "-q"))]
    assert found.missing == ("pytest",)


def test_a_virtual_environment_is_preferred_and_shared(root: Path) -> None:
    program(root / ".venv" / "bin", "pytest")
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    found = detected(root, {"test_a.py": ""}, "pytest")
    assert commands(found) == [("test", (".venv/bin/pytest", "-q"))]
    assert found.share == (".venv",)


def test_a_linked_or_tracked_folder_is_not_shared(root: Path, tmp_path: Path) -> None:
    program(tmp_path / "elsewhere" / "bin", "pytest")
    (tmp_path / "elsewhere" / "pyvenv.cfg").write_text("")
    (root / ".venv").symlink_to(tmp_path / "elsewhere")
    found = detected(root, {"node_modules/a/index.js": "", "test_a.py": ""}, "pytest")
    assert found.share == ()
    assert commands(found) == [("test", ("pytest", "-q"))]


def test_unittest_is_found_where_pytest_is_not(root: Path) -> None:
    found = detected(root, {"tests/test_a.py": "import unittest\n"}, "python3")
    assert commands(found) == [("test", ("python3", "-m", "unittest", "discover", "-s", "tests"))]
    assert commands(detected(root, {"test_a.py": "def test_a(): pass\n"}, "python3")) == []


@pytest.mark.parametrize(
    ("lock", "manager"),
    [("package-lock.json", "npm"), ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn")],
)
def test_the_scripts_of_a_package_are_found(root: Path, lock: str, manager: str) -> None:
    scripts = {
        "test": "node --test",
        "build": "tsc",
        "lint": "eslint .",
        "typecheck": "tsc",
        "start": "node .",
    }
    found = detected(root, {"package.json": json.dumps({"scripts": scripts}), lock: ""}, manager)
    assert commands(found) == [
        ("test", (manager, "test")),
        ("build", (manager, "run", "build")),
        ("lint", (manager, "run", "lint")),
        ("typecheck", (manager, "run", "typecheck")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1", "lint": " "}}',
        '{"scripts": [1]}',
        "{",
        "",
        "[]",
        '{"name": "x"}',
    ],
)
def test_a_package_without_real_scripts_suggests_nothing(root: Path, text: str) -> None:
    assert commands(detected(root, {"package.json": text}, "npm")) == []


def test_node_modules_are_shared_and_missed(root: Path) -> None:
    assert "There is no node_modules" in detected(root, {"package.json": "{}"}).hints[0]
    (root / "node_modules").mkdir()
    found = detected(root, {"package.json": "{}"})
    assert found.share == ("node_modules",)
    assert found.hints == ()


def test_cargo_and_go_are_found(root: Path) -> None:
    found = detected(root, {"Cargo.toml": "", "go.mod": ""}, "cargo")
    assert commands(found) == [
        ("test", ("cargo", "test", "--offline")),
        ("test", ("go", "test", "./...")),
        ("lint", ("go", "vet", "./...")),
    ]
    assert found.missing == ("go",)


MAKEFILE = """\
test := no rule
lint ::= no rule
.PHONY: test lint
check build: deps
\tmake test:
lint:: a
typecheck-all:
"""


def test_the_targets_of_a_makefile_speak_for_what_nothing_else_covers(root: Path) -> None:
    alone = detected(root, {"Makefile": MAKEFILE}, "make")
    assert commands(alone) == [
        ("test", ("make", "check")),
        ("build", ("make", "build")),
        ("lint", ("make", "lint")),
    ]
    beside = detected(root, {"Makefile": MAKEFILE, "go.mod": ""}, "make", "go")
    assert ("build", ("make", "build")) in commands(beside)
    assert ("test", ("make", "check")) not in commands(beside)


def test_cmake_gets_a_hint(root: Path) -> None:
    assert "ctest" in detected(root, {"CMakeLists.txt": "enable_testing()\n"}).hints[0]


def test_odd_files_are_survived(root: Path) -> None:
    os.mkfifo(root / "package.json")
    (root / "Makefile").mkdir()
    (root / "setup.cfg").symlink_to("/etc/passwd")
    (root / "tests").mkdir()
    (root / "tests" / "test_a.py").write_bytes(b"\xff\xfe unittest")
    files = frozenset({"package.json", "Makefile", "setup.cfg", "tests/test_a.py", "gone.py", "tox.ini"})
    found = detect(Repository(root=root, files=files, search_path=""))
    assert [one.check.name for one in found.found] == ["unittest"]


@pytest.mark.guarantee("M14")
def test_every_suggested_check_is_let_through_by_the_guard(root: Path) -> None:
    program(root / "venv" / "bin", "pytest")
    (root / "venv" / "pyvenv.cfg").write_text("")
    scripts = dict.fromkeys(("test", "build", "lint", "typecheck", "type-check"), "x")
    package = json.dumps({"scripts": scripts})
    files = {"test_a.py": "", "package.json": package, "Cargo.toml": "", "go.mod": "", "Makefile": MAKEFILE}
    suggestions = [*detected(root, files).found]
    (root / "venv" / "pyvenv.cfg").unlink()
    suggestions += detected(
        root, {"tests/test_a.py": "unittest", "yarn.lock": "", "package.json": package}
    ).found
    suggestions += detected(root, {"Makefile": MAKEFILE}).found
    suggestions += detected(root, {"pytest.ini": ""}).found
    assert len(suggestions) > 15
    for one in suggestions:
        assert list(check_problems("c", one.check)) == []
        assert refusals(one.check.argv, one.check.cwd, repository=View(root)) == (), one.check.argv
