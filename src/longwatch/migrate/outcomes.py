"""What an outcome changes in a migrate watch's state. Pure: one function per kind of step."""

from typing import TypeVar

import msgspec

from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Failed, Lost, Outcome, Stopped, Succeeded
from longwatch.migrate import budget
from longwatch.migrate.settings import Interrupted, MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import (
    Attempt,
    Candidate,
    Commit,
    Committed,
    Evidence,
    Handoff,
    Held,
    Merge,
    MigrateStep,
    Push,
    Pushed,
    Refusal,
    Refused,
    Spent,
    Survey,
    Surveyed,
    Usage,
    Verified,
    Verify,
    Worked,
)

SAME_FAILURES = 3
"""So many times the same failing set in a row means: unfixable here (specification K28)."""

Said = tuple[Note, ...]
E = TypeVar("E")


def after(  # noqa: PLR0911 - a table, one row for each kind of step
    settings: MigrateSettings, state: MigrateState, step: MigrateStep, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    """Return the state after an outcome, and the events that explain it."""
    match step:
        case Survey():
            return _surveyed(state, outcome, now)
        case Attempt():
            return _attempted(settings, state, step, outcome, now)
        case Handoff():
            return _generated(settings, state, step, outcome, now)
        case Verify():
            return _verified(settings, state, step, outcome, now)
        case Merge():
            return _merged(settings, state, step, outcome, now)
        case Commit():
            return _committed(settings, state, step, outcome, now)
        case Push():
            return _pushed(state, step, outcome)


def _surveyed(state: MigrateState, outcome: Outcome, now: Instant) -> tuple[MigrateState, Said]:
    if not isinstance(outcome, Succeeded):
        return state, ()
    survey = msgspec.json.decode(outcome.evidence, type=Surveyed)
    # At the queue's end the last task is remembered: nothing but an accepted handoff may lead on from it (M5).
    task = state.task if survey.problem else survey.task or state.task
    moved = msgspec.structs.replace(state, survey=survey, surveyed_at=now, task=task)
    if state.head or survey.problem:
        return moved, ()
    note = Note("baseline.adopted", f"The baseline is {survey.head[:12]}.", {"commit": survey.head})
    return msgspec.structs.replace(moved, head=survey.head), (note,)


def _attempted(
    settings: MigrateSettings, state: MigrateState, step: Attempt, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    job = msgspec.structs.replace(state.jobs.get(step.job, Job()), number=step.number, card=step.card)
    usage = _usage(outcome)
    if usage is None:
        return _with(msgspec.structs.replace(state, surveyed_at=None), step.job, job), ()
    charged = budget.charge(settings.budget, state, usage)
    moved, said = _ended(settings, charged, step, job, outcome, now)
    return moved, (*budget.charged(settings.budget, step, usage), *said)


def _ended(  # noqa: PLR0917 - what it takes to judge one attempt
    settings: MigrateSettings, state: MigrateState, step: Attempt, job: Job, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    match outcome:
        case Succeeded(evidence):
            found = _evidence(evidence)
            if isinstance(found, Worked):
                ready = msgspec.structs.replace(
                    job, status=Status.CANDIDATE, candidate=found.candidate, lost=0
                )
                return _with(state, step.job, ready), (_claimed(step, found),)
            return _refused(settings, state, step.job, job, found, now)
        case Failed():
            return _with(msgspec.structs.replace(state, surveyed_at=None), step.job, job), ()
        case Lost(what):
            return _cut(settings, state, step, job, what, now)
        case Stopped(what):
            note = Note(
                "attempt.stopped", f"{step.title} was ended on request and does not count. {what}".strip()
            )
            return _with(state, step.job, job), (note,)


def _generated(
    settings: MigrateSettings, state: MigrateState, step: Handoff, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    job = msgspec.structs.replace(state.jobs.get(step.job, Job()), number=step.number, card=step.card)
    if not isinstance(outcome, Succeeded):
        return _with(msgspec.structs.replace(state, surveyed_at=None), step.job, job), ()
    found = _evidence(outcome.evidence)
    if not isinstance(found, Worked):
        return _refused(settings, state, step.job, job, found, now)
    ready = msgspec.structs.replace(job, status=Status.CANDIDATE, candidate=found.candidate)
    note = Note(
        "handoff.generated",
        f"{step.task}: the generators changed {len(found.candidate.paths)} files.",
        {"task": step.task},
    )
    return _with(state, step.job, ready), (note,)


def _verified(
    settings: MigrateSettings, state: MigrateState, step: Verify, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    job = state.jobs[step.job]
    if not isinstance(outcome, Succeeded):
        return state, ()
    found = _evidence(outcome.evidence)
    if not isinstance(found, Verified):
        return _refused(settings, state, step.job, job, _blamed(step.candidate, found), now)
    note = Note(
        "job.verified",
        f"{step.job}: verified ({', '.join(found.checks)}).",
        {"job": step.job, "receipt": found.receipt, "commit": step.candidate.commit},
    )
    if step.candidate.commit == step.candidate.baseline == state.head:
        closed = _done(_proved(job, found), found.receipt, step.candidate.baseline)
        unchanged = Note(
            "job.done",
            f"{step.job}: no change was needed. {step.candidate.reason}".strip(),
            {"job": step.job},
        )
        # What the last look said of its old receipt no longer holds.
        return _with(msgspec.structs.replace(state, surveyed_at=None), step.job, closed), (note, unchanged)
    ready = msgspec.structs.replace(_proved(job, found), status=Status.VERIFIED, receipt=found.receipt)
    return _with(state, step.job, ready), (note,)


def _blamed(candidate: Candidate, found: Evidence) -> Evidence:
    """Count no refusal against an attempt that passed alone and does not on what landed meanwhile."""
    if not candidate.merged or not isinstance(found, Refused):
        return found
    onto = f"It passed alone; merged onto {candidate.baseline[:12]}, which landed meanwhile, it does not"
    return msgspec.structs.replace(
        found, kind=Refusal.MERGE, counts=False, failing=(), reasons=(onto, *found.reasons)
    )


def _merged(
    settings: MigrateSettings, state: MigrateState, step: Merge, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    job = state.jobs[step.job]
    if not isinstance(outcome, Succeeded):
        return state, ()
    found = _evidence(outcome.evidence)
    if not isinstance(found, Worked):
        return _refused(settings, state, step.job, job, found, now)
    note = Note(
        "job.merged",
        f"{step.job}: merged onto {step.onto[:12]}, which landed meanwhile; the checks run again.",
        {"job": step.job, "onto": step.onto, "commit": found.candidate.commit},
    )
    again = msgspec.structs.replace(job, status=Status.CANDIDATE, candidate=found.candidate)
    return _with(state, step.job, again), (note,)


def _committed(
    settings: MigrateSettings, state: MigrateState, step: Commit, outcome: Outcome, now: Instant
) -> tuple[MigrateState, Said]:
    job = state.jobs[step.job]
    if not isinstance(outcome, Succeeded):
        return state, ()
    found = _evidence(outcome.evidence)
    if isinstance(found, Held):
        return _with(state, step.job, msgspec.structs.replace(job, held=found.reason)), ()
    if not isinstance(found, Committed):
        return _refused(settings, state, step.job, job, found, now)
    data = {"job": step.job, "commit": found.commit, "receipt": step.receipt}
    note = Note("job.committed", f"{step.job}: committed as {found.commit[:12]}.", data)
    moved = msgspec.structs.replace(state, head=found.commit, surveyed_at=None)
    if settings.publish.push:
        waiting = msgspec.structs.replace(job, status=Status.COMMITTED, commit=found.commit)
        return _with(moved, step.job, waiting), (note,)
    return _with(moved, step.job, _done(job, step.receipt, found.commit)), (note, *_over(step.job, job))


def _pushed(state: MigrateState, step: Push, outcome: Outcome) -> tuple[MigrateState, Said]:
    if not isinstance(outcome, Succeeded):
        return state, ()
    found = _evidence(outcome.evidence)
    job = state.jobs[step.job]
    if not isinstance(found, Pushed):
        raise TypeError(f"a push left {type(found).__name__}")
    note = Note(
        "job.pushed",
        f"{step.job}: the remote shows {found.commit[:12]}.",
        {"job": step.job, "commit": found.commit},
    )
    return _with(state, step.job, _done(job, job.receipt, found.commit)), (note, *_over(step.job, job))


def _over(name: str, job: Job) -> Said:
    done = Note("job.done", f"{name}: done.", {"job": name})
    if job.handed_to is None:
        return (done,)
    successor = job.handed_to or "the end of the queue"
    handed = Note(
        "task.handed_off", f"{name}: accepted; next is {successor}.", {"job": name, "next": job.handed_to}
    )
    return (done, handed)


def _proved(job: Job, found: Verified) -> Job:
    """Keep what the verification saw of the source system."""
    declared = job.candidate.declared if job.candidate else None
    units = declared.units if declared else ()
    return msgspec.structs.replace(job, units=units, references=found.references, handed_to=found.handed_to)


def _refused(  # noqa: PLR0917 - what it takes to judge one attempt
    settings: MigrateSettings, state: MigrateState, name: str, job: Job, found: Evidence, now: Instant
) -> tuple[MigrateState, Said]:
    if not isinstance(found, Refused):
        raise TypeError(f"{name} left {type(found).__name__}")
    failing = (*job.failing, found.failing)
    attempts = job.attempts + found.counts
    reason = "; ".join(found.reasons)
    unfixable = bool(found.failing) and failing[-SAME_FAILURES:] == (found.failing,) * SAME_FAILURES
    last = attempts >= settings.worker.max_attempts or unfixable
    if last:
        why = (
            "unfixable here, the same checks failed each time"
            if unfixable
            else f"{attempts} attempts were refused"
        )
        reason = f"{reason} ({why})"
    refused = msgspec.structs.replace(
        job,
        status=Status.BLOCKED if last else Status.RETRY_PENDING,
        attempts=attempts,
        lost=0,
        failure=reason,
        failing=failing,
        candidate=None,
        held="",
        not_before=Deadline(since=now, delay_s=settings.worker.retry_delay_s),
    )
    note = Note(
        f"attempt.refused.{found.kind}", f"{name}: attempt {job.number} refused: {reason}", {"job": name}
    )
    blocked = (Note("job.blocked", f"{name}: blocked. {reason}", {"job": name}),) if last else ()
    return _with(msgspec.structs.replace(state, surveyed_at=None), name, refused), (note, *blocked)


def _cut(  # noqa: PLR0917 - what it takes to judge one attempt
    settings: MigrateSettings, state: MigrateState, step: Attempt, job: Job, what: str, now: Instant
) -> tuple[MigrateState, Said]:
    note = Note("attempt.lost", what, {"job": step.job})
    state = msgspec.structs.replace(state, surveyed_at=None)
    if settings.worker.interrupted is Interrupted.RECONCILE:
        held = msgspec.structs.replace(state, unsettled=what)
        return _with(held, step.job, job), (note,)
    lost = job.lost + 1
    delay_s = min(settings.worker.retry_delay_s * (lost - 1), settings.backoff.max_s)
    again = msgspec.structs.replace(
        job, status=Status.RETRY_PENDING, lost=lost, not_before=Deadline(since=now, delay_s=delay_s)
    )
    return _with(state, step.job, again), (note,)


def _claimed(step: Attempt, found: Worked) -> Note:
    paths = f"{len(found.candidate.paths)} changed files" if found.candidate.paths else "no change"
    return Note(
        "attempt.claimed",
        f"{step.title} claims to be done: {paths}. {found.candidate.summary}",
        {"job": step.job},
    )


def _done(job: Job, receipt: str, commit: str) -> Job:
    """Close a job. One that needed no change still answers for the paths it verified before."""
    paths = job.candidate.paths if job.candidate and job.candidate.paths else job.paths
    return msgspec.structs.replace(
        job,
        status=Status.DONE,
        paths=paths,
        receipt=receipt,
        commit=commit,
        candidate=None,
        failure="",
        failing=(),
        attempts=0,
    )


def _with(state: MigrateState, name: str, job: Job) -> MigrateState:
    return msgspec.structs.replace(state, jobs={**state.jobs, name: job})


def _evidence(raw: msgspec.Raw) -> Evidence:
    return msgspec.json.decode(raw, type=Evidence)


def _usage(outcome: Outcome) -> Usage | None:
    """Return what an attempt cost; `None` if no worker began. Of one that was cut nobody knows (specification M11)."""
    match outcome:
        case Succeeded(evidence):
            found = _evidence(evidence)
            return found.usage if isinstance(found, Refused | Worked) else Usage()
        case Failed(_, evidence):
            spent = msgspec.json.decode(evidence, type=Spent | None)
            return None if spent is None else spent.usage
        case _:
            return Usage()
