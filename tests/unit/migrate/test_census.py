import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from longwatch.migrate.checks.census import (
    JUNIT_NAME,
    Changes,
    Counts,
    DisagreementError,
    Outcome,
    Tests,
    compare,
    count,
    environment,
    instrumented,
    leaves_junit,
    resolved,
)
from longwatch.migrate.settings import Census

RECORDED = Path(__file__).parents[2] / "recorded" / "census"
PASSED, FAILED, SKIPPED, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED, Outcome.ERROR


def recorded(name: str, kind: Census = Census.AUTO) -> Tests:
    file = RECORDED / name
    document = file.read_bytes() if file.suffix == ".xml" else None
    tests = count(kind, "" if document else file.read_text(encoding="utf-8"), document)
    assert tests is not None
    return tests


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("pytest-rap.txt", Census.AUTO, Counts(11, 4, 4, 2)),
        ("pytest-verbose.txt", Census.AUTO, Counts(11, 4, 4, 2)),
        ("pytest-quiet.txt", Census.PYTEST, Counts(11, 4, 4, 2)),
        ("pytest-none.txt", Census.AUTO, Counts()),
        ("pytest-junit.xml", Census.AUTO, Counts(10, 4, 4, 2)),
        ("unittest-verbose.txt", Census.AUTO, Counts(2, 2, 2, 1)),
        ("unittest.txt", Census.AUTO, Counts(2, 2, 2, 1)),
        ("unittest-none.txt", Census.AUTO, Counts()),
        ("node-tap.txt", Census.AUTO, Counts(5, 2, 3)),
        ("node-spec.txt", Census.NODE, Counts(5, 2, 3)),
        ("node-junit.xml", Census.AUTO, Counts(4, 2, 3)),
        ("cargo.txt", Census.AUTO, Counts(4, 1, 1)),
        ("ctest.txt", Census.AUTO, Counts(1, 1, 2, 2)),
        ("jest-verbose.txt", Census.AUTO, Counts(3, 1, 2)),
        ("vitest-verbose.txt", Census.VITEST, Counts(3, 1, 2)),
        ("vitest.txt", Census.VITEST, Counts(3, 1, 2)),
        ("vitest-tap.txt", Census.VITEST, Counts(3, 1, 2)),
        ("mocha.txt", Census.AUTO, Counts(3, 1, 2)),
        ("mocha-tap.txt", Census.TAP, Counts(3, 1, 2)),
    ],
)
def test_a_recorded_report_is_counted(name: str, kind: Census, expected: Counts) -> None:
    assert recorded(name, kind).counts == expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        (
            "pytest-junit.xml",
            Census.AUTO,
            {"sub/test_two.py::TestX::TestY::test_in": PASSED, "test_a.py::test_tear": ERROR},
        ),
        ("pytest-rap.txt", Census.AUTO, {"test_a.py::test_p[a b]": PASSED, "test_a.py::U::test_f": FAILED}),
        (
            "pytest-verbose.txt",
            Census.AUTO,
            {"test_a.py::test_p[x::y]": PASSED, "test_a.py::test_skip": SKIPPED},
        ),
        ("unittest-verbose.txt", Census.AUTO, {"test_a.U.test_doc": PASSED, "test_a.U.test_us": FAILED}),
        ("node-tap.txt", Census.AUTO, {"suite > deep > deepest": PASSED, "with sub > sub b": SKIPPED}),
        (
            "cargo.txt",
            Census.AUTO,
            {"rs src/lib.rs tests::bad": FAILED, "rs doc src/lib.rs - add (line 1)": PASSED},
        ),
        ("ctest.txt", Census.AUTO, {"four": ERROR, "three": SKIPPED, "one": PASSED}),
        (
            "jest-verbose.txt",
            Census.AUTO,
            {"./a.test.js > suite > ok one": PASSED, "./a.test.js > suite > bad": FAILED},
        ),
        (
            "vitest-verbose.txt",
            Census.VITEST,
            {"a.test.js > suite > deep > in": PASSED, "a.test.js > suite > sk": SKIPPED},
        ),
        ("mocha-tap.txt", Census.TAP, {"suite bad": FAILED, "suite deep in": PASSED}),
    ],
)
def test_a_recorded_report_names_its_tests(name: str, kind: Census, expected: dict[str, Outcome]) -> None:
    assert expected.items() <= recorded(name, kind).outcomes.items()


def test_colours_and_carriage_returns_change_nothing() -> None:
    text = "\x1b[32m\x1b[1m===== 3 passed\x1b[0m\x1b[32m in 0.01s =====\x1b[0m\r\n\x1b]8;;file://x\x07link\x1b]8;;\x07"
    tests = count(Census.AUTO, text)
    assert tests is not None
    assert tests.counts == Counts(passed=3)


@pytest.mark.parametrize(
    "text", ["", "hello\n", "3 passed\n", "5 files reformatted in 0.10s\n", "ok\n", "All checks passed!\n"]
)
def test_what_no_test_runner_says_is_not_counted(text: str) -> None:
    assert count(Census.AUTO, text) is None


def test_a_check_without_tests_is_not_counted_at_all() -> None:
    assert count(Census.NONE, "3 passed in 0.01s\n", b"<testsuite/>") is None


GO = """=== RUN   TestA
--- PASS: TestA (0.00s)
=== RUN   TestB
=== RUN   TestB/sub_case
    b_test.go:9: boom
--- FAIL: TestB (0.00s)
    --- FAIL: TestB/sub_case (0.00s)
=== RUN   TestC
    c_test.go:3: not here
--- SKIP: TestC (0.00s)
FAIL
FAIL\texample.com/m/a\t0.002s
?   \texample.com/m/none\t[no test files]
ok  \texample.com/m/empty\t0.001s [no tests to run]
FAIL\texample.com/m/broken [build failed]
FAIL
"""


def test_go_is_counted_by_package() -> None:
    tests = count(Census.AUTO, GO)
    assert tests is not None
    assert tests.outcomes == {
        "example.com/m/a TestA": PASSED,
        "example.com/m/a TestB": FAILED,
        "example.com/m/a TestB/sub_case": FAILED,
        "example.com/m/a TestC": SKIPPED,
        "example.com/m/broken [build failed]": ERROR,
    }


def test_go_without_names_counts_packages_and_not_those_without_tests() -> None:
    tests = count(
        Census.GO,
        "ok  \tm/a\t0.1s\nok  \tm/b\t(cached)\nok  \tm/c\t0.1s [no tests to run]\n?   \tm/d\t[no test files]\n",
    )
    assert tests is not None
    assert tests.counts == Counts(passed=2)
    empty = count(Census.GO, "?   \tm/d\t[no test files]\n")
    assert empty is not None
    assert empty.counts.ran == 0


def test_go_as_json_is_counted() -> None:
    lines = [
        '{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"m/a","Test":"TestA"}',
        '{"Action":"output","Package":"m/a","Test":"TestA","Output":"--- PASS: TestZ (0.00s)\\n"}',
        '{"Action":"pass","Package":"m/a","Test":"TestA","Elapsed":0}',
        '{"Action":"pass","Package":"m/a","Elapsed":0.1}',
        '{"Action":"fail","Package":"m/b","Elapsed":0.1}',
        '{"Action":broken',
    ]
    tests = count(Census.GO, "\n".join(lines))
    assert tests is not None
    assert tests.outcomes == {"m/a TestA": PASSED, "m/b (package)": ERROR}


# What a test prints to be taken for a report.

FORGED = {
    "tap, one result too many": (Census.TAP, "TAP version 13\n1..1\nok 99 - fake\nok 1 - real\n"),
    "tap, cut": (Census.TAP, "TAP version 13\n1..3\nok 1 - a\n"),
    "tap, numbers": (Census.TAP, "1..2\nok 1 - a\nok 1 - a\n"),
    "tap, totals": (Census.TAP, "1..1\nok 1 - a\n# pass 0\n# fail 1\n"),
    "cargo, second result": (
        Census.CARGO,
        "running 1 test\ntest a ... ok\n\ntest result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s\n",
    ),
    "cargo, cut": (Census.CARGO, "running 2 tests\ntest a ... ok\n"),
    "cargo, no heading": (
        Census.CARGO,
        "test result: ok. 9 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s\n",
    ),
    "pytest, two summaries": (Census.PYTEST, "99 passed in 0.01s\n1 failed in 0.01s\n"),
    "pytest, listing": (
        Census.PYTEST,
        "a.py::test_a PASSED [ 50%]\na.py::test_b PASSED [100%]\n===== 1 passed in 0.01s =====\n",
    ),
    "unittest, listing": (
        Census.UNITTEST,
        "test_a (m.K.test_a) ... ok\ntest_b (m.K.test_b) ... ok\n\nRan 1 test in 0.001s\n\nOK\n",
    ),
    "unittest, two summaries": (
        Census.UNITTEST,
        "Ran 99 tests in 0.001s\n\nOK\n.\nRan 1 test in 0.001s\n\nOK\n",
    ),
    "vitest, two summaries": (
        Census.VITEST,
        "      Tests  9 passed (9)\n ✓ a.js > b 1ms\n      Tests  1 passed (1) \n      Tests  3 passed (3)\n",
    ),
    "mocha, summary": (Census.MOCHA, "  ✔ a\n\n  1 passing (1ms)\n\n  99 passing (1ms)\n"),
    "ctest": (
        Census.CTEST,
        "1/1 Test #1: a ....   Passed    0.00 sec\n\n0% tests passed, 1 tests failed out of 1\n",
    ),
    "go": (Census.GO, "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nok  \tm\t0.1s\n"),
    "go, ok with a failure": (Census.GO, "=== RUN   TestA\n--- FAIL: TestA (0.00s)\nok  \tm\t0.1s\n"),
    "auto, a second runner": (Census.AUTO, "Tests: 99 passed, 99 total\n1 passed in 0.01s\n"),
}


@pytest.mark.guarantee("M23", "K31")
@pytest.mark.parametrize("name", FORGED)
def test_a_report_that_contradicts_itself_is_refused(name: str) -> None:
    kind, text = FORGED[name]
    with pytest.raises(DisagreementError):
        count(kind, text)


@pytest.mark.guarantee("M23")
def test_a_forged_summary_before_a_listing_that_holds_is_ignored() -> None:
    text = (
        "a.py::test_a PASSED [100%]\n===== 99 passed in 0.01s =====\n"
        "===== short test summary info =====\nPASSED a.py::test_a\n===== 1 passed in 0.02s =====\n"
    )
    tests = count(Census.PYTEST, text)
    assert tests is not None
    assert tests.counts == Counts(passed=1)
    assert tests.outcomes == {"a.py::test_a": PASSED}


def test_a_line_torn_by_a_tests_output_costs_the_ids_only() -> None:
    tests = count(
        Census.UNITTEST,
        "test_a (m.K.test_a) ... torn\nok\ntest_b (m.K.test_b) ... hello\n\nRan 2 tests in 0.0s\n\nOK\n",
    )
    assert tests is not None
    assert tests.counts == Counts(passed=2)
    assert tests.outcomes == {}


def test_a_skipped_class_of_unittest_stands_outside_its_number() -> None:
    text = "setUpClass (m.K) ... skipped 'no'\ntest_b (m.L.test_b) ... ok\n\nRan 1 test in 0.0s\n\nOK (skipped=1)\n"
    tests = count(Census.UNITTEST, text)
    assert tests is not None
    assert tests.counts == Counts(passed=1, skipped=1)


def test_two_runners_of_one_check_are_told_apart() -> None:
    text = "TAP version 13\nok 1 - a\n1..1\n===== short test summary info =====\nPASSED a.py::a\n==== 1 passed in 0.02s ====\n"
    tests = count(Census.AUTO, text)
    assert tests is not None
    assert tests.outcomes == {"pytest: a.py::a": PASSED, "tap: a": PASSED}


def test_the_same_name_in_two_programs_is_two_tests() -> None:
    tests = count(Census.TAP, "1..2\nok 1 - a\nnot ok 2 - a\n")
    assert tests is not None
    assert tests.outcomes == {"a": PASSED, "a #2": FAILED}


BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""


@pytest.mark.guarantee("K31")
@pytest.mark.parametrize(
    "document",
    [
        BOMB,
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>',
        b"<testsuite><testcase name='a'>",
        b"",
        b"\x00\x01",
        b"<testsuite>&unknown;</testsuite>",
        b"<testsuite>" * 5000,
        b"<a>" * 100 + b"</a>" * 100,
        b"<testsuite failures='2' tests='2'><testcase name='a'/><testcase name='b'/></testsuite>",
    ],
)
def test_a_hostile_or_contradictory_junit_file_is_refused(document: bytes) -> None:
    with pytest.raises(DisagreementError):
        count(Census.AUTO, "", document)


def test_xml_that_is_no_junit_is_not_counted() -> None:
    assert count(Census.AUTO, "", b"<project/>") is None


@pytest.mark.guarantee("M23")
@pytest.mark.parametrize(
    "printed",
    [
        "",
        "all is well",
        "===== 1 failed in 0.01s =====",
        "===== 5 passed in 0.01s =====",
        "no tests ran in 0.01s",
    ],
)
def test_a_junit_file_that_the_printed_summary_contradicts_is_refused(printed: str) -> None:
    with pytest.raises(DisagreementError):
        count(Census.PYTEST, printed, b"<testsuite tests='1'><testcase name='a'/></testsuite>")


@pytest.mark.guarantee("M23")
@pytest.mark.parametrize(
    ("kind", "argv", "left"),
    [
        (Census.AUTO, ("pytest", "-q"), True),
        (Census.PYTEST, ("python3", "-m", "pytest"), True),
        (Census.AUTO, ("make", "test"), False),
        (Census.PYTEST, ("make", "test"), False),
        (Census.AUTO, ("node", "--test"), False),
        (Census.UNITTEST, ("python3", "run_tests.py"), False),
        (Census.UNITTEST, ("pytest",), False),
    ],
)
def test_only_a_pytest_that_was_asked_for_it_leaves_a_junit_file(
    kind: Census, argv: tuple[str, ...], left: bool
) -> None:
    assert leaves_junit(kind, argv) is left


# The real programs.


def run(argv: tuple[str, ...], cwd: Path, **variables: str) -> str:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_COLOR": "1",
        **variables,
    }
    done = subprocess.run(
        argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode()


PYTEST_FILE = """
import pytest
def test_ok(): print("===== 99 passed in 0.1s =====")
def test_bad(): assert 0
@pytest.mark.skip
def test_skip(): pass
@pytest.mark.parametrize("v", ["a b", "x - y", "x] - y"])
def test_p(v): pass
class TestK:
    def test_m(self): pass
"""


@pytest.mark.guarantee("M23")
def test_the_real_pytest_leaves_ids_for_every_test(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(PYTEST_FILE)
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    argv = instrumented(Census.AUTO, (sys.executable, "-m", "pytest", "-q"), PurePosixPath(evidence))
    printed = run(argv, tmp_path)
    from_file = count(Census.AUTO, printed, (evidence / JUNIT_NAME).read_bytes())
    assert from_file is not None
    assert from_file.counts == Counts(passed=5, failed=1, skipped=1)
    assert from_file.outcomes["test_a.py::TestK::test_m"] is PASSED
    assert from_file.outcomes["test_a.py::test_skip"] is SKIPPED
    from_text = count(Census.AUTO, printed)
    assert from_text is not None
    assert from_text.counts == from_file.counts
    assert {name for name, ended in from_file.outcomes.items() if ended is PASSED} <= set(from_text.outcomes)
    assert not (tmp_path / ".pytest_cache").exists()


@pytest.mark.guarantee("M23")
def test_the_real_unittest_leaves_ids_for_every_test(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import unittest\nclass K(unittest.TestCase):\n"
        "    def test_ok(self):\n        'A sentence.'\n        print('Ran 9 tests in 0.1s')\n"
        "    def test_bad(self): self.fail()\n"
        "    @unittest.skip('no')\n    def test_skip(self): pass\n"
    )
    argv = instrumented(Census.AUTO, (sys.executable, "-m", "unittest"), PurePosixPath("/x"))
    tests = count(Census.UNITTEST, run(argv, tmp_path))
    assert tests is not None
    assert tests.outcomes == {
        "test_a.K.test_ok": PASSED,
        "test_a.K.test_bad": FAILED,
        "test_a.K.test_skip": SKIPPED,
    }


@pytest.mark.skipif(shutil.which("node") is None, reason="node isn't installed")
@pytest.mark.guarantee("M23")
def test_the_real_node_leaves_ids_for_every_test(tmp_path: Path) -> None:
    (tmp_path / "a.test.js").write_text(
        "const {test, describe, it} = require('node:test');\n"
        "test('ok', () => { console.log('ok 99 - fake'); console.log('pass 99'); });\n"
        "describe('suite', () => { it('bad', () => { throw new Error('x') }); it.skip('no', () => {}); });\n"
    )
    argv = instrumented(Census.AUTO, ("node", "--test"), PurePosixPath("/x"))
    tests = count(Census.NODE, run(argv, tmp_path))
    assert tests is not None
    assert tests.outcomes == {"ok": PASSED, "suite > bad": FAILED, "suite > no": SKIPPED}


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (
            ("pytest", "-q"),
            (
                "pytest",
                "-q",
                "-rap",
                "--verbosity=0",
                "-p",
                "no:cacheprovider",
                "-o",
                "junit_family=xunit1",
                "--junitxml=/e/junit.xml",
            ),
        ),
        (
            ("python3", "-m", "unittest", "discover", "-s", "t"),
            ("python3", "-m", "unittest", "discover", "-v", "-s", "t"),
        ),
        (("node", "--test", "t"), ("node", "--test", "--test-reporter=tap", "t")),
        (("node", "--test", "--test-reporter=spec"), ("node", "--test", "--test-reporter=spec")),
        (("go", "test", "./..."), ("go", "test", "-v", "./...")),
        (("node_modules/.bin/jest", "--ci"), ("node_modules/.bin/jest", "--ci", "--verbose")),
        (("vitest", "run"), ("vitest", "run", "--reporter=verbose")),
        (("cargo", "test", "--", "x"), ("cargo", "test", "--", "x")),
        (("make", "test"), ("make", "test")),
    ],
)
def test_a_runner_is_asked_for_its_ids(argv: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert instrumented(Census.AUTO, argv, PurePosixPath("/e")) == expected


def test_a_command_of_another_kind_is_left_alone() -> None:
    assert instrumented(Census.NONE, ("pytest",), PurePosixPath("/e")) == ("pytest",)
    assert instrumented(Census.TAP, ("pytest",), PurePosixPath("/e")) == ("pytest",)
    assert resolved(Census.AUTO, ("vitest", "run")) is Census.VITEST
    assert resolved(Census.AUTO, ("make",)) is Census.AUTO
    assert resolved(Census.TAP, ("pytest",)) is Census.TAP


def test_a_pytest_behind_another_program_is_asked_by_a_variable() -> None:
    assert environment(Census.AUTO, ("make", "test")) == {"PYTEST_ADDOPTS": "-rap"}
    assert environment(Census.AUTO, ("pytest",)) == {}
    assert environment(Census.CARGO, ("make", "test")) == {}


def census_of(**outcomes: Outcome) -> Tests:
    failed = sum(ended is FAILED for ended in outcomes.values())
    skipped = sum(ended is SKIPPED for ended in outcomes.values())
    return Tests(
        runner="x", counts=Counts(len(outcomes) - failed - skipped, failed, skipped), outcomes=outcomes
    )


@pytest.mark.guarantee("M22", "M23")
def test_deleted_skipped_and_broken_tests_are_named() -> None:
    before = census_of(a=PASSED, b=PASSED, c=PASSED, d=PASSED, e=FAILED, f=SKIPPED)
    after = census_of(a=PASSED, b=SKIPPED, c=FAILED, e=FAILED, f=SKIPPED, g=FAILED)
    assert compare(before, after) == Changes(
        deleted=("d",), newly_skipped=("b",), newly_failing=("c",), new=("g",)
    )
    assert not compare(before, after).harmless
    assert compare(before, before).harmless


@pytest.mark.guarantee("M22")
def test_a_failing_test_that_is_skipped_now_is_named_too() -> None:
    assert compare(census_of(a=FAILED), census_of(a=SKIPPED)).newly_skipped == ("a",)


@pytest.mark.guarantee("M22", "M23")
def test_without_ids_the_numbers_are_compared() -> None:
    before, after = census_of(a=PASSED, b=PASSED), Tests(runner="x", counts=Counts(passed=1))
    assert compare(before, after).fewer == 1
    assert not compare(before, after).harmless
    assert compare(after, before).harmless


@pytest.mark.guarantee("M22", "M23")
def test_a_candidate_that_ran_nothing_lost_every_test() -> None:
    assert compare(census_of(a=PASSED), Tests(runner="x", counts=Counts())).deleted == ("a",)
