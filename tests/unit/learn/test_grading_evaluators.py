"""Constructed answers in the forms in which they are recorded: right and wrong ones, as each evaluator judges them."""

from functools import cache

import pytest
from constructed_answers import SHORT, constructed, plainly_passes, recording
from curricula import PUBLIC

from longwatch.learn import recordings
from longwatch.learn.grading import grade_all, scripts
from longwatch.learn.sources import multipl_e
from longwatch.learn.tasks import Evaluator, Language, Verdict

DIFFERENT = {Language.CPP, Language.CSHARP, Language.TYPESCRIPT, Language.PHP, Language.BASH}
"""The languages that both evaluators judge."""
NOT_HERE = {
    (Language.PHP, "an empty text has one piece"): "PHP is 8.2 here, in which it has none",
    (Language.BASH, "it has bc"): "bc is outside of the sandbox",
}
"""What a plain run on this machine says otherwise."""
WAYS = [
    pytest.param(
        language,
        evaluator,
        marks=pytest.mark.skipif(bool(scripts.missing(language)), reason=f"{language} is not here"),
    )
    for language in SHORT
    for evaluator in Evaluator
    if evaluator is Evaluator.MULTIPL_E or language in DIFFERENT
]
pytestmark = pytest.mark.skipif(not (PUBLIC / "multipl-e").exists(), reason="MultiPL-E is not here")
tasks = cache(lambda language: multipl_e.load(language, PUBLIC))


@pytest.mark.guarantee("L10", "L22")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("language", "evaluator"), WAYS)
def test_constructed_answers_are_judged_as_the_evaluator_judges_them(language, evaluator):
    answers = recordings.read(recording(language, evaluator), "answers", tasks(language))
    wanted = {(one.name, one.program): one for one in constructed(language, evaluator)}
    assert len(answers) == len(wanted)
    grades = grade_all([(one.answer, one.task) for one in answers])
    wrong = []
    for one, grade in zip(answers, grades, strict=True):
        tests = one.task.tests
        meant = wanted[one.task.id.removesuffix(f".{language}"), f"{tests.given}{one.answer}{tests.code}"]
        if grade.verdict is Verdict.INFRA or (grade.verdict is Verdict.PASS) != meant.passes:
            wrong.append((meant.what, grade.verdict, grade.why))
    assert wrong == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("language", "evaluator"), WAYS)
def test_the_constructed_verdicts_are_those_of_a_plain_run(language, evaluator, tmp_path):
    wrong = []
    for number, one in enumerate(constructed(language, evaluator)):
        folder = tmp_path / str(number)
        folder.mkdir()
        if (language, one.what) not in NOT_HERE:
            seen = plainly_passes(one.program, language, evaluator, folder)
            wrong += [one.what] if seen != one.passes else []
    assert wrong == []
