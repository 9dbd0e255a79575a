"""Recorded answers: every form is read, taken apart and graded; what is none of them is refused with its name."""

import json

import pytest
from constructed_answers import constructed
from curricula import PUBLIC
from typer.testing import CliRunner

from longwatch.cli.main import app
from longwatch.kernel.errors import ConfigError
from longwatch.learn import recordings
from longwatch.learn.grading import grade
from longwatch.learn.sources import humaneval, multipl_e
from longwatch.learn.tasks import Evaluator, Language, Verdict

pytestmark = pytest.mark.skipif(not (PUBLIC / "multipl-e").exists(), reason="MultiPL-E is not here")
NAME = "HumanEval_53_add"


def read(data, language=Language.BASH):
    tasks = humaneval.load(PUBLIC) if language is Language.PYTHON else multipl_e.load(language, PUBLIC)
    text = data if isinstance(data, str) else json.dumps(data)
    return recordings.read(text.encode(), "answers.json", tasks)


def details(code, passed=True, name=NAME):
    return {name: [[0, {"task_id": name, "completion_id": 0, "result": "", "passed": passed, "code": code}]]}


def program(evaluator=Evaluator.DEEPSEEK, language=Language.BASH):
    return constructed(language, evaluator)[0].program


def test_a_whole_program_is_taken_apart_and_put_together_as_it_was():
    (one,) = read(details(program(language=Language.CPP)), Language.CPP)
    tests = one.task.tests
    assert tests.given.startswith("#include<stdlib.h>\n")
    assert tests.given.endswith("long add(long x, long y) {")
    assert one.answer.strip() == "return x + y;"
    assert tests.given + one.answer + tests.code == program(language=Language.CPP)
    assert (tests.evaluator, tests.literal, one.passed) == (Evaluator.DEEPSEEK, True, True)


def test_a_problem_with_results_may_stand_on_many_lines_or_on_one():
    problem = {
        "name": NAME,
        "language": "sh",
        "results": [
            {"program": program(), "status": "OK", "exit_code": 0},
            {"program": program(), "status": "Timeout", "exit_code": -1},
        ],
    }
    for text in (json.dumps(problem, indent=2), json.dumps(problem), f"{json.dumps(problem)}\n\n"):
        found = read(text)
        assert [one.passed for one in found] == [True, False]
        assert {one.task.tests.evaluator for one in found} == {Evaluator.MULTIPL_E}


@pytest.mark.guarantee("L22")
def test_lines_of_what_a_model_said_and_of_what_goes_on_are_graded():
    said = "Here it is:\n```bash\nadd() {\n  echo $(($1 + $2))\n}\n```\n"
    lines = [
        {"task": NAME, "answer": said, "passed": True},
        {"task": "HumanEval/53", "completion": "    echo $(($1 + $2))\n}\necho more\n"},
        {"task": NAME, "completion": "    echo $(($1 - $2))\n"},
    ]
    found = read("\n".join(map(json.dumps, lines)))
    assert [grade(one.answer, one.task).verdict for one in found] == [
        Verdict.PASS,
        Verdict.PASS,
        Verdict.FAIL,
    ]
    assert [one.passed for one in found] == [True, None, None]


@pytest.mark.guarantee("L22")
@pytest.mark.parametrize("language", [Language.PYTHON, Language.JAVASCRIPT])
def test_two_processes_judge_whole_programs_and_completions_too(language):
    (task,) = (
        one
        for one in (
            humaneval.load(PUBLIC) if language is Language.PYTHON else multipl_e.load(language, PUBLIC)
        )
        if one.problem == "HumanEval.53"
    )
    body = "    return x + y\n" if language is Language.PYTHON else "  return x + y;\n}\n"
    (going_on,) = read({"task": NAME, "completion": body}, language)
    assert grade(going_on.answer, going_on.task).verdict is Verdict.PASS
    tests = task.tests.code + ("\ncheck(add)" if language is Language.PYTHON else "")
    (whole,) = read(details(f"{going_on.answer}\n{tests}\n"), language)
    assert grade(whole.answer, whole.task).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("nothing", "answers.json: it is no recording"),
        ("", "answers.json: there is no answer in it"),
        ({}, "answers.json: there is no answer in it"),
        ({"task": "HumanEval_999_none", "answer": ""}, "'HumanEval_999_none' is no task"),
        ({"task": NAME}, 'give either "answer" or "completion"'),
        ({"task": NAME, "answer": "", "completion": ""}, 'give either "answer" or "completion"'),
        (details("add() {\n    echo 3\n}\n"), "does not end with the tests"),
        ([1, 2], "answers.json: it is no recording"),
    ],
)
def test_what_is_no_recording_is_refused_by_name(data, why):
    with pytest.raises(ConfigError) as error:
        read(data)
    assert why in str(error.value)


def test_a_program_of_another_prompt_is_refused():
    with pytest.raises(ConfigError, match="has not the prompt of the published benchmark"):
        read(details(program().replace("# Add two numbers", "# Sum two numbers")))


@pytest.mark.guarantee("L22")
def test_the_command_tells_which_verdicts_differ(tmp_path):
    path = tmp_path / "answers.jsonl"
    lines = [
        {"task": NAME, "completion": "    echo $(($1 + $2))\n", "passed": True},
        {"task": NAME, "completion": "    echo $(($1 - $2))\n", "passed": True},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    words = ["grade", str(path), "--language", "sh", "--data", str(PUBLIC)]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "2 answers, 1 pass, 1 fail, 0 not judged." in told.stdout
    assert "2 have a recorded verdict: 1 the same." in told.stdout
    assert "HumanEval_53_add.bash: fail here, passed there." in told.stdout
    seen = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (seen["language"], seen["recorded"], seen["same"]) == ("bash", 2, 1)
    assert [one["verdict"] for one in seen["answers"]] == ["pass", "fail"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["missing.json", "--language", "sh"], "there is no file"),
        (["missing.json", "--language", "cobol"], "--language cobol: choose one of python"),
    ],
)
def test_the_command_names_what_is_wrong(words, why, tmp_path):
    told = CliRunner().invoke(app, ["grade", str(tmp_path / words[0]), *words[1:], "--data", str(PUBLIC)])
    assert told.exit_code == 2
    assert why in told.output
