"""Evaluating on dev: greedy, side by side with the champion, and no further than it can still matter (L13)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from longwatch.learn.acceptance import FlipRate, Pair
from longwatch.learn.comparing import pairs_of
from longwatch.learn.examining import Exam, Examinee, examine, flip_rate, parts
from longwatch.learn.experiment.course import Course
from longwatch.learn.experiment.nominating import hopeless
from longwatch.learn.steps import BASE
from longwatch.learn.tasks import Task, Verdict


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks that are asked together, and what champion and base made of them."""

    tasks: tuple[Task, ...]
    champion: Exam
    base: Exam

    @property
    def failed(self) -> int:
        """Tasks that the champion failed: only these can be gained."""
        return sum(one.grade.verdict is Verdict.FAIL for one in self.champion.graded)


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The champion and base on all dev tasks, part by part. Everybody else is asked the same parts (L15)."""

    parts: tuple[Part, ...] = ()
    flips: FlipRate | None = None
    """Of the champion (L15)."""

    @property
    def champion(self) -> int:
        """How many tasks the champion passes."""
        return sum(part.champion.passed for part in self.parts)

    @property
    def base(self) -> int:
        """How many tasks base passes."""
        return sum(part.base.passed for part in self.parts)

    @property
    def total(self) -> int:
        """How many tasks there are."""
        return sum(len(part.tasks) for part in self.parts)


def mark(course: Course) -> Marks:
    """Ask the champion and base.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first.
    """
    asked = parts(course.dev, course.place.settings.student.batch)
    champion = [_ask(course, course.step.champion, course.champion, tasks) for tasks in asked]
    is_base = course.step.champion == BASE
    base = champion if is_base else [_ask(course, BASE, None, tasks) for tasks in asked]
    who = _examinee(course, course.step.champion, course.champion)
    return Marks(
        flips=flip_rate(course.work, course.place, who, course.dev, "champion on dev"),
        parts=tuple(
            Part(tasks=tasks, champion=mine, base=bases)
            for tasks, mine, bases in zip(asked, champion, base, strict=True)
        ),
    )


def evaluate(course: Course, marks: Marks, name: str, adapter: Path, beat: int) -> tuple[Pair, ...]:
    """Ask a trained adapter, until all is asked or it is clear that it cannot gain more than `beat`.

    Raises:
        StoppedError: as `mark`.
    """
    pairs: tuple[Pair, ...] = ()
    for number, part in enumerate(marks.parts, 1):
        exam = _ask(course, name, adapter, part.tasks)
        pairs = (*pairs, *pairs_of(part.tasks, part.champion, exam))
        if hopeless(pairs, sum(rest.failed for rest in marks.parts[number:]), beat):
            break
    return pairs


def _ask(course: Course, name: str, adapter: Path | None, tasks: Sequence[Task]) -> Exam:
    who = _examinee(course, name, adapter)
    return examine(course.work, course.place, who, tasks, f"{name[:12]} on dev")


def _examinee(course: Course, name: str, adapter: Path | None) -> Examinee:
    batch = course.place.settings.student.batch
    return Examinee(name=name, adapter=adapter, sampling=course.sampling(), batch=batch)
