"""Whether what the checks showed is enough. Pure: runs and findings come in, every reason against comes out.

Five rules, each named in its reasons (specification M22, M23, M25):
1. every check passes on the candidate;
2. what passed before still passes, and no test vanished or is skipped;
3. the old tests pass on the new code too, so a loosened test does not help;
4. new tests fail on the old code, so they are able to fail;
5. something that failed before passes now: the proof that the job was done.
"""

from collections.abc import Iterator, Mapping

import msgspec

from longwatch.migrate.checks.census import Tests, compare
from longwatch.migrate.checks.running import CheckRun
from longwatch.migrate.checks.weakening import Finding
from longwatch.migrate.queue.cards import Allowance, Card, NewTests

_NAMED = 20


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was observed about one candidate. Runs go by the name of their check."""

    candidate: Mapping[str, CheckRun]
    baseline: Mapping[str, CheckRun]
    old_tests: Mapping[str, CheckRun] | None = None
    """The candidate with the baseline's test files; `None` if no existing test file was changed."""
    new_tests: Mapping[str, CheckRun] | None = None
    """The baseline with the candidate's test files; `None` if no test file was changed or added."""
    findings: tuple[Finding, ...] = ()
    fails_before: frozenset[str] = frozenset()
    """Names of checks that must fail on the baseline."""
    undelivered: tuple[str, ...] = ()
    """What was declared about the source system and is not what was seen."""
    unchanged: bool = False
    """The candidate is the baseline: the worker says that nothing has to change."""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """Every reason against, and the names of what failed."""

    reasons: tuple[str, ...]
    failing: tuple[str, ...]


def rule(evidence: Evidence, card: Card) -> Ruling:
    """Return the ruling; an empty list of reasons means that the candidate is verified."""
    passed = tuple(_failed_checks(evidence.candidate))
    reasons = (*passed, *evidence.undelivered) or (
        *_lost_tests(evidence, card),
        *_weakened(evidence.findings, card),
        *_old_tests_fail(evidence, card),
        *_tests_that_cannot_fail(evidence),
        *_not_failing_before(evidence),
        *_nothing_observed(evidence, card),
    )
    return Ruling(reasons=tuple(dict.fromkeys(reasons)), failing=_failing(evidence))


def _failed_checks(runs: Mapping[str, CheckRun]) -> Iterator[str]:
    for name, run in runs.items():
        if not run.passed:
            yield f"check {name} failed: {run.reason}. Log: {run.log}"


def _lost_tests(evidence: Evidence, card: Card) -> Iterator[str]:
    for name, run in evidence.candidate.items():
        before = evidence.baseline.get(name)
        if before is None or before.tests is None or run.tests is None:
            continue
        changes = compare(before.tests, run.tests)
        if changes.deleted and Allowance.DELETE_TESTS not in card.allow:
            yield f"{name}: deleted tests: {_listed(changes.deleted)}"
        if changes.newly_skipped and Allowance.SKIP_TESTS not in card.allow:
            yield f"{name}: skipped tests: {_listed(changes.newly_skipped)}"
        if changes.fewer and Allowance.DELETE_TESTS not in card.allow:
            yield f"{name}: {changes.fewer} fewer tests ran than before the change"
        if changes.newly_failing:
            yield f"{name}: tests that passed before fail now: {_listed(changes.newly_failing)}"


def _weakened(findings: tuple[Finding, ...], card: Card) -> Iterator[str]:
    for finding in findings:
        if finding.allowed_by not in card.allow:
            yield f"{finding.path}: {finding.text}"


def _old_tests_fail(evidence: Evidence, card: Card) -> Iterator[str]:
    if evidence.old_tests is None or Allowance.CHANGE_TESTS in card.allow:
        return
    for name, run in evidence.old_tests.items():
        broken = _broken(evidence.baseline.get(name), run)
        if broken:
            yield f"{name}: tests in the form they had before the change fail on the changed code: {broken}"


def _broken(before: CheckRun | None, run: CheckRun) -> str:
    """Say what is worse than before: by test where their ids are known, else by the whole check or by number."""
    tests = None if before is None else before.tests
    if tests is None or run.tests is None:
        return "" if run.passed or (before is not None and not before.passed) else run.reason
    if tests.outcomes and run.tests.outcomes:
        changes = compare(tests, run.tests)
        return _listed((*changes.newly_failing, *changes.deleted))
    more = _bad_count(run.tests) - _bad_count(tests)
    return f"{more} more fail: {run.reason}" if more > 0 else ""


def _bad_count(tests: Tests) -> int:
    return tests.counts.failed + tests.counts.errors


def _tests_that_cannot_fail(evidence: Evidence) -> Iterator[str]:
    if evidence.new_tests and all(run.passed for run in evidence.new_tests.values()):
        yield "the new or changed tests pass on the code before the change too, so they prove nothing"


def _not_failing_before(evidence: Evidence) -> Iterator[str]:
    for name in sorted(evidence.fails_before):
        run = evidence.baseline.get(name)
        if run is not None and run.passed and not evidence.unchanged:
            yield f"check {name} has fails_before and passes on the tree before the change: it does not observe this job"


def _nothing_observed(evidence: Evidence, card: Card) -> Iterator[str]:
    if evidence.unchanged or card.tests is NewTests.OPTIONAL or evidence.new_tests:
        return
    if not any(_improved(run, evidence.baseline.get(name)) for name, run in evidence.candidate.items()):
        yield (
            "nothing that failed before the change passes now, so nothing shows that the job was done: bring a test that "
            "fails without the change (or let the card say `tests: optional`)"
        )


def _improved(run: CheckRun, before: CheckRun | None) -> bool:
    if before is None:
        return False
    if not before.passed:
        return True
    if before.tests is None or run.tests is None:
        return False
    return bool(_passing(run.tests) - _passing(before.tests))


def _passing(tests: Tests) -> frozenset[str]:
    return frozenset(name for name, outcome in tests.outcomes.items() if outcome == "passed")


def _failing(evidence: Evidence) -> tuple[str, ...]:
    found = []
    for name, run in evidence.candidate.items():
        if not run.passed:
            tests = sorted(_bad(run.tests)) if run.tests is not None else []
            found += [name, *(f"{name}: {test}" for test in tests[:_NAMED])]
    return tuple(found)


def _bad(tests: Tests) -> frozenset[str]:
    return frozenset(name for name, outcome in tests.outcomes.items() if outcome in {"failed", "error"})


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
