"""The exported files sit the champion's exam: the sealed tasks, greedy, at the same batch size, loaded from the new files.

Its lost tasks are held against the champion's own A/A flip rate, by the same rule as a challenger's (L15, L18).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, RefusedError, TransientError
from longwatch.kernel.program import Work
from longwatch.kernel.watch import Watch
from longwatch.learn.acceptance import FlipRate, Lost, is_void, lost
from longwatch.learn.comparing import side_by_side
from longwatch.learn.examining import Exam, Examinee, examine, flip_rate, forget_student
from longwatch.learn.place import Place
from longwatch.learn.settings import Student
from longwatch.learn.stages import MAX_BYTES
from longwatch.learn.steps import BASE, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import comparable
from longwatch.learn.tasks import Task

_MAY_DIFFER = frozenset({"base", "tokenizer"})
"""It is another model now; all else of what a score is bound to is equal."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What the exported model and the champion made of the same tasks."""

    tasks: int
    champion_passed: int
    exported_passed: int
    same: int
    """Answers that are equal to the letter."""
    lost: Lost
    flips: FlipRate
    """Of the champion."""
    environment: str

    @property
    def sentence(self) -> str:
        """The whole result, for a person."""
        return (
            f"{self.exported_passed} of {self.tasks} sealed tasks passed, the champion {self.champion_passed}, "
            f"{self.same} answers equal to the letter; {self.lost.sentence}; {self.flips.sentence}"
        )


def scratch_of(place: Place, folder: Path) -> Place:
    """Return a place for exams in an empty folder, with the grades that the watch has: nothing is written into the watch."""
    scratch = replace(place, watch=Watch(folder))
    files.make_folder(scratch.grades)
    for path in place.grades.glob("*.json"):
        files.show(scratch.grades / path.name, files.read_bounded(path, MAX_BYTES))
    return scratch


def prove(  # noqa: PLR0917 - who, where, and what is asked
    work: Work[LearnStep],
    scratch: Place,
    champion: Digest,
    adapter: Path,
    exported: Path,
    tasks: Sequence[Task],
) -> Evaluation:
    """Return the evaluation of exported files.

    Raises:
        RefusedError: more answers flipped than the A/A rate explains, or the champion passes none of the tasks.
        TransientError: too much of the grading was our own trouble.
    """
    champion_exam, flips = _champion(work, scratch, champion, adapter, tasks)
    forget_student()
    exam = _exported(work, scratch, exported, tasks)
    forget_student()
    found = _evaluation(tasks, champion_exam, exam, flips)
    if found.lost.alarm:
        raise RefusedError(
            f"the exported model is not the champion any more: {found.sentence}. Lost are {', '.join(found.lost.tasks[:10])}. "
            "Nothing was exported; a finer --type keeps more"
        )
    return found


def _champion(
    work: Work[LearnStep], scratch: Place, champion: Digest, adapter: Path, tasks: Sequence[Task]
) -> tuple[Exam, FlipRate]:
    who = _examinee(scratch.settings.student, champion, adapter)
    exam = examine(work, scratch, who, tasks, "champion")
    if not exam.passed:
        raise RefusedError(
            f"the champion passes none of the {len(tasks)} sealed tasks, so nothing would show whether an export is still the "
            "same model: nothing was exported"
        )
    return exam, flip_rate(work, scratch, who, tasks, "champion")


def _exported(work: Work[LearnStep], scratch: Place, exported: Path, tasks: Sequence[Task]) -> Exam:
    student = msgspec.structs.replace(scratch.settings.student, model=str(exported))
    place = replace(scratch, settings=msgspec.structs.replace(scratch.settings, student=student))
    return examine(work, place, _examinee(student, BASE, None), tasks, "exported model")


def _examinee(student: Student, name: str, adapter: Path | None) -> Examinee:
    sampling = Sampling(max_new_tokens=student.max_new_tokens, max_prompt_tokens=student.max_prompt_tokens)
    return Examinee(name=name, adapter=adapter, sampling=sampling, batch=student.batch)


def _evaluation(tasks: Sequence[Task], champion: Exam, exported: Exam, flips: FlipRate) -> Evaluation:
    found = comparable(champion.binding, exported.binding)
    others = [one for one in found if one.split(":")[0] not in _MAY_DIFFER]
    if others:
        raise IntegrityError(f"champion and export were measured differently: {'; '.join(others)}")
    pairs = side_by_side(tasks, champion, exported)
    if is_void(pairs):
        raise TransientError("too many answers were not graded: `longwatch doctor` looks for the cause")
    texts = zip(champion.graded, exported.graded, strict=True)
    return Evaluation(
        tasks=len(pairs),
        champion_passed=champion.passed,
        exported_passed=exported.passed,
        same=sum(mine.answer.text == theirs.answer.text for mine, theirs in texts),
        lost=lost(pairs, flips),
        flips=flips,
        environment=exported.binding.environment,
    )
