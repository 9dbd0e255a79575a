"""Base and champion on a public benchmark, greedy, one attempt: it reports and never decides (L22 to L25)."""

from pathlib import Path

from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.learn.acceptance import mcnemar
from longwatch.learn.comparing import pairs_of
from longwatch.learn.evidence import succeeded
from longwatch.learn.examining import Exam, Examinee, examine
from longwatch.learn.grading import grade_all
from longwatch.learn.place import Place
from longwatch.learn.sources import humaneval
from longwatch.learn.stages import StoppedError
from longwatch.learn.steps import BASE, Audit, Audited, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.tasks import Task, Verdict


def perform(work: Work[LearnStep], step: Audit, place: Place) -> Outcome:
    """Audit; unchanged weights reuse the grades that are kept."""
    tasks = humaneval.load(Path(place.settings.audit.humaneval))
    try:
        _prove(work, tasks)
        base = _exam(work, place, BASE, step, tasks)
        champion = _exam(work, place, step.champion, step, tasks)
    except StoppedError:
        return Stopped("It goes on task by task.")
    pairs = [pair for pair in pairs_of(tasks, base, champion) if not pair.infra]
    gained = sum(pair.difference > 0 for pair in pairs)
    lost = sum(pair.lost for pair in pairs)
    return succeeded(
        Audited(
            benchmark="HumanEval (Python)",
            base_passed=base.passed,
            champion_passed=champion.passed,
            total=len(pairs),
            gained=gained,
            lost=lost,
            p=mcnemar(gained, lost),
        )
    )


def _prove(work: Work[LearnStep], tasks: tuple[Task, ...]) -> None:
    """The reference solutions run first: a broken toolchain voids the audit instead of scoring 0 (L23)."""
    with work.span("grade", "references"):
        grades = list(grade_all([(task.reference, task) for task in tasks], should_stop=work.should_stop))
    if len(grades) < len(tasks):
        raise StoppedError
    failed = [grade.task for grade in grades if grade.verdict is not Verdict.PASS]
    if failed:
        raise IntegrityError(
            f"{len(failed)} reference solutions do not pass here ({', '.join(failed[:5])}): no audit."
        )


def _exam(work: Work[LearnStep], place: Place, name: str, step: Audit, tasks: tuple[Task, ...]) -> Exam:
    student = place.settings.student
    sampling = Sampling(
        max_new_tokens=max(student.max_new_tokens, 384), max_prompt_tokens=student.max_prompt_tokens
    )
    who = Examinee(
        name=name, adapter=place.adapter(name, step.number), sampling=sampling, batch=student.batch
    )
    return examine(work, place, who, tasks, f"audit, {name[:12]}")
