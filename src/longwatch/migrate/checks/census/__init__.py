"""The census: which tests a check ran and how each ended, read from what test runners print (M22, M23, K31). Pure.

A test program can print and write what it likes, so a census is only as honest as the tests' own code. What is refused
here is contradiction; code that reaches into the runner is found by `weakening.suspicious`.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from longwatch.migrate.checks.census import (
    ctest,
    golang,
    javascript,
    junit,
    pytest_report,
    rust,
    tap,
    unittest_report,
)
from longwatch.migrate.checks.census.instrument import (
    JUNIT_NAME,
    environment,
    instrumented,
    leaves_junit,
    resolved,
)
from longwatch.migrate.checks.census.tests import Counts, DisagreementError, Outcome, Tests
from longwatch.migrate.settings import Census

__all__ = [
    "JUNIT_NAME",
    "Changes",
    "Counts",
    "DisagreementError",
    "Outcome",
    "Tests",
    "compare",
    "count",
    "environment",
    "instrumented",
    "leaves_junit",
    "resolved",
]

_Parser = Callable[[Sequence[str]], Tests | None]
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

_PARSERS: Mapping[Census, tuple[_Parser, ...]] = {
    Census.PYTEST: (pytest_report.parse,),
    Census.UNITTEST: (unittest_report.parse,),
    Census.NODE: (tap.parse, tap.parse_node_spec),
    Census.JEST: (javascript.parse_jest,),
    Census.VITEST: (javascript.parse_vitest, tap.parse),
    Census.MOCHA: (javascript.parse_mocha, tap.parse),
    Census.CARGO: (rust.parse,),
    Census.GO: (golang.parse,),
    Census.TAP: (tap.parse,),
    Census.CTEST: (ctest.parse,),
    Census.NONE: (),
}
_MAX_LINE = 4000
"""Characters of a line that are read: no report has longer ones, and patterns stay quick."""
_AUTO: tuple[_Parser, ...] = tuple(
    dict.fromkeys(parser for parsers in _PARSERS.values() for parser in parsers)
)


def count(kind: Census, printed: str, document: bytes | None = None) -> Tests | None:
    """Return the tests of a run; `None` if nothing that a test runner says was recognised.

    `document` is a JUnit file and wins over what was printed, which must not contradict it: `DisagreementError`.
    """
    lines = [line[:_MAX_LINE].rstrip("\r") for line in _ANSI.sub("", printed).split("\n")]
    if document is not None and kind is not Census.NONE:
        return _from_junit(kind, document, lines)
    if kind is Census.AUTO:
        return _merged([tests for parser in _AUTO if (tests := parser(lines)) is not None])
    return next((tests for parser in _PARSERS[kind] if (tests := parser(lines)) is not None), None)


def _from_junit(kind: Census, document: bytes, lines: Sequence[str]) -> Tests | None:
    tests = junit.parse(document)
    summaries = pytest_report.summaries(lines)
    if kind is Census.PYTEST and not summaries:
        raise DisagreementError(
            "there is a JUnit file, and pytest printed no summary: its run did not end by itself; let no test and no code "
            "under test end the process"
        )
    if tests is not None and not junit.agrees(tests, summaries):
        raise DisagreementError(
            f"the JUnit file ({tests.counts}) and the printed summary contradict each other; run pytest once a check, "
            "and let no test print what looks like its report"
        )
    return tests


def _merged(found: list[Tests]) -> Tests | None:
    """Return what several runners of one check ran, ids marked by runner. Reports without ids can't be told from forged ones."""
    if len(found) < 2:
        return found[0] if found else None
    runners = " + ".join(tests.runner for tests in found)
    if any(tests.counts.ran and not tests.outcomes for tests in found):
        raise DisagreementError(
            f"the output looks like reports of {runners}, and not all of them name their tests; set the check's `census`, "
            "run one test runner a check, and let no test print what looks like a runner's report"
        )
    outcomes = {f"{tests.runner}: {name}": ended for tests in found for name, ended in tests.outcomes.items()}
    return Tests(runner=runners, counts=sum((tests.counts for tests in found), Counts()), outcomes=outcomes)


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests after a change differ from those before it. Ids, sorted."""

    deleted: tuple[str, ...] = ()
    newly_skipped: tuple[str, ...] = ()
    newly_failing: tuple[str, ...] = ()
    """They passed before; a new test that fails isn't here."""
    new: tuple[str, ...] = ()
    fewer: int = 0
    """Where ids are unknown: how many fewer tests ran."""

    @property
    def harmless(self) -> bool:
        """True if nothing that passed before is gone, skipped or broken."""
        return not (self.deleted or self.newly_skipped or self.newly_failing or self.fewer)


def compare(baseline: Tests, candidate: Tests) -> Changes:
    """Return what changed for the tests of the baseline, by id where both have ids, else by number."""
    before, after = baseline.outcomes, candidate.outcomes
    if not before or (not after and candidate.counts.ran):
        return Changes(fewer=max(baseline.counts.ran - candidate.counts.ran, 0))
    passed = {name for name, ended in before.items() if ended is Outcome.PASSED}
    ran = {name for name, ended in before.items() if ended is not Outcome.SKIPPED}
    broken = (Outcome.FAILED, Outcome.ERROR)
    return Changes(
        deleted=tuple(sorted(set(before) - set(after))),
        newly_skipped=tuple(sorted(name for name in ran if after.get(name) is Outcome.SKIPPED)),
        newly_failing=tuple(sorted(name for name in passed if after.get(name) in broken)),
        new=tuple(sorted(set(after) - set(before))),
    )
