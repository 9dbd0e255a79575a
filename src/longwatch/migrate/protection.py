"""What the worker must not touch in this repository: the patterns, and the scripts that the checks run. Pure."""

from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from longwatch.migrate.patterns import Patterns, patterns_of_tests, protected_patterns
from longwatch.migrate.settings import Check, MigrateSettings


def protection(settings: MigrateSettings, checks: Iterable[Check], tree: Iterable[str]) -> Patterns:
    """Return the protected patterns; a file of the tree that a check names is protected too, unless it is a test."""
    repository = settings.repository
    scripts = _scripts(checks, frozenset(tree), patterns_of_tests(repository))
    return protected_patterns(
        msgspec.structs.replace(repository, protected=(*repository.protected, *scripts))
    )


def _scripts(checks: Iterable[Check], tree: frozenset[str], tests: Patterns) -> tuple[str, ...]:
    words = (str(PurePosixPath(check.cwd, word)) for check in checks for word in check.argv)
    return tuple(dict.fromkeys(word for word in words if word in tree and not tests.matches(word)))
