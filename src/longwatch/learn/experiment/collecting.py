"""Collecting: the student answers, answers that pass are kept, a teacher fills the gaps (L9)."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from longwatch.learn.examining import Exam, Examinee, examine
from longwatch.learn.experiment.course import Course
from longwatch.learn.experiment.examples import Author, Example
from longwatch.learn.normalised import code_key
from longwatch.learn.stages import staged
from longwatch.learn.tasks import Task, Verdict
from longwatch.learn.teachers.helping import helped
from longwatch.learn.teachers.provenance import Provenance, Solution

FENCED = "```{language}\n{code}\n```"
"""What a verified answer teaches: the whole answer in the form that is asked for."""


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The examples of a round's new tasks: how many answers were asked for, how many passed, what can be taught."""

    asked: int
    passed: int
    examples: tuple[Example, ...]


def collect(course: Course, tasks: Sequence[Task], number: int) -> Collected:
    """Sample the champion's answers to a round's new tasks, or read what an earlier run collected.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first; what was answered is kept.
    """
    who = Examinee(
        name=course.step.champion,
        adapter=course.champion,
        sampling=course.sampling(temperature=course.recipe.temperature, seed=course.recipe.seed + number),
        samples=course.recipe.samples,
        batch=course.place.settings.student.batch,
    )

    def make() -> Collected:
        exam = examine(course.work, course.place, who, tasks, f"collect round {number}")
        own = {task.id: examples for task in tasks if (examples := tuple(verified(task, exam)))}
        unsolved = [task for task in tasks if task.id not in own]
        taught = helped(course.work, course.place, course.step.number, unsolved, f"round {number}, teacher")
        examples = together(tasks, own, taught.solutions)
        return Collected(asked=len(exam.graded), passed=exam.passed, examples=examples)

    return staged(course.folder_of(number) / "collected.json", Collected, make)


def together(
    tasks: Sequence[Task], own: Mapping[str, Sequence[Example]], solutions: Sequence[Solution]
) -> tuple[Example, ...]:
    """Return what can be taught, by task: the student's own ways, and the teacher's where it has none. Pure."""
    found: list[Example] = []
    for task in tasks:
        found += own.get(task.id, ()) or (
            _example(task, one.code, Author.TEACHER, provenance=one.provenance)
            for one in solutions
            if one.task == task.id
        )
    return tuple(found)


def verified(task: Task, exam: Exam) -> Iterator[Example]:
    """Yield each way in which the student solved a task. Pure."""
    answers = [one for one in exam.graded if one.answer.task == task.id]
    verdicts = Counter(one.grade.verdict for one in answers)
    ways: set[str] = set()
    for one in answers:
        way = code_key(task.language, one.code)
        if one.passed and way not in ways:
            ways.add(way)
            yield _example(task, one.code, Author.STUDENT, seed=one.answer.seed, verdicts=verdicts)


def _example(
    task: Task,
    code: str,
    author: Author,
    *,
    seed: int = 0,
    verdicts: Mapping[Verdict, int] | None = None,
    provenance: Provenance | None = None,
) -> Example:
    counts = Counter(verdicts or {})
    return Example(
        task=task.id,
        prompt=task.prompt,
        answer=FENCED.format(language=task.language.value, code=code.strip()),
        author=author,
        seed=seed,
        passed=counts[Verdict.PASS],
        graded=counts[Verdict.PASS] + counts[Verdict.FAIL],
        provenance=provenance,
    )
