"""Tasks, examples and verdicts of an experiment, written briefly."""

from longwatch.learn.acceptance import Pair
from longwatch.learn.experiment.examples import Author, Example
from longwatch.learn.tasks import Case, Cases, Language, Split, Task, Verdict


def example(task, author=Author.STUDENT, *, passed=1, graded=4, answer=None, seed=0):
    return Example(
        task=task,
        prompt=f"solve {task}",
        answer=answer or f"answer to {task}",
        author=author,
        seed=seed,
        passed=passed,
        graded=graded,
    )


def task(name, *, reference="def f(x):\n    return x\n"):
    return Task(
        id=name,
        problem=name,
        repository="r",
        family="f",
        language=Language.PYTHON,
        split=Split.TRAIN,
        prompt=f"solve {name}",
        entry_point="f",
        tests=Cases(cases=(Case((1,), 1),)),
        reference=reference,
    )


def pairs(text):
    """`+` gained, `-` lost, `=` both passed, `0` both failed, `?` our own trouble."""
    verdicts = {
        "+": (Verdict.FAIL, Verdict.PASS),
        "-": (Verdict.PASS, Verdict.FAIL),
        "=": (Verdict.PASS, Verdict.PASS),
        "0": (Verdict.FAIL, Verdict.FAIL),
        "?": (Verdict.FAIL, Verdict.INFRA),
    }
    return tuple(
        Pair(
            task=f"t{place}",
            problem=f"t{place}",
            language="python",
            family="f",
            champion=verdicts[sign][0],
            challenger=verdicts[sign][1],
        )
        for place, sign in enumerate(text)
    )
