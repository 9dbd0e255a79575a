"""What a worker must not touch besides the patterns: scripts of checks, and what would stand in for a runner's modules."""

import pytest

from longwatch.migrate.checks.protection import protection
from longwatch.migrate.patterns import fold
from longwatch.migrate.settings import Check, MigrateSettings, Repository, WorkerSettings

TREE = (
    "tools/check.py",
    "run_tests.py",
    "tests/run.sh",
    "tests/test_b.py",
    "src/queue.py",
    "tests/test_a.py",
    "platform/__init__.py",
    "shop/a.py",
)


def matches(path: str, *argv: str, cwd: str = ".") -> bool:
    settings = MigrateSettings(
        kind="migrate",
        repository=Repository(branch="main"),
        worker=WorkerSettings(adapter="command", argv=("x",)),
    )
    rule = protection(settings, (Check(name="tests", argv=argv or ("pytest",), cwd=cwd),), TREE)
    return rule.matches(fold(path))


@pytest.mark.guarantee("M14", "M16")
@pytest.mark.parametrize(
    "path",
    [
        *(
            "unittest.py",
            "pytest.py",
            "_pytest/__init__.py",
            "json.py",
            "traceback/__init__.py",
            "UNITTEST.PY",
        ),
        *("tools/unittest.py", "tools/difflib.py", "tools/check.py"),
        *("pytest.toml", ".pytest.toml", "shop/__pycache__/a.cpython-311.pyc", "a.pyc", "venv/bin/pytest"),
        *(
            "evil-1.0.dist-info/entry_points.txt",
            "src/evil.egg-info/entry_points.txt",
            "node_modules/chai/index.js",
        ),
    ],
)
def test_what_would_stand_in_for_a_runner_is_protected(path: str) -> None:
    assert matches(path, "python3", "tools/check.py")


@pytest.mark.guarantee("M14", "M16")
def test_the_folder_that_a_check_runs_in_counts_too() -> None:
    assert matches("shop/unittest.py", "python3", "-m", "unittest", cwd="shop")
    assert not matches("shop/unittest.py", "python3", "-m", "unittest")


@pytest.mark.parametrize(
    "path",
    [
        *("shop/json.py", "src/json/codec.py", "test/__init__.py", "platform/__init__.py", "shop/b.py"),
        *("json/data.json", "tests/test_a.py"),
    ],
)
def test_other_names_are_free_and_a_projects_own_module_is_its_own(path: str) -> None:
    assert not matches(path, "python3", "tools/check.py")


@pytest.mark.guarantee("M14", "M16")
@pytest.mark.parametrize(
    ("path", "argv"),
    [
        ("run_tests.py", ("python3", "run_tests.py")),
        ("tests/run.sh", ("sh", "tests/run.sh", "tests/test_a.py")),
        ("tests/run.sh", ("./tests/run.sh",)),
    ],
)
def test_the_program_that_runs_the_tests_is_protected_whatever_its_name(
    path: str, argv: tuple[str, ...]
) -> None:
    assert matches(path, *argv)


@pytest.mark.parametrize(
    "argv",
    [
        ("pytest", "tests/test_a.py"),
        ("python3", "-m", "pytest", "tests/test_a.py"),
        ("sh", "tests/run.sh", "tests/test_a.py"),
        ("npm", "test", "--", "tests/test_a.py"),
    ],
)
def test_a_test_that_is_only_selected_is_free(argv: tuple[str, ...]) -> None:
    assert not matches("tests/test_a.py", *argv)
