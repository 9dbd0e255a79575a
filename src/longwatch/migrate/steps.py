"""The steps of a migrate watch, and what each leaves as evidence. Values only.

A piece of work is a cycle: `Survey` (what is the case), `Attempt` (the worker, untrusted), `Verify` (our own checks in
a clean checkout), `Commit` and `Push`. Where another job landed meanwhile, `Merge` comes before the commit, and `Verify`
once more. Each is a program of its own, so a crash loses one step at most.
"""

from enum import StrEnum

import msgspec

from longwatch.kernel.line import Cycle, Recovery, Step
from longwatch.migrate.declared import Bound, Declared

REPOSITORY = "repository"
"""The exclusive resource of steps that write into the person's repository."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was done, and what its receipt is about."""

    job: str
    card: str
    receipt: str
    commit: str
    paths: tuple[str, ...]
    units: tuple[str, ...] = ()
    references: tuple[Bound, ...] = ()


class Survey(Step, frozen=True, kw_only=True, tag="survey"):
    """Read the queue, the branch and the receipts afresh (specification M1, M4)."""

    done: tuple[Done, ...] = ()
    task: str = ""
    """The task that was current when the queue was last looked at, in pointer form (specification M5)."""
    busy: tuple[str, ...] = ()
    """Names in the work folder that belong to steps which run beside this one."""
    recovery: Recovery = Recovery.RERUN
    cycle: Cycle = Cycle.NONE

    @property
    def title(self) -> str:
        """What a person reads."""
        return "look at queue and repository"


class Attempt(Step, frozen=True, kw_only=True, tag="attempt"):
    """Let the worker work at one job, in a private clone at `baseline`. It survives a dead supervisor."""

    job: str
    number: int
    """Counts every start, also those that do not count as an attempt; names folders and refs."""
    baseline: str
    card: str
    """SHA-256 of the card that was surveyed."""
    failure: str = ""
    """Why the attempt before this one was refused."""
    done: tuple[str, ...] = ()
    recovery: Recovery = Recovery.ADOPT

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"{self.job}: attempt {self.number}"

    @property
    def folder(self) -> str:
        """Name of its clone in the work folder, and of what is kept of it."""
        return f"{self.job}.{self.number}"


class Handoff(Step, frozen=True, kw_only=True, tag="handoff"):
    """Let the repository's own generators bring the queue forward, in a private clone at `baseline`."""

    job: str
    task: str
    number: int
    baseline: str
    card: str
    done: tuple[Done, ...]
    """The task's verified jobs: what the generators are told."""
    recovery: Recovery = Recovery.RERUN

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"{self.job}: attempt {self.number}"

    @property
    def folder(self) -> str:
        """Name of its clone in the work folder, and of what is kept of it."""
        return f"{self.job}.{self.number}"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt brought, harvested and bound; still only a claim."""

    attempt: str
    number: int
    nonce: str
    baseline: str
    commit: str
    """The candidate commit; the baseline itself if nothing changed."""
    tree: str
    paths: tuple[str, ...]
    summary: str
    reason: str = ""
    """Why no change is needed, where there is none."""
    dirty_before: tuple[str, ...] = ()
    """Paths in which the person had work of their own when the attempt began (specification M28)."""
    declared: Declared | None = None
    """Units, references and cases, where the profile asks for them."""
    covered: tuple[str, ...] = ()
    """Of a handoff: the units that the task's receipts cover."""
    merged: str = ""
    """The candidate that passed alone, where this one is it merged onto what landed meanwhile (specification M37)."""


class Verify(Step, frozen=True, kw_only=True, tag="verify"):
    """Run the checks on a candidate in clean checkouts that the worker never touched, and sign what was seen.

    It survives a dead supervisor: checks may take long.
    """

    job: str
    candidate: Candidate
    card: str
    recovery: Recovery = Recovery.REJOIN
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        merged = ", merged" if self.candidate.merged else ""
        return f"{self.job}: verification of attempt {self.candidate.number}{merged}"

    @property
    def folder(self) -> str:
        """Name of its checkouts in the work folder."""
        return f"{self.candidate.attempt}.verify"


class Merge(Step, frozen=True, kw_only=True, tag="merge"):
    """Bring a verified candidate onto what landed since its baseline. Nothing but objects and a ref is written."""

    job: str
    candidate: Candidate
    onto: str
    """The commit that the branch is at."""
    recovery: Recovery = Recovery.RERUN
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"{self.job}: merge of attempt {self.candidate.number}"


class Commit(Step, frozen=True, kw_only=True, tag="commit"):
    """Commit a verified candidate on the person's branch. After a crash git is asked what happened."""

    job: str
    title_text: str
    candidate: Candidate
    receipt: str
    ask_only: bool = False
    """Only find out whether the person took the change themselves (`publish.commit = false`)."""
    recovery: Recovery = Recovery.CONFIRM
    exclusive: frozenset[str] = frozenset({REPOSITORY})
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"{self.job}: commit"


class Push(Step, frozen=True, kw_only=True, tag="push"):
    """Push the branch and read back what the remote shows. Safe to repeat: the remote's ref decides."""

    job: str
    commit: str
    recovery: Recovery = Recovery.RERUN
    exclusive: frozenset[str] = frozenset({REPOSITORY})
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"{self.job}: push"


MigrateStep = Survey | Attempt | Handoff | Verify | Merge | Commit | Push


class CardRef(msgspec.Struct, frozen=True, kw_only=True):
    """What deciding needs of a card. The queue's order is the order of the tuple that holds them."""

    id: str
    title: str
    digest: str
    after: tuple[str, ...] = ()
    finishes: str = ""
    """The task that this job hands off."""
    files: tuple[str, ...] = ()
    """Owned paths without a wildcard: two jobs with one in common are not worked at together."""


class Surveyed(msgspec.Struct, frozen=True, kw_only=True):
    """What is the case. `problem` is what keeps any work from beginning."""

    head: str = ""
    cards: tuple[CardRef, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    """Done jobs whose receipts no longer hold, with the reason."""
    problem: str = ""
    task: str = ""
    """The current task, in pointer form."""
    ended: bool = False
    """The queue, in pointer form, is at its end."""
    planning: str = ""
    """At the queue's end: which units are not proved, so that somebody has to plan further tasks."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt cost. `None`: unknown, which counts as the whole reservation (specification M11)."""

    tokens: int | None = None
    usd: float | None = None


class Refusal(StrEnum):
    """Which kind of evidence was missing."""

    CLAIM = "claim"
    CHANGE = "change"
    CHECKS = "checks"
    MERGE = "merge"
    PUBLISH = "publish"


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """An attempt that does not count, with everything that is wrong with it."""

    kind: Refusal
    reasons: tuple[str, ...]
    failing: tuple[str, ...] = ()
    """Names of the failing checks and tests, to see whether they are the same each time (specification K28)."""
    counts: bool = True
    """False: the attempt is not to blame and does not count."""
    usage: Usage = Usage()


class Worked(msgspec.Struct, frozen=True, kw_only=True, tag="worked"):
    """An attempt brought a candidate."""

    candidate: Candidate
    usage: Usage = Usage()


class Verified(msgspec.Struct, frozen=True, kw_only=True, tag="verified"):
    """All checks passed; the receipt says what was seen."""

    receipt: str
    checks: tuple[str, ...]
    references: tuple[Bound, ...] = ()
    """The sources that were declared, as they were."""
    handed_to: str | None = None
    """Of a handoff: the authorised successor; empty where there is none."""


class Committed(msgspec.Struct, frozen=True, kw_only=True, tag="committed"):
    """The commit stands on the branch."""

    commit: str


class Held(msgspec.Struct, frozen=True, kw_only=True, tag="held"):
    """A verified change that waits for the person: to take it themselves, or to move their own work out of its way."""

    reason: str


class Pushed(msgspec.Struct, frozen=True, kw_only=True, tag="pushed"):
    """The remote shows the commit."""

    commit: str


class Spent(msgspec.Struct, frozen=True, kw_only=True, tag="spent"):
    """Evidence beside a failure: what it cost although nothing came of it."""

    usage: Usage


Evidence = Refused | Worked | Verified | Committed | Held | Pushed | Spent
