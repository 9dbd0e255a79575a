"""What the worker must not touch in this repository: the patterns, the scripts that the checks run, and what would stand
in the place of their modules. Pure.
"""

import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from longwatch.migrate.checks.census import resolved
from longwatch.migrate.patterns import Patterns, fold, patterns_of_tests, protected_patterns
from longwatch.migrate.queue.authority import guarded
from longwatch.migrate.settings import Census, Check, MigrateSettings

_RUNNERS = frozenset({"pytest", "_pytest", "pluggy", "xdist", "nose2", "behave", "coverage", "hypothesis"})
# `test` is the usual name of a folder of tests, and nobody imports the standard library's.
_LOOKED_UP = frozenset(
    {"npm", "pnpm", "yarn", "bun", "make", "gmake", "ninja", "just", "tox", "nox", "cargo", "go"}
)
"""They find what to run in a file of their own, which is protected; what else they are told are tests."""
_IMPORTED = tuple(sorted((sys.stdlib_module_names | _RUNNERS) - {"test", "this", "antigravity"}))


def protection(
    settings: MigrateSettings,
    checks: Iterable[Check],
    tree: Iterable[str],
    queue: frozenset[str] = frozenset(),
) -> Patterns:
    """Return the protected patterns; a file of the tree that a check names is protected too.

    `queue` are files that belong to the queue and that no pattern names: the current card, the inventory's evidence.

    A test that a check only selects isn't; the program that runs the tests is, whatever its name looks like.

    So is a new Python module with the name of one that a test runner imports, in a folder that Python looks into first:
    a `unittest.py` beside the code would be the runner.
    """
    repository, known = settings.repository, frozenset(tree)
    profile = settings.policy_in_force()
    generators = (
        Check(name=f"handoff-{number}", argv=argv) for number, argv in enumerate(profile.queue.handoff)
    )
    checks = (*checks, *generators)
    named = _named(checks, known)
    tests = patterns_of_tests(repository)
    programs = {program for check in checks if (program := _program(check, known))}
    scripts = tuple(
        word for word, _ in named if word in known and (word in programs or not tests.matches(word))
    )
    policy = (*repository.protected, *profile.protected, *guarded(profile.queue))
    rule = protected_patterns(msgspec.structs.replace(repository, protected=(*policy, *scripts)))
    own = frozenset(fold(path) for path in queue)
    return rule.with_paths(_shadows({folder for _, folder in named}, known) | own)


def _program(check: Check, tree: frozenset[str]) -> str:
    """Return the script that is the check: the first file that is named to something that is no test runner."""
    if (
        PurePosixPath(check.argv[0]).name in _LOOKED_UP
        or resolved(Census.AUTO, check.argv) is not Census.AUTO
    ):
        return ""
    words = (str(PurePosixPath(check.cwd, word)) for word in check.argv)
    return next((word for word in words if word in tree), "")


def _named(checks: Iterable[Check], tree: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return files that checks name, and the folders that stand first on Python's path then: theirs, and the check's."""
    found = [("", ".")]
    for check in checks:
        words = (str(PurePosixPath(check.cwd, word)) for word in check.argv)
        found += [
            ("", check.cwd),
            *((word, str(PurePosixPath(word).parent)) for word in words if word in tree),
        ]
    return tuple(dict.fromkeys(found))


def _shadows(folders: Iterable[str], tree: frozenset[str]) -> frozenset[str]:
    """Return the paths that would shadow a module; a project's own module of such a name is its own business."""
    paths = (
        str(PurePosixPath(folder, f"{name}{form}"))
        for folder in folders
        for name in _IMPORTED
        for form in (".py", "/__init__.py")
    )
    return frozenset(fold(path) for path in paths if path not in tree)
