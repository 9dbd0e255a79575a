"""Finishing a task: the repository's own generators, in the sandbox, in a private clone (specification M32).

They are trusted no more than a worker: what they changed is harvested, and proved later in a clean checkout.
"""

import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Command
from longwatch.kernel.errors import InterruptedWorkError, TransientError
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.process import run, tail
from longwatch.kernel.program import Work
from longwatch.migrate.attempt.desk import fence_around
from longwatch.migrate.bench import Bench, bench_of
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import INSIDE, Place
from longwatch.migrate.queue import authority, survey
from longwatch.migrate.queue.guarding import generator_problems
from longwatch.migrate.repository import checkout, fence, harvest
from longwatch.migrate.repository.git import Git
from longwatch.migrate.steps import Candidate, Done, Handoff, MigrateStep, Refusal, Refused, Usage, Worked

TASK, FACTS = "LONGWATCH_TASK", "LONGWATCH_HANDOFF"
_FREE = Usage(tokens=0, usd=0.0)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What generators are told, in the JSON file that `LONGWATCH_HANDOFF` names."""

    task: str
    manifest: str
    """Where the task's manifest belongs."""
    parent: str
    """The parent manifest, which stays as it is."""
    jobs: tuple[Done, ...]
    """The verified jobs, with commit, receipt, paths and units."""


class Workplace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the generators work."""

    place: Place
    git: Git
    step: Handoff
    queue: survey.Read
    clone: Path
    kept: Path
    bench: Bench


def perform(work: Work[MigrateStep], step: Handoff, place: Place) -> Outcome:
    """Run the generators, and return what they changed as a candidate."""
    here = _prepare(work, step, place)
    before = fence_around(work, place, here.git, here.queue)
    refused = _generate(work, here)
    moved = fence.differences(before, fence_around(work, place, here.git, here.queue))
    if moved:
        raise InterruptedWorkError(
            f"{step.title}: protected things changed while the generators ran: {'; '.join(moved)}. Look at them."
        )
    if work.should_stop():
        return Stopped("The generators begin again at the next run.")
    outcome = _refused(refused) if refused else _harvested(work, here)
    checkout.remove(here.clone.parent, place.work)
    return outcome


def _prepare(work: Work[MigrateStep], step: Handoff, place: Place) -> Workplace:
    with work.span("prepare"):
        git, queue = Git.open(place.repository), survey.read(place)
        if queue.card(step.job, step.card) is None or git.head() != step.baseline:
            raise TransientError(
                f"{step.title}: queue or branch changed since they were surveyed.", retry_after_s=0.0
            )
        name = f"{step.job}.{step.number}"
        clone = place.work / name / "repo"
        checkout.remove(clone.parent, place.work)
        checkout.private_clone(git, step.baseline, clone)
        programs = tuple(argv[0] for argv in place.profile.queue.handoff)
        return Workplace(
            place=place,
            git=git,
            step=step,
            queue=queue,
            clone=clone,
            kept=files.make_folder(place.attempt(name)),
            bench=bench_of(place, programs),
        )


def _generate(work: Work[MigrateStep], here: Workplace) -> tuple[str, ...]:
    """Run each generator; return why one of them may not run, or failed."""
    objections = tuple(f"{one.where}: {one.mend}" for one in generator_problems(here.place))
    if objections:
        return objections
    for number, argv in enumerate(here.place.profile.queue.handoff, 1):
        if work.should_stop():
            break
        command = _command(here, argv, here.kept / f"generator-{number}.log")
        with work.span("handoff", f"{here.step.task}: {argv[0]}"):
            record = run(command, should_stop=work.should_stop)
        work.record(record)
        if not record.ok:
            how = record.limit_detail or f"exit code {record.exit_code}"
            return (f"generator `{' '.join(argv)}` failed ({how}). Its last lines:\n{tail(command.log, 20)}",)
    return ()


def _command(here: Workplace, argv: tuple[str, ...], log: Path) -> Command:
    facts = here.clone.parent / "facts"
    files.replace(files.make_folder(facts) / "handoff.json", _facts(here))
    inside = INSIDE.parent / "facts" if here.bench.sandbox.confines else facts
    sandbox, worker = here.place.settings.sandbox, here.place.settings.worker
    limits = Limits(
        wall_s=worker.wall_s,
        log_bytes=worker.log_bytes,
        memory_bytes=sandbox.check_memory_bytes,
        processes=sandbox.check_processes,
    )
    plan = here.bench.plan(
        here.clone,
        environment={
            TASK: here.step.task,
            FACTS: str(inside / "handoff.json"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        readonly=((facts, inside),),
        limits=limits,
    )
    return Command(
        argv=here.bench.sandbox.wrap(argv, plan),
        cwd=here.clone,
        environment=dict(plan.environment),
        log=log,
        limits=limits,
        phase="handoff",
        contained=here.bench.sandbox.contained,
    )


def _facts(here: Workplace) -> bytes:
    task = here.step.task
    manifest = authority.manifest_path(here.place.profile.queue, task)
    told = Facts(task=task, manifest=manifest, parent=here.queue.parent, jobs=here.step.done)
    return msgspec.json.format(msgspec.json.encode(told), indent=2)


def _harvested(work: Work[MigrateStep], here: Workplace) -> Outcome:
    step = here.step
    with work.span("harvest"):
        taken = harvest.harvest(here.git, step.baseline, here.clone, here.kept)
    if taken.refused:
        return _refused(taken.refused)
    if not taken.changes:
        return _refused(
            ("the generators changed nothing: a handoff writes the manifest and moves the pointer",)
        )
    paths = tuple(change.path for change in taken.changes)
    verified = tuple(overwritten(step, paths))
    if verified:
        return _refused(verified)
    name = f"{step.job}.{step.number}"
    summary = f"{step.task} is finished: {len(step.done)} verified jobs."
    message = f"Hand off {step.task}\n\n{summary}\n"
    commit = harvest.candidate(here.git, step.baseline, taken.tree, message, f"{harvest.CANDIDATES}{name}")
    candidate = Candidate(
        attempt=name,
        number=step.number,
        nonce=secrets.token_hex(16),
        baseline=step.baseline,
        commit=commit,
        tree=taken.tree,
        paths=paths,
        summary=summary,
        dirty_before=here.git.dirty_paths(),
        covered=tuple(dict.fromkeys(unit for one in step.done for unit in one.units)),
    )
    return succeeded(Worked(candidate=candidate, usage=_FREE))


def overwritten(step: Handoff, paths: Iterable[str]) -> Iterator[str]:
    """Pure: yield each verified file that generators changed; what was verified stays as it was."""
    owners = {path: one.job for one in step.done for path in one.paths}
    for path in paths:
        if path in owners:
            yield f"{path}: it was verified as {owners[path]}'s, and a handoff leaves it as it is"


def _refused(reasons: tuple[str, ...]) -> Outcome:
    return succeeded(Refused(kind=Refusal.CHANGE, reasons=reasons, failing=("generators",), usage=_FREE))
