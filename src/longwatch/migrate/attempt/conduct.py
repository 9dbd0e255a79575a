"""One attempt: the worker in a sandbox, at a private clone; then what it left is taken out, bound and compared.

Nothing the worker says is believed here. A run that ended well gives at most a *candidate*: a commit that our own
verification looks at later, in a checkout that the worker never touched.
"""

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import FailureClass, InterruptedWorkError, LongwatchError, TransientError
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.line import Failure, Outcome, Stopped
from longwatch.kernel.process import run, tail
from longwatch.kernel.program import Work
from longwatch.migrate import patterns
from longwatch.migrate.attempt.claims import Claim, Unreadable, claimed
from longwatch.migrate.attempt.gate import pass_gate
from longwatch.migrate.attempt.prompt import PromptFacts, render, rules_of
from longwatch.migrate.attempt.result import RESULT_SCHEMA
from longwatch.migrate.attempt.trace.model import TraceState
from longwatch.migrate.attempt.trace.watch import TraceMonitor
from longwatch.migrate.attempt.workers import (
    WORKERS,
    Launch,
    Mount,
    RunEnd,
    WorkerAdapter,
    WorkRequest,
)
from longwatch.migrate.bench import Bench, bench_of
from longwatch.migrate.checks.protection import protection
from longwatch.migrate.evidence import failed, succeeded
from longwatch.migrate.place import INSIDE, Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.cards import Card, checks_of
from longwatch.migrate.repository import checkout, fence, harvest
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import Interrupted, MigrateSettings
from longwatch.migrate.steps import Attempt, Candidate, MigrateStep, Refusal, Refused, Usage, Worked

WHERE_TO_ANSWER = {
    "command": "the file whose path stands in the environment variable LONGWATCH_RESULT",
    "replay": "the file whose path stands in the environment variable LONGWATCH_RESULT",
    "codex": "your last message, and nothing else in it",
    "claude": "the structured output of this session",
}
LATER = frozenset({FailureClass.TRANSIENT, FailureClass.QUOTA, FailureClass.AUTH})
"""Trouble of the provider, not of the work: the watch waits or stops, and no attempt is consumed."""


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """Where one attempt works."""

    place: Place
    git: Git
    card: Card
    step: Attempt
    clone: Path
    kept: Path
    """What stays of the attempt."""
    nonce: str
    bench: Bench
    adapter: WorkerAdapter
    dirty: tuple[str, ...]
    protected: patterns.Patterns

    @property
    def settings(self) -> MigrateSettings:
        """Return the watch's settings."""
        return self.place.settings


def perform(work: Work[MigrateStep], step: Attempt, place: Place) -> Outcome:
    """Let the worker work once, and return what is left of its claim."""
    desk = _prepare(work, step, place)
    protected = (place.watch.config, place.prompt, place.cards, place.watch.keys, place.watch.receipts)
    before = fence.take(desk.git, place.settings.repository.branch, protected)
    launch = desk.adapter.prepare(_request(desk))
    record, state = _run(work, desk, launch)
    after = fence.take(desk.git, place.settings.repository.branch, protected)
    moved = fence.differences(before, after)
    if moved:
        raise InterruptedWorkError(
            f"{step.title}: protected things changed while the worker ran: {'; '.join(moved)}. "
            "Look at them; nothing of this attempt was taken."
        )
    outcome = _judge(work, desk, record, state)
    checkout.remove(desk.clone.parent, place.work)
    return outcome


def _prepare(work: Work[MigrateStep], step: Attempt, place: Place) -> Desk:
    with work.span("prepare"):
        git = Git.open(place.repository)
        card = next((card for card in survey.read(place) if card.id == step.job), None)
        if card is None or card.digest != step.card or git.head() != step.baseline:
            raise TransientError(
                f"{step.title}: card or branch changed since they were surveyed.", retry_after_s=0.0
            )
        name = f"{step.job}.{step.number}"
        kept = files.make_folder(place.attempt(name))
        pass_gate(work, place, kept)
        files.replace(kept / "baseline", step.baseline.encode())
        clone = place.work / name / "repo"
        checkout.remove(clone.parent, place.work)
        checkout.private_clone(git, step.baseline, clone)
        programs = (*place.settings.worker.argv[:1], *(check.argv[0] for check in place.settings.checks))
        return Desk(
            place=place,
            git=git,
            card=card,
            step=step,
            clone=clone,
            kept=kept,
            nonce=secrets.token_hex(16),
            bench=bench_of(place, programs),
            dirty=git.dirty_paths(),
            protected=protection(
                place.settings,
                checks_of(card, place.settings.checks),
                (entry.path for entry in git.ls_tree(step.baseline)),
            ),
            adapter=WORKERS[place.settings.worker.adapter](),
        )


def _request(desk: Desk) -> WorkRequest:
    settings = desk.settings
    protected = (*patterns.PROTECTED, *settings.repository.protected)
    facts = PromptFacts(
        title=desk.card.title,
        card=desk.card.body,
        owned=desk.card.owned,
        checks=checks_of(desk.card, settings.checks),
        nonce=desk.nonce,
        schema=RESULT_SCHEMA.decode(),
        result=WHERE_TO_ANSWER[settings.worker.adapter],
        rules=rules_of(desk.card),
        failure=desk.step.failure,
        done=desk.step.done,
        protected=protected,
    )
    template = files.read_bounded(desk.place.prompt, 1024 * 1024).decode("utf-8")
    prompt = render(template, facts, file=str(desk.place.prompt))
    files.replace(desk.kept / "prompt.md", prompt.encode())
    return WorkRequest(
        prompt=prompt,
        nonce=desk.nonce,
        schema=RESULT_SCHEMA,
        job=desk.step.job,
        number=desk.step.number,
        settings=settings.worker,
        environment={name: os.environ[name] for name in settings.worker.environment if name in os.environ},
        search_path=os.environ.get("PATH", ""),
        home=Path.home(),
        base=desk.place.watch.root,
        workdir=desk.bench.inside(desk.clone),
        private=_mount(desk, "private"),
        answer=_answer(desk),
        confined=desk.bench.sandbox.confines,
        budget_usd=settings.budget.usd_per_attempt,
    )


def _mount(desk: Desk, name: str) -> Mount:
    """Return a folder of this attempt alone, and where it stands inside."""
    host = files.make_folder(desk.clone.parent / name)
    return host, (INSIDE.parent / name if desk.bench.sandbox.confines else host)


def _answer(desk: Desk) -> Mount:
    host, inside = _mount(desk, "out")
    return host / "result.json", inside / "result.json"


def _run(work: Work[MigrateStep], desk: Desk, launch: Launch) -> tuple[ProcessRecord, TraceState]:
    worker = desk.settings.worker
    plan = desk.bench.plan(
        desk.clone,
        # What a worker's own test runs would leave beside the sources is none of its work.
        environment={"PYTHONDONTWRITEBYTECODE": "1"},
        readonly=(*launch.readonly, *_protected_mounts(desk)),
        writable=launch.writable,
        network=worker.network or launch.network,
        nested=launch.nested,
    )
    monitor = TraceMonitor(desk.adapter.trace(), desk.adapter.patience(worker))
    command = Command(
        argv=desk.bench.sandbox.wrap(launch.argv, plan),
        cwd=desk.clone,
        environment={**plan.environment, **launch.environment},
        log=desk.kept / "worker.log",
        limits=_limits(desk.settings),
        phase="worker",
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
            text = f"{self._desk.step.title}: {state.actions} actions{', ' + state.current if state.current else ''}"
            self._work.progress("worker", text, idle_s=elapsed_s - state.last_activity_s)
        return self._inner.reason_to_end(elapsed_s)


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
    usage = _usage(state)
    if record.limit is LimitHit.STOPPED or work.should_stop():
        return Stopped(_salvaged(desk))
    end = RunEnd(
        exit_code=record.exit_code,
        limit=record.limit,
        limit_detail=record.limit_detail,
        log_tail=tail(Path(record.log), 12),
    )
    failure = desk.adapter.classify(state, end, datetime.now(UTC))
    if failure is not None:
        return _troubled(work, desk, failure, usage)
    raw = _raw_answer(desk, state)
    with work.span("harvest"):
        taken = harvest.harvest(desk.git, desk.step.baseline, desk.clone, desk.kept)
    claim = claimed(
        raw,
        desk.nonce,
        taken,
        owned=desk.card.owned,
        protected=desk.protected,
    )
    if isinstance(raw, bytes):
        files.replace(desk.kept / "answer.json", raw[: 1024 * 1024])
    if claim.refused:
        return succeeded(Refused(kind=claim.kind, reasons=claim.refused, usage=usage))
    return succeeded(Worked(candidate=_candidate(desk, claim, taken), usage=usage))


def _raw_answer(desk: Desk, state: TraceState) -> bytes | Unreadable | None:
    """Return what the worker answered; something that is no small file that we may read is no answer."""
    try:
        return desk.adapter.answer(state, desk.clone.parent / "out" / "result.json")
    except LongwatchError as error:
        return Unreadable(str(error))


def _candidate(desk: Desk, claim: Claim, taken: harvest.Harvest) -> Candidate:
    step = desk.step
    paths = tuple(change.path for change in taken.changes)
    name = f"{step.job}.{step.number}"
    message = f"{desk.card.title}\n\n{claim.summary}\n"
    commit = step.baseline
    if paths:
        commit = harvest.candidate(
            desk.git, step.baseline, taken.tree, message, f"{harvest.CANDIDATES}{name}"
        )
    return Candidate(
        attempt=name,
        number=step.number,
        nonce=desk.nonce,
        baseline=step.baseline,
        commit=commit,
        tree=taken.tree,
        paths=paths,
        summary=claim.summary,
        reason=claim.reason,
        dirty_before=desk.dirty,
    )


def _troubled(work: Work[MigrateStep], desk: Desk, failure: Failure, usage: Usage) -> Outcome:
    """Tell provider trouble from work trouble: only the first leaves the attempt uncounted (specification M9, M10)."""
    log = str(desk.kept / "worker.log")
    message = f"{failure.message.rstrip('.')}. The log is {log}."
    changed = harvest.harvest(desk.git, desk.step.baseline, desk.clone, desk.kept).changes
    cut = failure.kind is FailureClass.INTERRUPTED or (failure.kind in LATER and changed)
    if cut and desk.settings.worker.interrupted is Interrupted.RECONCILE:
        _salvaged(desk)
        paths = ", ".join(change.path for change in changed[:20])
        text = f"{message} Changed so far: {paths}." if changed else message
        return failed(Failure(kind=FailureClass.INTERRUPTED, message=text, log=log), usage)
    if failure.kind in LATER:
        _note_salvage(work, desk)
        return failed(
            Failure(kind=failure.kind, message=message, retry_after_s=failure.retry_after_s, log=log), usage
        )
    _note_salvage(work, desk)
    return succeeded(Refused(kind=Refusal.CLAIM, reasons=(message,), usage=usage))


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


def _usage(state: TraceState) -> Usage:
    return Usage(tokens=None if state.tokens is None else state.tokens.total, usd=state.cost_usd)
