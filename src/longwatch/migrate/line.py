"""The migrate line: a queue of jobs, as the kernel sees it. Pure; the programs of the steps have the effects."""

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.errors import RefusedError
from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Decision, Outcome
from longwatch.kernel.line import Job as Run
from longwatch.migrate import budget
from longwatch.migrate.deciding import IN_HAND, Scene, decide
from longwatch.migrate.outcomes import after
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import Attempt, Handoff, MigrateStep, Verify


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
        return decide(Scene(settings=self._settings, state=state, running=running, now=now))

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
