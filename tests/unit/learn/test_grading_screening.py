"""Which tasks may judge (L2), and which runtimes (L23)."""

from pathlib import Path

import pytest

from longwatch.learn.grading import Bounds, Finding, proved, runtimes, screen
from longwatch.learn.grading.screening import stub
from longwatch.learn.grading.scripts import missing
from longwatch.learn.tasks import Case, Cases, Language, Program, Split, Task, Verdict

DOUBLE = "def f(value):\n    return 2 * value\n"
RIGHT = Cases(cases=(Case((1,), 2), Case((5,), 10)))


def task(tests: Cases | Program, reference: str, language: Language = Language.PYTHON) -> Task:
    return Task(
        id="task",
        problem="task",
        repository="test",
        family="test",
        language=language,
        split=Split.TRAIN,
        prompt="Write f.",
        entry_point="f",
        tests=tests,
        reference=reference,
    )


@pytest.mark.guarantee("L2")
@pytest.mark.parametrize(
    ("tests", "reference", "finding"),
    [
        (RIGHT, DOUBLE, Finding.USABLE),
        (Program(code="assert f(2) == 4"), DOUBLE, Finding.USABLE),
        (RIGHT, "", Finding.NO_REFERENCE),
        (RIGHT, "def f(value):\n    return 3 * value\n", Finding.REFERENCE_FAILS),
        (RIGHT, "def g(value):\n    return 2 * value\n", Finding.REFERENCE_FAILS),
        (Program(code="assert f(object())"), DOUBLE, Finding.REFERENCE_FAILS),
        (Cases(cases=(Case((1,), None),)), "def f(value):\n    return None\n", Finding.STUB_PASSES),
        (Program(code="pass"), DOUBLE, Finding.STUB_PASSES),
        (Cases(cases=()), DOUBLE, Finding.INFRA),
    ],
)
def test_what_screening_finds(tests: Cases | Program, reference: str, finding: Finding) -> None:
    assert screen(task(tests, reference)).finding is finding


@pytest.mark.guarantee("L2")
def test_a_reference_that_leans_on_the_order_of_a_set_is_quarantined() -> None:
    words = "{'alpha', 'beta', 'gamma', 'delta', 'epsilon'}"
    leaning = f"def f():\n    return list({words})[0]\n"
    # It passes under the one order and fails under another: which ones is the interpreter's business.
    findings = {
        screen(task(Cases(cases=(Case((), word),)), leaning), repeats=6).finding for word in eval(words)
    }
    assert Finding.FLAKY in findings
    assert Finding.USABLE not in findings


@pytest.mark.guarantee("L2")
def test_a_javascript_task_is_screened_alike() -> None:
    good = task(RIGHT, "const f = (value) => 2 * value;", Language.JAVASCRIPT)
    assert screen(good, repeats=2).finding is Finding.USABLE
    empty = task(Cases(cases=(Case((1,), 1),)), "const f = (v) => v + 1;", Language.JAVASCRIPT)
    assert screen(empty, repeats=1).finding is Finding.REFERENCE_FAILS


def test_a_stub_parses() -> None:
    compile(stub(task(RIGHT, "")), "stub", "exec")


@pytest.mark.guarantee("L23")
@pytest.mark.parametrize("language", Language)
def test_a_working_runtime_is_proved(language: Language) -> None:
    lacking = missing(language)
    if lacking:
        assert language not in {Language.PYTHON, Language.JAVASCRIPT}
        pytest.skip(f"{', '.join(lacking)} not here")
    proof = proved(language)
    assert proof.holds, proof
    assert proof.tried == (6 if language in {Language.PYTHON, Language.JAVASCRIPT} else 3)


@pytest.mark.guarantee("L23")
def test_references_of_the_language_are_tried_and_one_that_fails_voids_it() -> None:
    others = task(RIGHT, "nonsense", Language.JAVASCRIPT)
    assert proved(Language.PYTHON, [task(RIGHT, DOUBLE), others, task(RIGHT, "")]).tried == 7
    proof = proved(Language.PYTHON, [task(RIGHT, DOUBLE), task(RIGHT, "def f(value):\n    return value\n")])
    assert not proof.holds
    assert [grade.verdict for grade in proof.broken] == [Verdict.FAIL]


@pytest.mark.guarantee("L23")
def test_a_broken_toolchain_voids_its_language(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtimes, "NODE", str(tmp_path / "node"))
    assert not proved(Language.JAVASCRIPT).holds
    monkeypatch.setattr(runtimes, "NODE", "/usr/bin/false")
    assert not proved(Language.JAVASCRIPT, bounds=Bounds(wall_s=10)).holds
    assert proved(Language.PYTHON).holds
