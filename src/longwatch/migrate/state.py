"""The state of a migrate watch. Frozen values; `line` is the only module that makes new ones."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from longwatch.kernel.instant import Deadline, Instant
from longwatch.migrate.declared import Bound
from longwatch.migrate.steps import Candidate, Done, Surveyed


class Status(StrEnum):
    """Where a job stands."""

    READY = "ready"
    RETRY_PENDING = "retry_pending"
    CANDIDATE = "candidate"
    """The worker claims it is done; nothing is verified."""
    VERIFIED = "verified"
    """Our checks passed and a receipt is signed; nothing is published."""
    COMMITTED = "committed"
    """On the branch; the push is still to be confirmed."""
    DONE = "done"
    BLOCKED = "blocked"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job's history and standing."""

    status: Status = Status.READY
    number: int = 0
    """Starts so far; names the next attempt."""
    attempts: int = 0
    """Attempts that count against `worker.max_attempts`."""
    lost: int = 0
    """Attempts in a row that were cut from outside and do not count."""
    failure: str = ""
    failing: tuple[tuple[str, ...], ...] = ()
    """The failing checks of each refused attempt."""
    not_before: Deadline | None = None
    candidate: Candidate | None = None
    held: str = ""
    """Why a verified change waits for the person (specification M31)."""
    receipt: str = ""
    commit: str = ""
    paths: tuple[str, ...] = ()
    """What the receipt is about."""
    card: str = ""
    """SHA-256 of the card that the receipt is about."""
    units: tuple[str, ...] = ()
    """The units that its verified cases cover."""
    references: tuple[Bound, ...] = ()
    """The sources that it was verified against."""
    handed_to: str | None = None
    """Of a handoff: the authorised successor; empty where there is none."""


class MigrateState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a migrate watch knows durably."""

    serial: int = 0
    """Counts outcomes; makes step ids unique."""
    jobs: Mapping[str, Job] = {}
    head: str = ""
    """The commit that the watch last saw or made on the branch; empty: adopt what is there (specification M28, M33)."""
    survey: Surveyed | None = None
    surveyed_at: Instant | None = None
    tokens: int = 0
    usd: float = 0.0
    task: str = ""
    """The task that was current at the last look, in pointer form."""
    unsettled: str = ""
    """Why a person has to look."""

    @property
    def finished(self) -> tuple[Done, ...]:
        """The jobs that are done, with what their receipts are about."""
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
            for name, job in self.jobs.items()
            if job.status is Status.DONE
        )
