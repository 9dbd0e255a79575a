"""Collecting: the student answers, answers that pass are kept, a teacher fills the gaps (L9)."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.learn.examining import Exam, Examinee, Graded, examine
from longwatch.learn.experiment.course import Course
from longwatch.learn.experiment.examples import Author, Example
from longwatch.learn.normalised import code_key
from longwatch.learn.settings import Teacher
from longwatch.learn.stages import staged
from longwatch.learn.tasks import Task, Verdict

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
        examples = tuple(verified(tasks, exam, course.recipe.teacher))
        return Collected(asked=len(exam.graded), passed=exam.passed, examples=examples)

    return staged(course.folder_of(number) / "collected.json", Collected, make)


def verified(tasks: Sequence[Task], exam: Exam, teacher: Teacher) -> Iterator[Example]:
    """Yield each way in which the student solved a task, and the teacher's where it never did. Pure."""
    by_task: dict[str, list[Graded]] = {task.id: [] for task in tasks}
    for one in exam.graded:
        by_task[one.answer.task].append(one)
    for task in tasks:
        own = tuple(_own(task, by_task[task.id]))
        yield from own
        if not own and teacher is Teacher.REFERENCE and task.reference:
            yield _example(task, task.reference, Author.TEACHER, 0, Counter())


def _own(task: Task, answers: Sequence[Graded]) -> Iterator[Example]:
    verdicts = Counter(one.grade.verdict for one in answers)
    ways: set[str] = set()
    for one in answers:
        way = code_key(task.language, one.code)
        if one.passed and way not in ways:
            ways.add(way)
            yield _example(task, one.code, Author.STUDENT, one.answer.seed, verdicts)


def _example(task: Task, code: str, author: Author, seed: int, verdicts: Counter[Verdict]) -> Example:
    return Example(
        task=task.id,
        prompt=task.prompt,
        answer=FENCED.format(language=task.language.value, code=code.strip()),
        author=author,
        seed=seed,
        passed=verdicts[Verdict.PASS],
        graded=verdicts[Verdict.PASS] + verdicts[Verdict.FAIL],
    )
