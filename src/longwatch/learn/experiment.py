"""One experiment's rounds: collect verified answers, train on them, evaluate on dev. Resumes after any death (L8 to L14).

It nominates at most one adapter and accepts nothing. Each stage leaves a file; training has its own checkpoints.
"""

import ast
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from longwatch.kernel import files, lease
from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn import adapters
from longwatch.learn.evidence import succeeded
from longwatch.learn.examining import Exam, Examinee, examine, forget_student
from longwatch.learn.place import Place
from longwatch.learn.settings import Teacher
from longwatch.learn.sides import tasks_of
from longwatch.learn.stages import StoppedError, staged
from longwatch.learn.steps import Challenger, LearnStep, RoundResult, Train, Trained
from longwatch.learn.student.answers import Sampling
from longwatch.learn.tasks import Language, Split, Task
from longwatch.learn.training.results import GaveUp, Paused, Progress, Report
from longwatch.learn.training.results import Trained as Fitted
from longwatch.learn.training.rows import Row

FENCED = "```{language}\n{code}\n```"
"""What a verified answer teaches: the whole answer in the form that is asked for."""


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """The examples of a round: what was asked, what passed, what is taught."""

    asked: int
    passed: int
    rows: tuple[Row, ...]
    own: int
    """Rows that the student wrote itself."""


class Meter:
    """Active seconds of one experiment over all its runs. A run that is killed loses its own at most (L14)."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self._path, self._limit_s = path, limit_s
        self._began_s = time.monotonic()
        self._before_s = float(path.read_text(encoding="ascii")) if path.exists() else 0.0

    @property
    def spent_s(self) -> float:
        """Seconds so far."""
        return self._before_s + time.monotonic() - self._began_s

    @property
    def over(self) -> bool:
        """True if the experiment has used its hours."""
        return self.spent_s >= self._limit_s

    def save(self) -> None:
        """Make the seconds so far durable."""
        files.replace(self._path, f"{self.spent_s:.3f}".encode())


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What all rounds of one experiment share."""

    meter: Meter

    work: Work[LearnStep]
    place: Place
    step: Train
    folder: Path
    train: tuple[Task, ...]
    dev: tuple[Task, ...]
    champion: Path | None


def perform(work: Work[LearnStep], step: Train, place: Place) -> Outcome:
    """Run the rounds under the experiment's own lock: a second worker on it is impossible."""
    folder = files.make_folder(place.experiment(step.number))
    held = lease.acquire(folder / "lock")
    meter = Meter(folder / "active-seconds", 3600 * place.settings.experiment.hours)
    try:
        return succeeded(_rounds(_course(work, step, place, folder, meter)))
    except StoppedError:
        return Stopped("Saved; it goes on where it stopped.")
    finally:
        meter.save()
        held.close()


def _course(work: Work[LearnStep], step: Train, place: Place, folder: Path, meter: Meter) -> Course:
    return Course(
        meter=meter,
        work=work,
        place=place,
        step=step,
        folder=folder,
        train=tasks_of(place.windows, step.window, Split.TRAIN),
        dev=tasks_of(place.windows, step.window, Split.DEV),
        champion=place.adapter(step.champion, step.number),
    )


def _rounds(course: Course) -> Trained:
    before = _greedy(course, course.step.champion, course.champion, "champion on dev")
    results: list[RoundResult] = []
    rows: tuple[Row, ...] = ()
    for number, batch in enumerate(_batches(course), 1):
        if course.meter.over:
            course.work.note(
                "hours.reached", f"The experiment has used its {course.meter.spent_s / 3600:.2f} hours."
            )
            break
        course.meter.save()
        folder = course.folder / f"round-{number}"
        collected = _collect(course, batch, number, folder)
        new = _new(rows, collected.rows)
        if not new:
            continue
        rows = (*rows, *new)
        fitted = _fit(course, rows, folder)
        if fitted is None:
            continue
        if isinstance(fitted, GaveUp):
            course.work.note("training.gave_up", f"Round {number}: {fitted.why}")
            continue
        after = _greedy(course, fitted.adapter, folder / "training" / "adapter", f"round {number} on dev")
        results.append(_result(number, collected, rows, fitted, after, before))
        _tell(course, results[-1], before)
    return _nomination(course, tuple(results), before)


def _batches(course: Course) -> Iterator[tuple[Task, ...]]:
    """Yield cumulative batches of new tasks, so many a round, in the registry's order (L8)."""
    size = course.place.settings.training.tasks_per_round
    for number in range(course.place.settings.experiment.rounds):
        batch = course.train[number * size : (number + 1) * size]
        if not batch:
            return
        yield batch


def _collect(course: Course, tasks: tuple[Task, ...], number: int, folder: Path) -> Collected:
    """Sample answers, keep the verified ones, and let the teacher fill the gaps (L9)."""
    recipe = course.place.settings.training
    sampling = _sampling(course, temperature=recipe.temperature, seed=recipe.seed + number)
    who = Examinee(
        name=course.step.champion,
        adapter=course.champion,
        sampling=sampling,
        samples=recipe.samples,
        batch=course.place.settings.student.batch,
    )

    def make() -> Collected:
        exam = examine(course.work, course.place, who, tasks, f"collect round {number}")
        own = list(_own_rows(tasks, exam))
        taught = {row.prompt for row in own}
        helped = _taught_rows(tasks, taught) if recipe.teacher is Teacher.REFERENCE else []
        return Collected(asked=len(exam.graded), passed=exam.passed, rows=(*own, *helped), own=len(own))

    return staged(folder / "collected.json", Collected, make)


def _own_rows(tasks: Sequence[Task], exam: Exam) -> Iterator[Row]:
    """The student's own verified answers, one for each way of writing it."""
    by_id = {task.id: task for task in tasks}
    seen: set[tuple[str, str]] = set()
    for one in exam.graded:
        task = by_id[one.answer.task]
        key = (task.id, normalised(one.code, task.language))
        if one.passed and key not in seen:
            seen.add(key)
            yield _row(task, one.code)


def _taught_rows(tasks: Sequence[Task], known: set[str]) -> list[Row]:
    return [_row(task, task.reference) for task in tasks if task.reference and task.prompt not in known]


def _row(task: Task, code: str) -> Row:
    return Row(prompt=task.prompt, answer=FENCED.format(language=task.language.value, code=code.strip()))


def normalised(code: str, language: Language) -> str:
    """Return the code without what does not matter, to tell equal answers: layout and comments of Python."""
    if language is Language.PYTHON:
        try:
            return ast.unparse(ast.parse(code))
        except (SyntaxError, ValueError, RecursionError):
            return code.strip()
    return " ".join(code.split())


def _new(rows: Sequence[Row], found: Sequence[Row]) -> tuple[Row, ...]:
    known = set(rows)
    return tuple(row for row in dict.fromkeys(found) if row not in known)


def _fit(course: Course, rows: tuple[Row, ...], folder: Path) -> Fitted | GaveUp | None:
    """Train, or return `None` if the experiment's hours ended in mid-training; its checkpoint stays."""

    def stop() -> bool:
        return course.work.should_stop() or course.meter.over

    def make() -> Fitted | GaveUp:
        # torch is loaded here and nowhere above.
        from longwatch.learn.student.load import load  # noqa: PLC0415 - see above
        from longwatch.learn.training.loop import train  # noqa: PLC0415 - see above
        from longwatch.learn.training.plan import Job  # noqa: PLC0415 - see above

        settings = course.place.settings
        forget_student()
        loaded = load(settings.student)
        job = Job(
            rows=rows,
            recipe=settings.training,
            folder=folder / "training",
            base=of_bytes(settings.student.model.encode()),
            start=course.champion,
        )
        with course.work.span("train", folder.name):
            result = train(
                job,
                loaded.model,
                loaded.tokenizer,
                should_stop=stop,
                report=lambda report: _show(course, folder.name, report),
            )
        if isinstance(result, Paused):
            raise StoppedError
        return result

    try:
        return staged(folder / "fitted.json", Fitted | GaveUp, make)  # type: ignore[arg-type]
    except StoppedError:
        if course.work.should_stop():
            raise
        return None


def _show(course: Course, label: str, report: Report) -> None:
    if isinstance(report, Progress):
        text = (
            f"{label}: loss {report.loss:.3f}, {report.tokens_per_s:.0f} tokens/s, {report.eta_s:.0f} s to go"
        )
        course.work.progress("train", text, done=report.step, total=report.steps)
    else:
        course.work.note(f"training.{type(report).__name__.lower()}", f"{label}: {report}")


def _greedy(course: Course, name: str, adapter: Path | None, label: str) -> Exam:
    who = Examinee(
        name=name,
        adapter=adapter,
        sampling=_sampling(course, temperature=0.0, seed=0),
        batch=course.place.settings.student.batch,
    )
    return examine(course.work, course.place, who, course.dev, label)


def _sampling(course: Course, *, temperature: float, seed: int) -> Sampling:
    student = course.place.settings.student
    return Sampling(
        temperature=temperature,
        seed=seed,
        max_new_tokens=student.max_new_tokens,
        max_prompt_tokens=student.max_prompt_tokens,
    )


def _result(  # noqa: PLR0917 - one row of a table
    number: int, collected: Collected, rows: tuple[Row, ...], fitted: Fitted, after: Exam, before: Exam
) -> RoundResult:
    if len(after.graded) != len(before.graded):
        raise LongwatchError("the development answers of champion and challenger do not match")
    return RoundResult(
        round=number,
        collected=collected.asked,
        passed=collected.passed,
        examples=len(rows),
        steps=fitted.steps,
        loss_first=fitted.losses[0],
        loss_last=fitted.losses[-1],
        dev_passed=after.passed,
        dev_total=len(after.graded),
        adapter=fitted.adapter,
    )


def _tell(course: Course, result: RoundResult, before: Exam) -> None:
    course.work.note(
        "round.finished",
        f"Round {result.round}: {result.passed} of {result.collected} answers verified, {result.examples} examples, loss "
        f"{result.loss_first:.2f} -> {result.loss_last:.2f}, dev {before.passed} -> {result.dev_passed} of {result.dev_total}.",
    )


def _nomination(course: Course, results: tuple[RoundResult, ...], before: Exam) -> Trained:
    total = len(before.graded)
    best = max(results, key=lambda result: (result.dev_passed, -result.round), default=None)
    if best is None or best.dev_passed <= before.passed:
        why = "no round was better on dev than the champion" if results else "no example was verified"
        return Trained(rounds=results, dev_before=before.passed, dev_total=total, reason=why)
    source = course.folder / f"round-{best.round}" / "training" / "adapter"
    _keep(course, source, best.adapter)
    challenger = Challenger(
        adapter=best.adapter,
        round=best.round,
        dev_before=before.passed,
        dev_after=best.dev_passed,
        dev_total=total,
    )
    return Trained(rounds=results, dev_before=before.passed, dev_total=total, challenger=challenger)


def _keep(course: Course, source: Path, adapter: str) -> None:
    """Put the nominated adapter where later steps look for it, by its digest."""
    contents = adapters.read(source)
    folder = files.make_folder(course.folder / "nominated" / adapter)
    for name, data in contents.items():
        files.replace(folder / name, data)
