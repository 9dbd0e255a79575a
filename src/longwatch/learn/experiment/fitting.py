"""Fitting: the champion's adapter is trained on a round's examples and the replay (L11, L12)."""

from collections.abc import Sequence
from pathlib import Path

from longwatch.learn import sealed
from longwatch.learn.examining import forget_student
from longwatch.learn.experiment import examples
from longwatch.learn.experiment.course import Course
from longwatch.learn.experiment.examples import Example
from longwatch.learn.stages import StoppedError, staged
from longwatch.learn.student.binding import base_digest
from longwatch.learn.training.results import (
    ForeignTrainingError,
    GaveUp,
    Paused,
    Progress,
    Report,
    Result,
    Trained,
)


def adapter_of(course: Course, number: int) -> Path:
    """Where the adapter of a round is, once it is trained."""
    return course.folder_of(number) / "training" / "adapter"


def fit(course: Course, taught: Sequence[Example], number: int) -> Trained | GaveUp:
    """Train on these examples and the replay, go on with a training that stopped or died, or read what came of it.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first; its checkpoint stays.
    """

    def make() -> Trained | GaveUp:
        result = _trained(course, (*taught, *course.replayed), number)
        if isinstance(result, Paused):
            raise StoppedError
        return result

    path = course.folder_of(number) / "fitted.json"
    return staged(path, Trained | GaveUp, make)  # type: ignore[arg-type] # a union is no class, and msgspec takes it


def _trained(course: Course, taught: Sequence[Example], number: int) -> Result:
    """Go on with what was begun; where a continued experiment cannot, its half training is set aside, and one begins anew."""
    try:
        return _train(course, taught, number)
    except ForeignTrainingError as error:
        if not course.step.continued:
            raise
        folder = adapter_of(course, number).parent
        aside = folder.with_name(f"aside-{sum(1 for _ in folder.parent.glob('aside-*'))}")
        sealed.rename(folder, aside)
        course.work.note(
            "training.restarted", f"Round {number} is trained anew, {aside.name} is left: {error}"
        )
        return _train(course, taught, number)


def _train(course: Course, taught: Sequence[Example], number: int) -> Result:
    work, settings = course.work, course.place.settings
    forget_student()
    label = f"round {number}"
    with work.span("load", label), work.interruptible(StoppedError):
        # torch is loaded here and nowhere above.
        from longwatch.learn.student.load import cores, load  # noqa: PLC0415 - see above
        from longwatch.learn.training.loop import train  # noqa: PLC0415 - see above
        from longwatch.learn.training.plan import Job  # noqa: PLC0415 - see above

        base, student = base_digest(settings.student), load(settings.student)
    job = Job(
        rows=examples.rows(taught),
        recipe=settings.training,
        folder=adapter_of(course, number).parent,
        base=base,
        start=course.champion,
        threads=cores(),
    )
    with work.span("train", label):
        return train(
            job,
            student.model,
            student.tokenizer,
            should_stop=work.should_stop,
            report=lambda report: _show(course, label, report),
        )


def _show(course: Course, label: str, report: Report) -> None:
    if isinstance(report, Progress):
        text = f"{label}: loss {report.loss:.3f}, {report.tokens_per_s:.0f} tokens/s"
        course.work.progress("train", text, done=report.step, total=report.steps)
    else:
        course.work.note(f"training.{type(report).__name__.lower()}", f"{label}: {report.sentence}")
