"""The steps that run, and those that are put back to be run again: the supervisor's hands.

Nothing here is durable and nothing here decides; after a crash the crew is found again from the database.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now
from longwatch.kernel.executor import Executor, Running
from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Job, Lost, Progress, Recovery, Report, T
from longwatch.kernel.process import new_cookie, tail
from longwatch.kernel.program import LOG, PROGRESS, REPORT, STEP
from longwatch.kernel.store import OpenStep
from longwatch.kernel.watch import Watch

REPORT_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Member(Generic[T]):
    """One step in hand."""

    step: T
    cookie: str
    began: Instant
    base_s: float = 0.0
    last_s: float = 0.0
    runs: int = 0
    confirming: bool = False
    running: Running | None = None
    wall_s: float = float("inf")
    grace_s: float = 10.0
    asked: Instant | None = None
    overdue: bool = False
    log_tail: str = ""

    def active_s(self, moment: Instant) -> float:
        """Seconds of work so far, suspended time excluded; a plain reading, so it is never counted twice (K35)."""
        if self.running is None or self.began.boot_id != moment.boot_id:
            return self.last_s
        return max(self.last_s, self.base_s + moment.monotonic_s - self.began.monotonic_s)

    def bound(self, job: Job) -> None:
        """Hold the member to the limits of its job."""
        self.wall_s, self.grace_s = job.limits.wall_s, job.limits.grace_s

    def elapsed_s(self, moment: Instant) -> float:
        """Seconds since the current run began."""
        return moment.monotonic_s - self.began.monotonic_s if self.began.boot_id == moment.boot_id else 0.0


class Crew(Generic[T]):
    """All members: `active` ones have a process, `waiting` ones are to be run again."""

    def __init__(self, watch: Watch, step_type: object, executor: Executor) -> None:
        self._watch, self._step_type, self._executor = watch, step_type, executor
        self.active: list[Member[T]] = []
        self.waiting: list[Member[T]] = []

    def steps(self) -> Mapping[str, T]:
        """Return every step in hand by its id."""
        return {member.step.id: member.step for member in (*self.active, *self.waiting)}

    def enlist(self, step: T) -> Member[T]:
        """Return a member for a new step; it is not in hand before it is launched."""
        return Member(step, new_cookie(), now())

    def find(self, left: OpenStep) -> tuple[Member[T], bool]:
        """Return the member of a step that an earlier supervisor left, and whether it has ended (specification K23)."""
        step = self.decode(left)
        member = Member(
            step, left.cookie, left.began, base_s=left.base_s, last_s=left.active_s, runs=left.runs
        )
        if step.recovery in {Recovery.ADOPT, Recovery.REJOIN} and left.identity is not None:
            member.running = self._executor.attach(left.identity, left.cookie)
        if member.running is None:
            self._executor.end_leftovers(left.identity, left.cookie)
            return member, True
        self.active.append(member)
        return member, False

    def decode(self, left: OpenStep) -> T:
        """Return the line's own type of a stored step."""
        step: T = msgspec.json.decode(left.step, type=self._step_type)
        return step

    def fits(self, step: T, cores: int) -> bool:
        """Return whether capacity and exclusive resources allow this step now."""
        if cores and len(self.active) >= cores:
            return False
        return not any(step.exclusive & member.step.exclusive for member in self.active)

    def short_of_disk(self, reserve_bytes: int) -> str | None:
        """Return why the disk allows no new work (specification K8), or `None`."""
        free = files.free_bytes(self._watch.hidden)
        where = f"the disk of {self._watch.hidden}"
        mend = f"host.free_disk_bytes keeps {reserve_bytes:,}: free some space"
        return None if free >= reserve_bytes else f"{free:,} bytes are free on {where}, {mend}"

    def launch(self, member: Member[T], job: Job) -> Identity:
        """Start a step's program."""
        folder = files.make_folder(self._watch.step(member.step.id))
        files.replace(folder / STEP, msgspec.json.encode(member.step))
        if member in self.waiting:
            self.waiting.remove(member)
        member.began, member.base_s, member.runs = now(), member.last_s, member.runs + 1
        member.bound(job)
        member.running = self._executor.start(folder, job, member.cookie)
        self.active.append(member)
        return member.running.identity

    def ended(self) -> tuple[Member[T], ...]:
        """Return the members whose program has ended."""
        return tuple(
            member for member in self.active if member.running is not None and member.running.ended()
        )

    def report(self, member: Member[T]) -> Report | None:
        """Return what a step's program left, or `None` if it left nothing that counts."""
        folder = self._watch.step(member.step.id)
        # Without a log the supervisor died between the intent and the start.
        member.log_tail = tail(folder / LOG, 12) if (folder / LOG).exists() else ""
        try:
            report = msgspec.json.decode(files.read_bounded(folder / REPORT, REPORT_BYTES), type=Report)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        return report if report.step == member.step.id else None

    def dismiss(self, member: Member[T]) -> None:
        """Clean up after a member's program and let it go."""
        member.last_s = member.active_s(now())
        if member.running is not None:
            member.running.end()
        member.running = None
        self.active = [other for other in self.active if other is not member]

    def put_back(self, member: Member[T]) -> None:
        """Keep a member to be run again, or, if only the world knows what it did, to ask the world."""
        member.confirming = member.step.recovery is Recovery.CONFIRM
        member.asked, member.overdue = None, False
        self.waiting.append(member)

    def ask_all_to_stop(self) -> None:
        """Ask every running program to end in good order."""
        for member in self.active:
            self._ask(member)

    def press(self) -> None:
        """Ask programs past their time to end, and end those that were asked and did not."""
        moment = now()
        for member in self.active:
            if member.elapsed_s(moment) > member.wall_s and not member.overdue:
                member.overdue = True
                self._ask(member)
            if (
                member.asked
                and moment.monotonic_s - member.asked.monotonic_s > member.grace_s
                and member.running
            ):
                member.running.end()

    def end_all(self) -> None:
        """End everything at once."""
        for member in self.active:
            if member.running is not None:
                member.running.end()

    def progress(self, member: Member[T]) -> Progress | None:
        """Return a member's last sign of life."""
        return read_progress(self._watch, member.step.id)

    def descriptors(self) -> Iterator[int]:
        """Yield what becomes readable when a program ends."""
        return (member.running.fileno() for member in self.active if member.running is not None)

    def _ask(self, member: Member[T]) -> None:
        if member.asked is None and member.running is not None:
            member.asked = now()
            member.running.ask_to_stop()


def read_progress(watch: Watch, step_id: str) -> Progress | None:
    """Return a step's last sign of life, or `None`."""
    try:
        return msgspec.json.decode(files.read_bounded(watch.step(step_id) / PROGRESS, 65536), type=Progress)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def lost(member: Member[T]) -> Lost:
    """Say that a step died without a report, with the last lines it printed."""
    why = f"it ran past its limit of {member.wall_s:.0f} s" if member.overdue else "it crashed or was killed"
    printed = f" Its last lines:\n{member.log_tail}" if member.log_tail else ""
    return Lost(f"{member.step.title} ended without a report: {why}.{printed}")


def losable(member: Member[T]) -> bool:
    """Return whether a step that died is told to the line as lost; the others are run again, or asked about."""
    recovery = member.step.recovery
    return recovery is Recovery.ADOPT or (member.overdue and recovery is not Recovery.CONFIRM)
