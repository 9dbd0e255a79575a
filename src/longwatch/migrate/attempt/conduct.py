"""One attempt: the worker in a sandbox, at a private clone; then what it left is taken out, bound and compared.

Nothing the worker says is believed here. A run that ended well gives at most a *candidate*: a commit that our own
verification looks at later, in a checkout that the worker never touched.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import FailureClass, InterruptedWorkError, LongwatchError
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.line import Failure, Lost, Outcome, Stopped
from longwatch.kernel.process import run, tail
from longwatch.kernel.program import Work, failure_of
from longwatch.migrate import budget, patterns
from longwatch.migrate.attempt.claims import Claim, Unreadable, claimed
from longwatch.migrate.attempt.desk import Desk, fence_around, known, prepare, request
from longwatch.migrate.attempt.trace.model import TraceState
from longwatch.migrate.attempt.trace.watch import TraceMonitor
from longwatch.migrate.attempt.workers import (
    Launch,
    RunEnd,
)
from longwatch.migrate.evidence import failed, succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.repository import checkout, fence, harvest
from longwatch.migrate.settings import Interrupted, MigrateSettings
from longwatch.migrate.steps import Attempt, Candidate, MigrateStep, Refusal, Refused, Usage, Worked

LATER = frozenset({FailureClass.TRANSIENT, FailureClass.QUOTA, FailureClass.AUTH})
"""Trouble of the provider, not of the work: the watch waits or stops, and no attempt is consumed."""
UNCOUNTED = LATER | {FailureClass.BUDGET}
"""What is no attempt's fault: to try again with the same budget would spend it again (specification K26)."""


def perform(work: Work[MigrateStep], step: Attempt, place: Place) -> Outcome:
    """Let the worker work once, and return what is left of its claim."""
    desk = prepare(work, step, place)
    before = _fence(work, desk)
    launch = desk.adapter.prepare(request(desk))
    record, state = _run(work, desk, launch)
    try:
        outcome = _left(work, desk, before, record, state)
    except LongwatchError as error:
        # Whatever it is: the worker has worked, and its cost is charged.
        return failed(failure_of(error, work.redactor), _usage(desk, state))
    checkout.remove(desk.clone.parent, place.work)
    return outcome


def _left(
    work: Work[MigrateStep], desk: Desk, before: fence.Fence, record: ProcessRecord, state: TraceState
) -> Outcome:
    place = desk.place
    moved = fence.differences(before, _fence(work, desk), growing=(place.watch.receipts, place.evidence))
    if moved:
        raise InterruptedWorkError(
            f"{desk.step.title}: protected things changed while the worker ran: {'; '.join(moved)}. "
            "Look at them; nothing of this attempt was taken."
        )
    return _judge(work, desk, record, state)


def _fence(work: Work[MigrateStep], desk: Desk) -> fence.Fence:
    landing = desk.settings.worker.max_parallel > 1
    return fence_around(work, desk.place, desk.git, desk.queue, landing=landing)


def _run(work: Work[MigrateStep], desk: Desk, launch: Launch) -> tuple[ProcessRecord, TraceState]:
    worker = desk.settings.worker
    limits = _limits(desk.settings)
    plan = desk.bench.plan(
        desk.clone,
        # What a worker's own test runs would leave beside the sources is none of its work.
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        readonly=(*launch.readonly, *_protected_mounts(desk)),
        writable=launch.writable,
        network=worker.network or launch.network,
        nested=launch.nested,
        limits=limits,
    )
    monitor = TraceMonitor(desk.adapter.trace(), desk.adapter.patience(worker))
    command = Command(
        argv=desk.bench.sandbox.wrap(launch.argv, plan),
        cwd=desk.clone,
        environment={**plan.environment, **launch.environment},
        log=desk.kept / "worker.log",
        limits=limits,
        phase="worker",
        contained=desk.bench.sandbox.contained,
        stdin=launch.stdin,
        secrets=tuple(value for name in worker.environment if (value := os.environ.get(name))),
    )
    with work.span("worker", desk.step.title):
        record = run(command, monitor=_Shown(work, desk, monitor), should_stop=work.should_stop)
    work.record(record)
    if monitor.state.first_action_s is not None:
        work.note(
            "worker.first_action",
            f"{desk.step.title}: first action after {monitor.state.first_action_s:.1f} s.",
            step=desk.step.id,
            after_s=monitor.state.first_action_s,
        )
    return record, monitor.state


def _protected_mounts(desk: Desk) -> tuple[tuple[Path, Path], ...]:
    """Protected files that exist are mounted read-only over the clone (specification M15); new ones are found later."""
    inside = desk.bench.inside(desk.clone)
    entries = desk.git.ls_tree(desk.step.baseline)
    rule = desk.protected
    held = (e.path for e in entries if e.mode.startswith("100") and e.path not in desk.card.owned)
    paths = [path for path in held if rule.matches(patterns.fold(path))]
    return tuple((desk.clone / path, inside / path) for path in paths[:_MOST_MOUNTS])


_MOST_MOUNTS = 200


class _Shown:
    """Hands the worker's output to the trace, and shows its progress."""

    def __init__(self, work: Work[MigrateStep], desk: Desk, inner: TraceMonitor) -> None:
        self._work, self._desk, self._inner = work, desk, inner
        self._shown_s = -1.0

    def line(self, line: bytes, elapsed_s: float) -> None:
        self._inner.line(line, elapsed_s)

    def reason_to_end(self, elapsed_s: float) -> str | None:
        state = self._inner.state
        if elapsed_s - self._shown_s >= 1.0:
            self._shown_s = elapsed_s
            spent = f", {state.live_tokens:,} tokens" if state.live_tokens else ""
            doing = f", {state.current}" if state.current else ""
            text = f"{self._desk.step.title}: {state.actions} actions{spent}{doing}"
            self._work.progress("worker", text, idle_s=elapsed_s - state.last_activity_s)
        return _overrun(self._desk, state) or self._inner.reason_to_end(elapsed_s)


def _overrun(desk: Desk, state: TraceState) -> str:
    """Return why it must not go on; what has ended costs what it costs."""
    if state.ended is not None:
        return ""
    return budget.overrun(desk.settings.budget, state.live_tokens, state.cost_usd)


def _limits(settings: MigrateSettings) -> Limits:
    worker = settings.worker
    return Limits(
        wall_s=worker.wall_s,
        idle_s=worker.idle_s,
        log_bytes=worker.log_bytes,
        memory_bytes=worker.memory_bytes,
        processes=worker.processes,
        file_bytes=worker.file_bytes,
        free_disk_bytes=settings.host.free_disk_bytes // 2,
    )


# -- what is left of it


def _judge(work: Work[MigrateStep], desk: Desk, record: ProcessRecord, state: TraceState) -> Outcome:
    usage = _usage(desk, state)
    if record.limit is LimitHit.STOPPED or work.should_stop():
        return Stopped(_salvaged(desk))
    if desk.bench.killed(record):
        return Lost(f"{desk.step.title}: its worker was killed from outside. {_salvaged(desk)}".strip())
    end = RunEnd(
        exit_code=record.exit_code,
        limit=record.limit,
        limit_detail=record.limit_detail,
        log_tail=tail(Path(record.log), 12),
    )
    failure = _spent(desk, state) or desk.adapter.classify(state, end, datetime.now(UTC))
    if failure is not None:
        return _troubled(work, desk, failure, state)
    raw = _raw_answer(desk, state)
    with work.span("harvest"):
        taken = harvest.harvest(desk.git, desk.step.baseline, desk.clone, desk.kept)
    claim = claimed(
        raw,
        desk.nonce,
        taken,
        owned=desk.card.owned,
        protected=desk.protected,
        known=known(desk),
    )
    if isinstance(raw, bytes):
        files.replace(desk.kept / "answer.json", raw[: 1024 * 1024])
    if claim.refused:
        return succeeded(Refused(kind=claim.kind, reasons=claim.refused, usage=usage))
    return succeeded(Worked(candidate=_candidate(desk, claim, taken), usage=usage))


def _spent(desk: Desk, state: TraceState) -> Failure | None:
    why = _overrun(desk, state)
    return Failure(kind=FailureClass.BUDGET, message=f"the worker was ended: {why}") if why else None


def _raw_answer(desk: Desk, state: TraceState) -> bytes | Unreadable | None:
    """Return what the worker answered; something that is no small file that we may read is no answer."""
    try:
        return desk.adapter.answer(state, desk.clone.parent / "out" / "result.json")
    except LongwatchError as error:
        return Unreadable(str(error))


def _candidate(desk: Desk, claim: Claim, taken: harvest.Harvest) -> Candidate:
    step = desk.step
    paths = tuple(change.path for change in taken.changes)
    message = f"{desk.card.title}\n\n{claim.summary}\n"
    commit = step.baseline
    if paths:
        commit = harvest.candidate(
            desk.git, step.baseline, taken.tree, message, f"{harvest.CANDIDATES}{step.folder}"
        )
    return Candidate(
        attempt=step.folder,
        number=step.number,
        nonce=desk.nonce,
        baseline=step.baseline,
        commit=commit,
        tree=taken.tree,
        paths=paths,
        summary=claim.summary,
        reason=claim.reason,
        dirty_before=desk.dirty,
        declared=claim.declared,
    )


def _troubled(work: Work[MigrateStep], desk: Desk, failure: Failure, state: TraceState) -> Outcome:
    """Tell provider trouble from work trouble: only the first leaves the attempt uncounted (specification M9, M10)."""
    usage = _usage(desk, state)
    log = str(desk.kept / "worker.log")
    message = f"{failure.message.rstrip('.')}. The log is {log}."
    changed = harvest.harvest(desk.git, desk.step.baseline, desk.clone, desk.kept).changes
    cut = failure.kind is FailureClass.INTERRUPTED or (failure.kind in LATER and changed)
    if cut and desk.settings.worker.interrupted is Interrupted.RECONCILE:
        _salvaged(desk)
        paths = ", ".join(change.path for change in changed[:20])
        text = f"{message} Changed so far: {paths}." if changed else message
        return failed(Failure(kind=FailureClass.INTERRUPTED, message=text, log=log), usage)
    if failure.kind in UNCOUNTED or (_never_began(desk, state) and not changed):
        _note_salvage(work, desk)
        return failed(
            Failure(kind=failure.kind, message=message, retry_after_s=failure.retry_after_s, log=log), usage
        )
    _note_salvage(work, desk)
    return succeeded(Refused(kind=Refusal.CLAIM, reasons=(message,), usage=usage))


def _never_began(desk: Desk, state: TraceState) -> bool:
    """The model did nothing, whatever the reason: no work and no claim that an attempt could be spent on.

    A program that gives no signs of a model cannot tell.
    """
    watched = desk.adapter.patience(desk.settings.worker) is not None
    return watched and state.first_action_s is None


def _note_salvage(work: Work[MigrateStep], desk: Desk) -> None:
    kept = _salvaged(desk)
    if kept:
        work.note("attempt.salvaged", f"{desk.step.title}: {kept}")


def _salvaged(desk: Desk) -> str:
    """Keep the partial work as a patch for the person."""
    kept = harvest.salvage(
        desk.git, desk.step.baseline, desk.clone, desk.kept, patch=desk.kept / "salvage.patch"
    )
    return f"Its partial work is kept in {kept.patch}." if kept.patch else ""


def _usage(desk: Desk, state: TraceState) -> Usage:
    """Return what is known of the cost. What was seen of a run that was cut counts if it is more than the reservation."""
    if desk.adapter.unserved(state):
        return Usage(tokens=0, usd=0.0)
    seen = state.live_tokens if state.live_tokens > desk.settings.budget.tokens_per_attempt else None
    return Usage(tokens=seen if state.tokens is None else state.tokens.total, usd=state.cost_usd)
