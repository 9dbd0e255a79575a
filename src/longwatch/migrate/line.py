"""The migrate line: what to do next, and what an outcome changes. Pure; the programs of the steps have the effects."""

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.errors import RefusedError
from longwatch.kernel.instant import Instant, remaining_s
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Decision, Finish, Outcome, Start, Wait
from longwatch.kernel.line import Job as Run
from longwatch.migrate import budget
from longwatch.migrate.outcomes import after
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import (
    Attempt,
    Candidate,
    CardRef,
    Commit,
    Done,
    Handoff,
    MigrateStep,
    Push,
    Survey,
    Surveyed,
    Verify,
)

FRESH_S = 5.0
"""A survey older than this is taken again before anything is decided from it."""

IN_HAND = frozenset({Status.CANDIDATE, Status.VERIFIED, Status.COMMITTED})


class MigrateLine:
    """A queue of jobs in a git repository."""

    state_type = MigrateState
    step_type: object = MigrateStep

    def __init__(self, settings: MigrateSettings, root: Path) -> None:
        """`root` is the watch's folder."""
        self._settings, self._root = settings, root

    def begin(self) -> MigrateState:
        """Return the state of a new watch."""
        return MigrateState()

    def decide(
        self, state: MigrateState, running: Mapping[str, MigrateStep], now: Instant
    ) -> Decision[MigrateStep]:
        """Return what to do next."""
        if running:
            return Wait("a step is running")
        if state.unsettled:
            return Finish(Verdict.NEEDS_RECONCILE, state.unsettled)
        in_hand = next((item for item in state.jobs.items() if item[1].status in IN_HAND), None)
        return self._go_on(state, *in_hand) if in_hand else self._look(state, now)

    def apply(
        self, state: MigrateState, step: MigrateStep, outcome: Outcome, now: Instant
    ) -> tuple[MigrateState, tuple[Note, ...]]:
        """Return the state after an outcome, and what to say about it."""
        counted = msgspec.structs.replace(state, serial=state.serial + 1)
        return after(self._settings, counted, step, outcome, now)

    def reopen(self, state: MigrateState) -> MigrateState:
        """Return the state that a new supervisor takes up: queue and branch may have changed while nobody looked."""
        return msgspec.structs.replace(state, surveyed_at=None)

    def resume(self, state: MigrateState) -> MigrateState:
        """Return the state after a person's `resume`: no job waits for its retry delay any more."""
        jobs = {
            name: msgspec.structs.replace(job, lost=0, not_before=None) for name, job in state.jobs.items()
        }
        return msgspec.structs.replace(state, jobs=jobs, surveyed_at=None)

    def accept(self, state: MigrateState, *, refresh: bool) -> MigrateState:
        """Return the state after a person looked: blocked jobs may try again, and HEAD is adopted if they say so."""
        if refresh and any(job.status in IN_HAND for job in state.jobs.values()):
            raise RefusedError(
                "A job has a verified or claimed change that is not published yet: it was made for the old baseline. "
                "Publish or drop it first; then --refresh-baseline works."
            )
        jobs = {name: _again(job) for name, job in state.jobs.items()}
        head = "" if refresh else state.head
        return msgspec.structs.replace(state, unsettled="", jobs=jobs, head=head, surveyed_at=None)

    def job(self, step: MigrateStep, *, confirm: bool) -> Run:
        """Return how a step's program is run: isolated from everything in the repository that could be imported."""
        module = ("-I", "-m", "longwatch.migrate.program")
        mode = ("confirm",) if confirm else ()
        return Run(
            argv=(sys.executable, *module, *mode),
            cwd=self._root,
            limits=Limits(wall_s=self._wall_s(step), grace_s=12.0),
        )

    def summary(self, state: MigrateState) -> tuple[tuple[str, str], ...]:
        """Return rows for a person's status."""
        cards = state.survey.cards if state.survey else ()
        standing = [state.jobs.get(card.id, Job()).status for card in cards]
        counts = ", ".join(f"{standing.count(s)} {s}" for s in Status if s in standing)
        rows = [("task", state.task)] if state.task else []
        rows += [("jobs", f"{len(cards)}: {counts}" if cards else "not surveyed yet")]
        rows += [
            (f"blocked: {name}", job.failure)
            for name, job in state.jobs.items()
            if job.status is Status.BLOCKED
        ]
        return (
            *rows,
            ("baseline", state.head or "adopted at the next look"),
            *budget.rows(self._settings.budget, state),
        )

    # -- deciding

    def _look(self, state: MigrateState, now: Instant) -> Decision[MigrateStep]:
        survey = state.survey
        if survey is None or not _fresh(state, now):
            return Start((Survey(id=f"survey.{state.serial}", done=_done(state), task=state.task),))
        if survey.problem:
            return Finish(Verdict.BLOCKED, survey.problem)
        if state.head and state.head != survey.head:
            return Finish(Verdict.BLOCKED, _moved(state.head, survey.head, self._settings.repository.branch))
        return self._next(state, survey, now)

    def _go_on(self, state: MigrateState, name: str, job: Job) -> Decision[MigrateStep]:
        candidate = job.candidate
        if candidate is None:
            raise AssertionError(f"{name} is {job.status} without a candidate")
        ident = f"{name}.{job.number}.{{}}.{state.serial}"
        match job.status:
            case Status.CANDIDATE:
                return Start(
                    (Verify(id=ident.format("verify"), job=name, candidate=candidate, card=job.card),)
                )
            case Status.VERIFIED if job.held:
                return Finish(Verdict.BLOCKED, job.held)
            case Status.VERIFIED:
                return Start(
                    (_commit(ident.format("commit"), name, job, candidate, state.survey, self._settings),)
                )
            case _:
                return Start((Push(id=ident.format("push"), job=name, commit=job.commit),))

    def _next(self, state: MigrateState, survey: Surveyed, now: Instant) -> Decision[MigrateStep]:
        stale = dict(survey.stale)
        done = frozenset(n for n, j in state.jobs.items() if j.status is Status.DONE and n not in stale)
        blocked = [n for n, j in state.jobs.items() if j.status is Status.BLOCKED]
        open_cards = [c for c in survey.cards if c.id not in done and c.id not in blocked]
        ready = [c for c in open_cards if all(name in done for name in c.after)]
        if not ready:
            return _end(survey, state, blocked, open_cards)
        due = [card for card in ready if _due_s(state.jobs.get(card.id), now) <= 0]
        if not due:
            delay_s = min(_due_s(state.jobs.get(card.id), now) for card in ready)
            return Wait(f"the next attempt at {ready[0].id} begins after its retry delay", delay_s)
        card = next((card for card in due if card.id not in stale), due[0])
        if card.finishes:
            return Start((_handoff(state, survey, card),))
        spent = budget.spent(self._settings.budget, state)
        if spent:
            return Finish(Verdict.EXHAUSTED, spent)
        return Start((self._attempt(state, survey, card, done),))

    def _attempt(self, state: MigrateState, survey: Surveyed, card: CardRef, done: frozenset[str]) -> Attempt:
        job = state.jobs.get(card.id, Job())
        number = job.number + 1
        return Attempt(
            id=f"{card.id}.{number}.attempt.{state.serial}",
            job=card.id,
            number=number,
            baseline=survey.head,
            card=card.digest,
            failure=job.failure,
            done=tuple(sorted(done)),
        )

    def _wall_s(self, step: MigrateStep) -> float:
        """A backstop far above the limits that the programs themselves hold."""
        checks_s = sum(check.timeout_s for check in self._settings.checks)
        match step:
            case Attempt():
                return self._settings.worker.wall_s + 900.0
            case Handoff():
                generators = len(self._settings.policy_in_force().queue.handoff)
                return generators * self._settings.worker.wall_s + 900.0
            case Verify():
                return 4 * checks_s + 1800.0
            case _:
                return 3600.0


def _done(state: MigrateState) -> tuple[Done, ...]:
    return tuple(
        Done(
            job=name,
            card=job.card,
            receipt=job.receipt,
            commit=job.commit,
            paths=job.paths,
            units=job.units,
            references=job.references,
        )
        for name, job in state.jobs.items()
        if job.status is Status.DONE
    )


def _handoff(state: MigrateState, survey: Surveyed, card: CardRef) -> Handoff:
    number = state.jobs.get(card.id, Job()).number + 1
    return Handoff(
        id=f"{card.id}.{number}.attempt.{state.serial}",
        job=card.id,
        task=card.finishes,
        number=number,
        baseline=survey.head,
        card=card.digest,
        done=tuple(one for one in _done(state) if one.job in card.after),
    )


def _fresh(state: MigrateState, now: Instant) -> bool:
    at = state.surveyed_at
    return at is not None and at.boot_id == now.boot_id and now.boottime_s - at.boottime_s < FRESH_S


def _due_s(job: Job | None, now: Instant) -> float:
    if job is None or job.not_before is None:
        return 0.0
    return remaining_s(job.not_before, now)


def _commit(  # noqa: PLR0917 - all that a commit binds
    ident: str, name: str, job: Job, candidate: Candidate, survey: Surveyed | None, settings: MigrateSettings
) -> Commit:
    title = next((card.title for card in survey.cards if card.id == name), name) if survey else name
    ask_only = not settings.publish.commit
    return Commit(
        id=ident, job=name, title_text=title, candidate=candidate, receipt=job.receipt, ask_only=ask_only
    )


def _again(job: Job) -> Job:
    """A person looked: a blocked job may try again, and a held change is published if nothing is in its way now."""
    if job.status is Status.BLOCKED:
        return msgspec.structs.replace(
            job, status=Status.READY, attempts=0, lost=0, failing=(), not_before=None
        )
    if job.held and job.candidate is not None:
        # They moved what was in its way: the commit itself looks whether the paths are clean.
        moved = msgspec.structs.replace(job.candidate, dirty_before=())
        return msgspec.structs.replace(job, held="", candidate=moved)
    return job


def _moved(old: str, new: str, branch: str) -> str:
    return (
        f"The branch {branch} moved from {old[:12]} to {new[:12]} outside the watch. Review it with "
        f"`git log {old[:12]}..{new[:12]}`; `longwatch resume --accept --refresh-baseline` goes on from there."
    )


def _end(
    survey: Surveyed, state: MigrateState, blocked: list[str], open_cards: list[CardRef]
) -> Decision[MigrateStep]:
    if survey.planning:
        return Finish(Verdict.BLOCKED, f"planning_required: {survey.planning}")
    if survey.ended:
        return Finish(
            Verdict.COMPLETE, "The queue is at its end, and every unit of the inventory is verified."
        )
    if not survey.cards:
        return Finish(Verdict.COMPLETE, "There is nothing to do: the folder of task cards holds no card yet.")
    known = {card.id for card in survey.cards}
    held = [name for name in blocked if name in known]
    if not held:
        return Finish(Verdict.COMPLETE, f"All {len(survey.cards)} jobs are done and verified.")
    waiting = f" Waiting for them: {_named(open_cards)}." if open_cards else ""
    reasons = "; ".join(f"{name}: {state.jobs[name].failure}" for name in held)
    return Finish(Verdict.BLOCKED, f"{len(held)} of {len(survey.cards)} jobs are blocked.{waiting} {reasons}")


def _named(cards: list[CardRef]) -> str:
    more = f" and {len(cards) - _MOST_NAMED} more" if len(cards) > _MOST_NAMED else ""
    return ", ".join(card.id for card in cards[:_MOST_NAMED]) + more


_MOST_NAMED = 20
