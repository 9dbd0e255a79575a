"""The ruling on one candidate, with each way to get past it tried as values."""

from collections.abc import Mapping

import pytest

from longwatch.kernel.child import ProcessRecord
from longwatch.migrate.checks.census import Counts, Outcome, Tests
from longwatch.migrate.checks.judgement import Evidence, rule
from longwatch.migrate.checks.running import CheckRun
from longwatch.migrate.checks.weakening import Finding, Kind
from longwatch.migrate.queue.cards import Allowance, Card, NewTests

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED


def ran(*, name: str = "tests", kind: str = "test", **outcomes: Outcome) -> CheckRun:
    """A run whose tests ended like this; it passed if none failed."""
    told = list(outcomes.values())
    counts = Counts(told.count(PASSED), told.count(FAILED), told.count(SKIPPED))
    return check(not counts.failed, Tests(runner="x", counts=counts, outcomes=outcomes), name=name, kind=kind)


def counted(passed: int, failed: int = 0) -> CheckRun:
    """A run whose runner names no test."""
    return check(not failed, Tests(runner="x", counts=Counts(passed, failed)))


def check(passed: bool, tests: Tests | None, *, name: str = "tests", kind: str = "test") -> CheckRun:
    record = ProcessRecord(
        argv=("x",),
        cwd="/",
        phase="check",
        started_at="",
        ended_at="",
        duration_s=0.0,
        cpu_s=0.0,
        peak_memory_bytes=0,
        exit_code=0 if passed else 1,
        signal=None,
        limit=None,
        limit_detail="",
        log="log.txt",
        log_sha256="",
        log_bytes=0,
        first_output_s=None,
        left_behind=0,
    )
    reason = "" if passed else "exit code 1"
    return CheckRun(
        name=name, kind=kind, argv=("x",), passed=passed, reason=reason, tests=tests, record=record
    )


def card(*allow: Allowance, tests: NewTests = NewTests.REQUIRED) -> Card:
    return Card(id="a", title="A", allow=allow, tests=tests, body="", path="a.md", digest="0" * 64)


def reasons(
    candidate: CheckRun,
    baseline: CheckRun,
    *,
    old: CheckRun | None = None,
    new: CheckRun | None = None,
    findings: tuple[Finding, ...] = (),
    on: Card | None = None,
    unchanged: bool = False,
    fails_before: bool = False,
) -> str:
    def runs(run: CheckRun | None) -> Mapping[str, CheckRun] | None:
        return None if run is None else {run.name: run}

    evidence = Evidence(
        candidate={candidate.name: candidate},
        baseline={baseline.name: baseline},
        old_tests=runs(old),
        new_tests=runs(new),
        findings=findings,
        unchanged=unchanged,
        fails_before=frozenset({candidate.name}) if fails_before else frozenset(),
    )
    return "; ".join(rule(evidence, on or card()).reasons)


GOOD = ran(a=PASSED, b=PASSED)
BEFORE = ran(a=PASSED)
NEW_FAILS = ran(a=PASSED, b=FAILED)


def test_honest_work_is_verified() -> None:
    assert reasons(GOOD, BEFORE, new=NEW_FAILS) == ""
    assert reasons(GOOD, ran(a=PASSED, b=FAILED)) == ""
    assert reasons(counted(3), counted(2), new=counted(2, 1)) == ""
    assert reasons(BEFORE, BEFORE, on=card(tests=NewTests.OPTIONAL)) == ""
    assert reasons(BEFORE, BEFORE, unchanged=True) == ""


@pytest.mark.guarantee("M22", "M23")
def test_a_failed_check_is_the_only_reason() -> None:
    assert "check tests failed: exit code 1" in reasons(ran(a=FAILED), BEFORE)


@pytest.mark.guarantee("M22", "M23")
@pytest.mark.parametrize(
    ("candidate", "baseline", "why", "allowed"),
    [
        (ran(b=PASSED), BEFORE, "deleted tests: a", Allowance.DELETE_TESTS),
        (ran(a=SKIPPED, b=PASSED), BEFORE, "skipped tests: a", Allowance.SKIP_TESTS),
        (counted(2), counted(3), "1 fewer tests", Allowance.DELETE_TESTS),
        (counted(2), ran(a=PASSED, b=PASSED, c=PASSED), "1 fewer tests", Allowance.DELETE_TESTS),
    ],
)
def test_a_lost_test_is_named_unless_the_card_allows_it(
    candidate: CheckRun, baseline: CheckRun, why: str, allowed: Allowance
) -> None:
    assert why in reasons(candidate, baseline, new=NEW_FAILS)
    assert reasons(candidate, baseline, new=NEW_FAILS, on=card(allowed)) == ""


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(
    ("old", "before", "why"),
    [
        (ran(a=FAILED), BEFORE, "a"),
        (ran(b=PASSED), BEFORE, "a"),
        (counted(2, 1), counted(3), "1 more fail"),
        (counted(1, 3), counted(2, 2), "1 more fail"),
        (counted(2, 1), ran(a=PASSED, b=PASSED, c=PASSED), "1 more fail"),
        (check(False, None), check(True, None), "exit code 1"),
        (check(False, None), BEFORE, "exit code 1"),
    ],
)
def test_loosened_tests_do_not_help_whatever_the_runner_prints(
    old: CheckRun, before: CheckRun, why: str
) -> None:
    said = reasons(GOOD, before, old=old, new=NEW_FAILS, on=card(Allowance.DELETE_TESTS))
    assert "in the form they had before the change fail on the changed code" in said
    assert why in said
    allowed = card(Allowance.DELETE_TESTS, Allowance.CHANGE_TESTS)
    assert "in the form they had" not in reasons(GOOD, before, old=old, new=NEW_FAILS, on=allowed)


@pytest.mark.guarantee("M22")
@pytest.mark.parametrize(
    ("old", "before"),
    [
        (ran(a=PASSED, b=FAILED), ran(a=PASSED, b=FAILED)),
        (counted(2, 1), counted(2, 1)),
        (check(False, None), check(False, None)),
    ],
)
def test_what_failed_before_is_not_held_against_the_change(old: CheckRun, before: CheckRun) -> None:
    assert "in the form they had" not in reasons(GOOD, before, old=old, new=NEW_FAILS)


@pytest.mark.guarantee("M22")
def test_work_that_no_test_notices_is_refused() -> None:
    assert "they prove nothing" in reasons(GOOD, BEFORE, new=GOOD)
    assert "nothing shows that the job was done" in reasons(BEFORE, BEFORE)
    assert "does not observe this job" in reasons(GOOD, BEFORE, new=NEW_FAILS, fails_before=True)


@pytest.mark.guarantee("M22")
def test_a_finding_counts_unless_its_own_allowance_is_there() -> None:
    finding = Finding(Kind.LOST_ASSERTION, "test_a.py", "test_a", "assert x == 1")
    others = [one for one in Allowance if one is not finding.allowed_by]
    said = reasons(GOOD, BEFORE, new=NEW_FAILS, findings=(finding,), on=card(*others))
    assert "test_a.py: test_a: lost assertion: assert x == 1" in said
    assert reasons(GOOD, BEFORE, new=NEW_FAILS, findings=(finding,), on=card(finding.allowed_by)) == ""
