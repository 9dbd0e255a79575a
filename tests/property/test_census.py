import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.migrate.checks.census import Counts, DisagreementError, Outcome, Tests, compare, count
from longwatch.migrate.settings import Census

FRAGMENTS = st.sampled_from(
    [
        *(
            "ok 1 - a",
            "not ok 2 - b # SKIP",
            "1..2",
            "TAP version 13",
            "# pass 1",
            "# suites 0",
            "# tests 1",
            "  ---",
            "  ...",
        ),
        *(
            "running 1 test",
            "test a ... ok",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        ),
        *(
            "a.py::b PASSED",
            "1 passed in 0.1s",
            "=== short test summary info ===",
            "PASSED a.py::b",
            "SKIPPED [3] a",
        ),
        *(
            "test_a (m.K) ... ok",
            "Ran 1 test in 0.1s",
            "OK",
            "FAILED (failures=3)",
            "--- PASS: TestA (0.00s)",
            "ok  \tm\t0.1s",
        ),
        *(
            "PASS a.js",
            "  ✓ a",
            "Tests: 1 passed, 1 total",
            "      Tests  1 passed (1)",
            " ✓ a > b 1ms",
            "  1 passing (1ms)",
        ),
        *(
            "1/1 Test #1: a ...   Passed  0.1 sec",
            "100% tests passed, 0 tests failed out of 1",
            '{"Action":"pass"}',
            "\u2139 tests 1",
        ),
    ]
)
LINES = st.lists(st.one_of(FRAGMENTS, st.text(max_size=30)), max_size=25).map("\n".join)


@given(kind=st.sampled_from(Census), printed=LINES)
@pytest.mark.guarantee("M23")
def test_any_output_is_counted_or_refused_and_ids_agree_with_counts(kind: Census, printed: str) -> None:
    try:
        tests = count(kind, printed)
    except DisagreementError:
        return
    if tests is not None:
        assert len(tests.outcomes) <= tests.counts.ran + tests.counts.skipped
        assert min(tests.counts.passed, tests.counts.failed, tests.counts.skipped, tests.counts.errors) >= 0


@given(
    document=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: f"<testsuite>{text}</testsuite>".encode()),
    )
)
def test_any_document_is_counted_or_refused(document: bytes) -> None:
    try:
        tests = count(Census.AUTO, "", document)
    except DisagreementError:
        return
    assert tests is None or tests.runner == "junit"


OUTCOMES = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(Outcome), max_size=8)


def census_of(outcomes: dict[str, Outcome]) -> Tests:
    number = {ended: sum(other is ended for other in outcomes.values()) for ended in Outcome}
    counts = Counts(
        number[Outcome.PASSED], number[Outcome.FAILED], number[Outcome.SKIPPED], number[Outcome.ERROR]
    )
    return Tests(runner="x", counts=counts, outcomes=outcomes)


@given(before=OUTCOMES.filter(bool), after=OUTCOMES)
@pytest.mark.guarantee("M22", "M23")
def test_a_harmless_change_keeps_every_test_that_passed(
    before: dict[str, Outcome], after: dict[str, Outcome]
) -> None:
    changes = compare(census_of(before), census_of(after))
    if after and changes.harmless:
        assert set(before) <= set(after)
        assert all(after[name] is Outcome.PASSED for name, ended in before.items() if ended is Outcome.PASSED)


@given(before=OUTCOMES.filter(bool), name=st.sampled_from("abcdefgh"))
@pytest.mark.guarantee("M22")
def test_one_deleted_test_is_always_noticed(before: dict[str, Outcome], name: str) -> None:
    after = {other: ended for other, ended in before.items() if other != name}
    if name in before:
        assert not compare(census_of(before), census_of(after)).harmless or not before
