"""Reference solutions of public sets pass, and what is broken in them fails. Runs where the data lies beside the project."""

import ast
import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from longwatch.learn.grading import grade_all
from longwatch.learn.tasks import Language, Program, Split, Task, Verdict

DATA = Path(__file__).parents[4] / "shared/data"
HUMANEVAL, MBPP = DATA / "humaneval/HumanEval.jsonl.gz", DATA / "mbpp/sanitized-mbpp.json"
EVERY = 6

# They return a match object: no plain data, so such a task is left out by its screening.
NO_PLAIN_RESULT = {"mbpp-737", "mbpp-787", "mbpp-794"}

humaneval_here = pytest.mark.skipif(not HUMANEVAL.exists(), reason="HumanEval is not here")
mbpp_here = pytest.mark.skipif(not MBPP.exists(), reason="MBPP is not here")


def task(name: str, entry_point: str, code: str, reference: str) -> Task:
    return Task(
        id=name,
        problem=name,
        repository="public",
        family="public",
        language=Language.PYTHON,
        split=Split.AUDIT,
        prompt="",
        entry_point=entry_point,
        tests=Program(code=code),
        reference=reference,
    )


def humaneval() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(HUMANEVAL.read_bytes()).splitlines()]


def humaneval_task(row: dict[str, Any]) -> Task:
    code = row["prompt"] + "\n" + row["test"]
    return task(
        row["task_id"].replace("/", "-"), row["entry_point"], code, row["prompt"] + row["canonical_solution"]
    )


def mbpp_task(row: dict[str, Any]) -> Task:
    names = re.findall(r"^def (\w+)\s*\(", row["code"], re.MULTILINE)
    asked = "\n".join(row["test_list"])
    entry_point = next(name for name in reversed(names) if re.search(rf"\b{name}\s*\(", asked))
    code = "\n".join([*row["test_imports"], *row["test_list"]])
    return task(f"mbpp-{row['task_id']}", entry_point, code, row["code"])


def not_right(tasks: list[Task], answers: list[str]) -> dict[str, str]:
    grades = list(grade_all(list(zip(answers, tasks, strict=True))))
    assert not [one for one in grades if one.verdict is Verdict.INFRA]
    return {one.task: one.why for one in grades if one.verdict is not Verdict.PASS}


def broken(reference: str, entry_point: str) -> str:
    """Wrap what the entry point returns at its end in a list."""
    tree = ast.parse(reference)
    function = next(
        node for node in reversed(tree.body) if isinstance(node, ast.FunctionDef) and node.name == entry_point
    )
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = ast.List([node.value, ast.Constant(1)], ast.Load())
    return ast.unparse(ast.fix_missing_locations(tree))


@humaneval_here
@pytest.mark.guarantee("L10", "L22")
def test_every_humaneval_reference_passes() -> None:
    tasks = [humaneval_task(row) for row in humaneval()]
    assert len(tasks) == 164
    assert not_right(tasks, [one.reference for one in tasks]) == {}


@humaneval_here
@pytest.mark.guarantee("L10", "L22")
def test_stubs_empty_answers_and_broken_references_fail() -> None:
    rows = humaneval()[::EVERY]
    answers = [(row["prompt"], "", broken(humaneval_task(row).reference, row["entry_point"])) for row in rows]
    tasks = [humaneval_task(row) for row in rows for _ in range(3)]
    grades = grade_all(list(zip((one for three in answers for one in three), tasks, strict=True)))
    assert Counter(one.verdict for one in grades) == {Verdict.FAIL: len(tasks)}


@mbpp_here
@pytest.mark.guarantee("L10", "L2")
def test_sanitized_mbpp_references_pass_where_results_are_plain() -> None:
    tasks = [mbpp_task(row) for row in json.loads(MBPP.read_bytes())]
    wrong = not_right(tasks, [one.reference for one in tasks])
    assert set(wrong) == NO_PLAIN_RESULT
    assert all("it returned a value of type Match" in why for why in wrong.values())
