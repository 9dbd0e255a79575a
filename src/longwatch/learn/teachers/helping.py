"""The teacher that the settings name, asked about the tasks that the student did not solve.

Whoever it is, only what passed the same tests in the same sandbox is taught. Where it fails, an experiment goes on without
it and says so, unless the settings say that it is required.
"""

import os
from collections.abc import Iterable, Sequence

import msgspec

from longwatch.kernel.errors import AuthError, BudgetError, ConfigError, NotReadyError, TransientError
from longwatch.kernel.program import Work
from longwatch.learn.examining import grade
from longwatch.learn.grading import extract
from longwatch.learn.normalised import code_key
from longwatch.learn.place import Place
from longwatch.learn.steps import LearnStep
from longwatch.learn.student.answers import Request, Sampling, seed_of
from longwatch.learn.tasks import Task, Verdict
from longwatch.learn.teachers import local
from longwatch.learn.teachers.asking import Desk, Heard, ask
from longwatch.learn.teachers.endpoint import Question, Said
from longwatch.learn.teachers.provenance import Provenance, Solution, Teacher, references
from longwatch.learn.teachers.purse import Purse

_ITS_FAILURES = (AuthError, BudgetError, ConfigError, NotReadyError, TransientError)
"""A damaged ledger is none of them: it stops the watch, whatever the settings say."""
_MOST_SEED = 2**31
"""Many endpoints take no larger one."""


class Helped(msgspec.Struct, frozen=True, kw_only=True):
    """What a teacher did in a round. Counts of answers, except where it says tasks."""

    tasks: int = 0
    """Tasks that the student did not solve, ..."""
    solved: int = 0
    """... and those of them that the teacher did."""
    answers: int = 0
    kept: int = 0
    """So many of them were paid for before."""
    unanswered: tuple[tuple[str, int], ...] = ()
    """Why there was no answer, or none that can be graded, and how often."""
    failure: str = ""
    """Why the teacher was given up before all was asked."""
    solutions: tuple[Solution, ...] = ()


def helped(work: Work[LearnStep], place: Place, experiment: int, tasks: Sequence[Task], label: str) -> Helped:
    """Return what the configured teacher makes of these tasks.

    Raises:
        StoppedError: a pause, a stop or the end of the hours came first; what was answered is kept.
        LongwatchError: it failed, and is required.
    """
    match place.settings.training.teacher:
        case Teacher.NONE:
            return Helped(tasks=len(tasks))
        case Teacher.REFERENCE:
            return _counted(tasks, Helped(solutions=references(tuple(tasks))))
        case teacher if not tasks:
            return Helped()
        case teacher:
            ask_it = _model if teacher is Teacher.MODEL else _endpoint
    try:
        found = _counted(tasks, ask_it(work, place, experiment, tasks, label))
    except _ITS_FAILURES as error:
        if place.settings.teacher.required:
            raise
        found = Helped(tasks=len(tasks), failure=work.redactor.text(str(error)))
    _tell(work, place, label, found)
    return found


def key_of(name: str) -> str:
    """Return the API key in an environment variable; empty if no variable is named.

    Raises:
        AuthError: there is no such variable, or what it holds is no key. The value is never in the message.
    """
    if not name:
        return ""
    value = os.environ.get(name, "").strip()
    if not value:
        raise AuthError(
            f"the environment variable {name} of [teacher] key is not set: export it before `run`"
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise AuthError(f"the environment variable {name} of [teacher] key holds no API key: set it anew")
    return value


def _model(
    work: Work[LearnStep], place: Place, _experiment: int, tasks: Sequence[Task], label: str
) -> Helped:
    exam, solutions = local.solve(work, place, tasks, label)
    return Helped(answers=len(exam.graded), solutions=solutions)


def _endpoint(
    work: Work[LearnStep], place: Place, experiment: int, tasks: Sequence[Task], label: str
) -> Helped:
    teaching = place.settings.teacher
    desk = Desk(
        teaching=teaching,
        key=key_of(teaching.key),
        purse=Purse(place.teacher, teaching, experiment),
        redactor=work.redactor,
        should_stop=work.should_stop,
        progress=lambda done, total: work.progress("teach", label, done=done, total=total),
    )
    with work.span("teach", label):
        heard = ask(desk, tuple(_questions(place, tasks)))
    if heard.failure is not None and teaching.required:
        raise heard.failure
    return _judged(work, place, tasks, heard, label)


def _questions(place: Place, tasks: Sequence[Task]) -> Iterable[Question]:
    """The same task is the same question in every round and experiment, so that it is paid for once."""
    teaching, seed = place.settings.teacher, place.settings.training.seed
    sampling = Sampling(temperature=teaching.temperature, seed=seed)
    for task in tasks:
        for sample in range(teaching.samples):
            request = Request(task=task.id, prompt=task.prompt, sample=sample)
            drawn = seed_of(sampling, request) % _MOST_SEED
            yield Question(task=task.id, prompt=task.prompt, sample=sample, seed=drawn)


def _judged(work: Work[LearnStep], place: Place, tasks: Sequence[Task], heard: Heard, label: str) -> Helped:
    """Grade what was said as the student's answers are graded."""
    by_id = {task.id: task for task in tasks}
    answered = [(question, said) for question, said in heard.said if not said.problem]
    codes = [
        (extract(said.text, by_id[question.task].language), by_id[question.task])
        for question, said in answered
    ]
    grades = grade(work, place, codes, label)
    counts = dict(heard.unanswered)
    for _, said in heard.said:
        if said.problem:
            counts[said.problem] = counts.get(said.problem, 0) + 1
    return Helped(
        answers=len(heard.said),
        kept=heard.kept,
        unanswered=tuple(sorted(counts.items())),
        failure=str(heard.failure or ""),
        solutions=tuple(
            Solution(task=task.id, code=code, provenance=_provenance(place, question, said))
            for (question, said), (code, task), found in zip(answered, codes, grades, strict=True)
            if found.verdict is Verdict.PASS
        ),
    )


def _provenance(place: Place, question: Question, said: Said) -> Provenance:
    teaching = place.settings.teacher
    used = said.used(teaching)
    return Provenance(
        teacher=Teacher.ENDPOINT,
        model=said.model or teaching.model,
        origin=teaching.origin,
        request=said.request,
        seed=question.seed if teaching.seed_field else None,
        asked_tokens=said.asked_tokens,
        answered_tokens=said.answered_tokens,
        usd=used.usd if used else 0.0,
        at=said.at,
    )


def _counted(tasks: Sequence[Task], found: Helped) -> Helped:
    """Count tasks, and keep of answers that are the same but for their names the first one."""
    languages = {task.id: task.language for task in tasks}
    distinct: dict[tuple[str, str], Solution] = {}
    for one in found.solutions:
        distinct.setdefault((one.task, code_key(languages[one.task], one.code)), one)
    solved = len({task for task, _ in distinct})
    return msgspec.structs.replace(found, tasks=len(tasks), solved=solved, solutions=tuple(distinct.values()))


def _tell(work: Work[LearnStep], place: Place, label: str, found: Helped) -> None:
    teaching = place.settings.teacher
    missing = ", ".join(f"{count} {why}" for why, count in found.unanswered)
    text = (
        f"{label}: {teaching.model} answered {found.answers} times ({found.kept} kept from before) and solved "
        f"{found.solved} of the {found.tasks} tasks that the student did not{f'; no use: {missing}' if missing else ''}."
    )
    unanswered = sum(count for _, count in found.unanswered)
    counts = {
        "tasks": found.tasks,
        "solved": found.solved,
        "answers": found.answers,
        "unanswered": unanswered,
    }
    work.note("teacher.asked", text, **counts)
    if found.failure:
        work.note("teacher.failed", f"{label} goes on without the teacher: {found.failure}")
