"""The student answers tasks and is graded. Equal work is done once: grades are kept by all that they depend on (L15)."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.program import Work
from longwatch.learn.grading import extract, grade_all
from longwatch.learn.place import Place
from longwatch.learn.settings import Student
from longwatch.learn.stages import StoppedError, staged
from longwatch.learn.steps import LearnStep
from longwatch.learn.student.answers import Answer, Request, Sampling
from longwatch.learn.tasks import Grade, Task, Verdict


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """One answer with its grade."""

    answer: Answer
    code: str
    grade: Grade

    @property
    def passed(self) -> bool:
        """True if the answer passed its tests."""
        return self.grade.verdict is Verdict.PASS


class Exam(msgspec.Struct, frozen=True, kw_only=True):
    """All answers to a set of tasks, in the order of the tasks and their samples."""

    graded: tuple[Graded, ...]
    tokens: int
    seconds: float

    @property
    def passed(self) -> int:
        """How many answers passed."""
        return sum(one.passed for one in self.graded)


class Examinee(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked: the base with or without an adapter, and how."""

    name: str
    """Digest of the adapter, or `base`."""
    adapter: Path | None
    sampling: Sampling
    samples: int = 1
    batch: int = 32


CHUNK = 64
"""Tasks whose answers are kept together: a program that died loses at most one chunk."""


def examine(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> Exam:
    """Return the exam of a student on these tasks; what was answered before under the same binding is reused.

    Raises:
        StoppedError: a pause or stop came first; finished chunks are kept.
    """
    chunks = [tuple(tasks[start : start + CHUNK]) for start in range(0, len(tasks), CHUNK)]
    exams = [
        _chunk(work, place, who, chunk, f"{label} ({number} of {len(chunks)})")
        for number, chunk in enumerate(chunks, 1)
    ]
    return Exam(
        graded=tuple(one for exam in exams for one in exam.graded),
        tokens=sum(exam.tokens for exam in exams),
        seconds=sum(exam.seconds for exam in exams),
    )


def _chunk(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> Exam:
    bound = (who.name, who.sampling, who.samples, who.batch, place.settings.student, environment(), tasks)
    key = of_bytes(msgspec.json.encode(bound))
    return staged(place.grades / f"{key}.json", Exam, lambda: _take(work, place, who, tasks, label))


def environment() -> tuple[str, ...]:
    """Return what else decides an answer: results of different versions are never compared (L15)."""
    return tuple(f"{name} {version(name)}" for name in ("torch", "transformers", "peft"))


def _take(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> Exam:
    answers, seconds = _ask(work, place, who, tasks, label)
    by_task = {task.id: task for task in tasks}
    codes = [extract(answer.text, by_task[answer.task].language) for answer in answers]
    items = [(code, by_task[answer.task]) for code, answer in zip(codes, answers, strict=True)]
    with work.span("grade", label):
        grades = list(
            grade_all(
                items,
                progress=lambda done: work.progress("grade", label, done=done, total=len(items)),
                should_stop=work.should_stop,
            )
        )
    if len(grades) < len(items):
        raise StoppedError
    graded = tuple(
        Graded(answer=answer, code=code, grade=grade)
        for answer, code, grade in zip(answers, codes, grades, strict=True)
    )
    return Exam(graded=graded, tokens=sum(answer.tokens for answer in answers), seconds=seconds)


def _ask(
    work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str
) -> tuple[tuple[Answer, ...], float]:
    # torch is loaded here and nowhere above: what only reads results stays light.
    from longwatch.learn.student.generate import generate  # noqa: PLC0415 - see above

    requests = [
        Request(task=task.id, prompt=task.prompt, sample=sample)
        for task in tasks
        for sample in range(who.samples)
    ]
    with work.span("load", label), work.interruptible(StoppedError):
        loaded = _student(place.settings.student, who.adapter)
    done = 0

    def told(_: Answer) -> None:
        nonlocal done
        done += 1
        work.progress("generate", label, done=done, total=len(requests))

    with work.span("generate", label):
        made = generate(
            loaded, requests, who.sampling, batch=who.batch, should_stop=work.should_stop, on_answer=told
        )
    if made.left:
        raise StoppedError
    return made.answers, made.seconds


@lru_cache(maxsize=1)
def _student(settings: Student, adapter: Path | None) -> Any:
    """The student that answered last stays loaded: the next chunk is asked of the same one."""
    from longwatch.learn.student.load import load  # noqa: PLC0415 - torch is loaded with it

    return load(settings, adapter=adapter)


def forget_student() -> None:
    """Let go of the student, so that training has the memory."""
    _student.cache_clear()
