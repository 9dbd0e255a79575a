"""The student answers tasks and is graded. Equal work is done once: answers and grades are kept by all that they depend on.

Answers are kept by who was asked what, and how (L15); grades by the answers, the tests and what grades. So nothing that
was measured differently is ever taken for the same, and what our own trouble hid is graded again without asking again.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from longwatch.kernel.digest import Digest, of_bytes
from longwatch.kernel.errors import IntegrityError, NotReadyError
from longwatch.kernel.program import Work
from longwatch.learn import adapters
from longwatch.learn.acceptance import FlipRate
from longwatch.learn.grading import extract, grade_all, identity
from longwatch.learn.place import Place
from longwatch.learn.settings import Student
from longwatch.learn.stages import StoppedError, staged
from longwatch.learn.steps import LearnStep
from longwatch.learn.student.answers import Answer, Generation, Request, Sampling
from longwatch.learn.student.binding import ScoreBinding, bind
from longwatch.learn.tasks import Grade, Task, Verdict


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """One answer with its grade."""

    answer: Answer
    code: str
    grade: Grade
    seconds: float
    """From the moment when its batch was asked until it was there."""

    @property
    def passed(self) -> bool:
        """True if the answer passed its tests."""
        return self.grade.verdict is Verdict.PASS


class Exam(msgspec.Struct, frozen=True, kw_only=True):
    """All answers to a set of tasks, in the order of the tasks and their samples."""

    binding: ScoreBinding
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
    again: bool = False
    """Asked a second time, for the A/A flip rate: its first answers are not taken for these."""


class _Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, before anybody graded it."""

    answers: tuple[Answer, ...]
    answer_s: tuple[float, ...]
    seconds: float


def examine(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> Exam:
    """Return the exam of a student on these tasks; what was answered before under the same binding is reused.

    Raises:
        StoppedError: a pause or stop came first; finished batches are kept.
        IntegrityError: the adapter's folder holds another adapter.
    """
    # The first time in a program it loads torch, and for a new model it reads all of its files.
    with work.interruptible(StoppedError):
        binding = bind(place.settings.student, batch=who.batch, sampling=who.sampling)
    parted = parts(tasks, who.batch)
    exams = [
        _part(work, place, who, binding, part, f"{label} ({number} of {len(parted)})")
        for number, part in enumerate(parted, 1)
    ]
    return Exam(
        binding=binding,
        graded=tuple(one for exam in exams for one in exam.graded),
        tokens=sum(exam.tokens for exam in exams),
        seconds=sum(exam.seconds for exam in exams),
    )


def parts(tasks: Sequence[Task], batch: int) -> list[tuple[Task, ...]]:
    """Part the tasks evenly into what is generated, and kept, together: no more tasks than a batch has rows. Pure.

    A greedy answer hangs on the rows beside it, and these must be the same after a kill: so an exam is kept by whole
    batches, and a pause or a kill costs one of them. Where several answers to a task are drawn, a part is that many
    batches, whose rows fill each other's gaps: one at a time would take a quarter longer.
    """
    count = -(-len(tasks) // batch)
    edges = [number * len(tasks) // count for number in range(count + 1)] if count else []
    return [tuple(tasks[start:end]) for start, end in pairwise(edges)]


def _part(  # noqa: PLR0917 - who, what and where
    work: Work[LearnStep],
    place: Place,
    who: Examinee,
    binding: ScoreBinding,
    tasks: tuple[Task, ...],
    label: str,
) -> Exam:
    asked = _key(binding, who.name, who.again, who.samples, [(task.id, task.prompt) for task in tasks])
    said = staged(
        place.grades / f"{asked}.answers.json", _Answered, lambda: _ask(work, place, who, tasks, label)
    )
    codes = _codes(tasks, said.answers)
    graded = _key(asked, identity((task.language for task in tasks), place.settings.where), tasks)
    grades = staged(
        place.grades / f"{graded}.grades.json",
        tuple[Grade, ...],
        lambda: _grade(work, place, codes, label),
        # What our own trouble hid is graded again the next time: a kept one would hide it for ever.
        keep=lambda found: all(one.verdict is not Verdict.INFRA for one in found),
    )
    return Exam(
        binding=binding,
        graded=tuple(
            Graded(answer=answer, code=code, grade=grade, seconds=seconds)
            for answer, (code, _), grade, seconds in zip(
                said.answers, codes, grades, said.answer_s, strict=True
            )
        ),
        tokens=sum(answer.tokens for answer in said.answers),
        seconds=said.seconds,
    )


def _key(*parts: object) -> Digest:
    return of_bytes(msgspec.json.encode(parts))


def _codes(tasks: Sequence[Task], answers: Sequence[Answer]) -> list[tuple[str, Task]]:
    by_id = {task.id: task for task in tasks}
    return [(extract(answer.text, by_id[answer.task].language), by_id[answer.task]) for answer in answers]


def grade(
    work: Work[LearnStep], place: Place, codes: Sequence[tuple[str, Task]], label: str
) -> tuple[Grade, ...]:
    """Return the grades of code that somebody else wrote; equal code and tests are graded once.

    Raises:
        StoppedError: a pause or stop came first.
    """
    key = _key(identity((task.language for _, task in codes), place.settings.where), codes)
    return staged(
        place.grades / f"{key}.grades.json",
        tuple[Grade, ...],
        lambda: _grade(work, place, list(codes), label),
        keep=lambda found: all(one.verdict is not Verdict.INFRA for one in found),
    )


def _grade(
    work: Work[LearnStep], place: Place, codes: list[tuple[str, Task]], label: str
) -> tuple[Grade, ...]:
    with work.span("grade", label):
        grades = tuple(
            grade_all(
                codes,
                progress=lambda done: work.progress("grade", label, done=done, total=len(codes)),
                should_stop=work.should_stop,
                where=place.settings.where,
            )
        )
    if len(grades) < len(codes):
        raise StoppedError
    return grades


def _ask(work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str) -> _Answered:
    # torch is loaded with it: whoever only has this module's types stays light.
    from longwatch.learn.student.generate import generate  # noqa: PLC0415 - see above
    from longwatch.learn.student.load import measured  # noqa: PLC0415 - see above

    requests = [
        Request(task=task.id, prompt=task.prompt, sample=sample)
        for task in tasks
        for sample in range(who.samples)
    ]
    with work.span("load", label), work.interruptible(StoppedError):
        loaded = _student(place.settings.student, who.name, who.adapter)
    answer_s: dict[tuple[str, int], float] = {}
    began_s = time.monotonic()

    def told(answer: Answer) -> None:
        answer_s[answer.task, answer.sample] = time.monotonic() - began_s
        work.progress("generate", label, done=len(answer_s), total=len(requests))

    # What a stop cuts is asked again as a whole, so it need not wait for the end of a step.
    with work.span("generate", label), measured(), work.interruptible(StoppedError):
        made = generate(
            loaded, requests, who.sampling, batch=who.batch, should_stop=work.should_stop, on_answer=told
        )
    if made.left:
        raise StoppedError
    _whole(made, who)
    return _Answered(
        answers=made.answers,
        answer_s=tuple(answer_s[answer.task, answer.sample] for answer in made.answers),
        seconds=made.seconds,
    )


def _whole(made: Generation, who: Examinee) -> None:
    """Refuse greedy answers of a halved batch: they would pass for those of the whole one (L15)."""
    if made.halved and who.sampling.temperature == 0:
        raise NotReadyError(
            f"the accelerator had memory for {made.batch} answers at once, not for {who.batch}, and their scores could not be "
            f"compared: free its memory, or set [student] batch to {made.batch}"
        )


@lru_cache(maxsize=1)
def _student(settings: Student, name: str, adapter: Path | None) -> Any:
    """The student that answered last stays loaded: the next batch is asked of the same one."""
    from longwatch.learn.student.load import load  # noqa: PLC0415 - torch is loaded with it

    verify(name, adapter)
    return load(settings, adapter=adapter)


def verify(name: str, adapter: Path | None) -> None:
    """Return if the folder holds the adapter that is meant; there is nothing to verify of base.

    Raises:
        IntegrityError: it holds another one, or none.
    """
    if adapter is not None and adapters.digest_of(adapter) != name:
        raise IntegrityError(f"{adapter} does not hold adapter {name}: it was damaged or exchanged")


def forget_student() -> None:
    """Let go of the student, so that training has the memory."""
    _student.cache_clear()


def flip_rate(
    work: Work[LearnStep], place: Place, who: Examinee, tasks: Sequence[Task], label: str
) -> FlipRate:
    """Return how often a student's passing answers fail when it is asked again: the A/A run (L15).

    It is asked at the same batch size in other company (every other task, then the rest), because that is all that differs
    between two students on the same tasks beside their weights. Measured once for a student and a binding, on the tasks
    where it is first wanted; it is a property of these, and shown with all of their scores.
    """

    def make() -> FlipRate:
        first = examine(work, place, who, tasks, f"A/A, {label}")
        second = msgspec.structs.replace(who, again=True)
        halves = [
            examine(work, place, second, half, f"A/A again, {label}") for half in (tasks[::2], tasks[1::2])
        ]
        verdicts = {one.answer.task: one.grade.verdict for half in halves for one in half.graded}
        repeated = [
            verdicts[one.answer.task]
            for one in first.graded
            if one.passed and verdicts[one.answer.task] is not Verdict.INFRA
        ]
        return FlipRate(flipped=repeated.count(Verdict.FAIL), repeated=len(repeated))

    binding = bind(place.settings.student, batch=who.batch, sampling=who.sampling)
    home = replace(place, exams_of=None).grades
    return staged(home / f"{_key(binding, who.name)}.flips.json", FlipRate, make)
