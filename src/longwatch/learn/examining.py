"""The student answers tasks and is graded. Equal work is done once: grades are kept by all that they depend on (L15)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.program import Work
from longwatch.learn.grading import extract, grade_all
from longwatch.learn.place import Place
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


def examine(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> Exam:
    """Return the exam of a student on these tasks; one that was taken before under the same binding is reused.

    Raises:
        StoppedError: a pause or stop came first.
    """
    key = of_bytes(
        msgspec.json.encode((who.name, who.sampling, who.samples, who.batch, place.settings.student, tasks))
    )
    return staged(place.grades / f"{key}.json", Exam, lambda: _take(work, place, who, tasks, label))


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
    from longwatch.learn.student.load import load, release  # noqa: PLC0415 - see above

    requests = [
        Request(task=task.id, prompt=task.prompt, sample=sample)
        for task in tasks
        for sample in range(who.samples)
    ]
    with work.span("load", label):
        loaded = load(place.settings.student, adapter=who.adapter)
    done = 0

    def told(_: Answer) -> None:
        nonlocal done
        done += 1
        work.progress("generate", label, done=done, total=len(requests))

    with work.span("generate", label):
        made = generate(
            loaded, requests, who.sampling, batch=who.batch, should_stop=work.should_stop, on_answer=told
        )
    release(loaded.device)
    if made.left:
        raise StoppedError
    return made.answers, made.seconds
