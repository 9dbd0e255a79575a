"""Makes a test runner say the ids of its tests. Pure."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

from longwatch.migrate.settings import Census

JUNIT_NAME = "junit.xml"
# Without `--verbosity` a `-qq` would leave out the summary that the JUnit file is held against.
_PYTEST_ARGUMENTS = ("-rap", "--verbosity=0", "-p", "no:cacheprovider", "-o", "junit_family=xunit1")


class _Added(msgspec.Struct, frozen=True):
    runner: Census
    end: int
    """How many arguments name the runner."""


def instrumented(kind: Census, argv: tuple[str, ...], evidence: PurePosixPath) -> tuple[str, ...]:
    """Return the command line with what makes its ids known; unchanged where the runner stands behind another program.

    `evidence` is the folder, as the command sees it, that takes a JUnit file (`junit.xml`).
    """
    found = _recognised(argv)
    if found is None or kind not in {Census.AUTO, found.runner}:
        return argv
    head, rest = argv[: found.end], argv[found.end :]
    first = _FIRST.get(found.runner, ())
    chosen = any(argument.startswith(("--test-reporter", "--reporter")) for argument in rest)
    last = _last(found.runner, evidence)
    return (*head, *(() if chosen else first), *_before_rest(rest, last))


def resolved(kind: Census, argv: tuple[str, ...]) -> Census:
    """Return whose report to expect: what `kind` says, and for `auto` what the command line shows."""
    found = _recognised(argv)
    return found.runner if kind is Census.AUTO and found is not None else kind


def leaves_junit(kind: Census, argv: tuple[str, ...]) -> bool:
    """Return whether the instrumented command writes a JUnit file. Where it does not, one that lies there is a lie."""
    found = _recognised(argv)
    return found is not None and found.runner is Census.PYTEST and kind in {Census.AUTO, Census.PYTEST}


def environment(kind: Census, argv: tuple[str, ...]) -> Mapping[str, str]:
    """Return variables that make a pytest behind `make` or `tox` list its tests."""
    if kind in {Census.AUTO, Census.PYTEST} and _recognised(argv) is None:
        return {"PYTEST_ADDOPTS": "-rap"}
    return {}


_FIRST: Mapping[Census, tuple[str, ...]] = {
    Census.NODE: ("--test-reporter=tap",),
    Census.GO: ("-v",),
    Census.UNITTEST: ("-v",),
    Census.VITEST: ("--reporter=verbose",),
}


def _last(runner: Census, evidence: PurePosixPath) -> tuple[str, ...]:
    if runner is Census.PYTEST:
        return (*_PYTEST_ARGUMENTS, f"--junitxml={evidence / JUNIT_NAME}")
    return ("--verbose",) if runner is Census.JEST else ()


def _before_rest(arguments: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return (*arguments[:at], *more, *arguments[at:])


_BY_NAME = {
    "pytest": Census.PYTEST,
    "py.test": Census.PYTEST,
    "jest": Census.JEST,
    "mocha": Census.MOCHA,
    "ctest": Census.CTEST,
}
_BY_TWO = {
    ("node", "--test"): Census.NODE,
    ("nodejs", "--test"): Census.NODE,
    ("go", "test"): Census.GO,
    ("cargo", "test"): Census.CARGO,
    ("vitest", "run"): Census.VITEST,
}


def _recognised(argv: tuple[str, ...]) -> _Added | None:
    name = argv[0].rpartition("/")[2]
    if name in _BY_NAME:
        return _Added(_BY_NAME[name], 1)
    if (name, *argv[1:2]) in _BY_TWO:
        return _Added(_BY_TWO[name, argv[1]], 2)
    if name.startswith("python") and argv[1:2] == ("-m",) and argv[2:3] in {("pytest",), ("unittest",)}:
        discover = argv[2:4] == ("unittest", "discover")
        return _Added(Census(argv[2]), 4 if discover else 3)
    return None
