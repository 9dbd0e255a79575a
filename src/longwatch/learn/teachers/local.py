"""A larger model on this machine as the teacher: it is asked and graded exactly as the student is."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import NotReadyError
from longwatch.kernel.program import Work
from longwatch.learn.examining import Exam, Examinee, examine, forget_student
from longwatch.learn.place import Place
from longwatch.learn.settings import Student
from longwatch.learn.steps import BASE, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.tasks import Task
from longwatch.learn.teachers.provenance import Provenance, Solution, Teacher


def solve(
    work: Work[LearnStep], place: Place, tasks: Sequence[Task], label: str
) -> tuple[Exam, tuple[Solution, ...]]:
    """Return the exam of the larger model on these tasks, and what of it passed.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first; finished batches are kept.
        ConfigError: the model is not here, or cannot be loaded.
        NotReadyError: the device has no memory for it.
    """
    import torch  # noqa: PLC0415 - only child programs load torch

    # One model at a time: the student is loaded again when it is asked again.
    forget_student()
    try:
        exam = examine(work, _with_teacher(place), _examinee(place), tasks, label)
    except torch.OutOfMemoryError as error:
        mend = "free some, set [teacher] device or batch, or choose a smaller [teacher] model"
        raise NotReadyError(
            f"there is no memory for the teacher {place.settings.teacher.model}: {mend}"
        ) from error
    finally:
        forget_student()
    at = stamp(now().wall_s)
    return exam, tuple(
        Solution(
            task=one.answer.task,
            code=one.code,
            provenance=Provenance(
                teacher=Teacher.MODEL,
                model=place.settings.teacher.model,
                seed=one.answer.seed,
                asked_tokens=one.answer.prompt_tokens,
                answered_tokens=one.answer.tokens,
                at=at,
            ),
        )
        for one in exam.graded
        if one.passed
    )


def _with_teacher(place: Place) -> Place:
    """The same place, in which the teacher is the model that is loaded."""
    teaching, student = place.settings.teacher, place.settings.student
    teacher = Student(
        model=teaching.model,
        device=teaching.device,
        batch=teaching.batch,
        max_new_tokens=teaching.max_new_tokens,
        max_prompt_tokens=student.max_prompt_tokens,
    )
    return replace(place, settings=msgspec.structs.replace(place.settings, student=teacher))


def _examinee(place: Place) -> Examinee:
    teaching = place.settings.teacher
    sampling = Sampling(
        temperature=teaching.temperature,
        seed=place.settings.training.seed,
        max_new_tokens=teaching.max_new_tokens,
        max_prompt_tokens=place.settings.student.max_prompt_tokens,
    )
    return Examinee(
        name=BASE, adapter=None, sampling=sampling, samples=teaching.samples, batch=teaching.batch
    )
