"""The queue as a person looks at it: every job with its standing, and one job's change. Reads only."""

import msgspec

from longwatch.kernel.watch import Watch
from longwatch.migrate.place import Place
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import CardRef

PATCH_BYTES = 256 * 1024


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One job of the queue."""

    id: str
    title: str
    status: Status
    after: tuple[str, ...] = ()
    starts: int = 0
    """Every start of a worker, also those that do not count."""
    attempts: int = 0
    """Refused attempts that count since the job was last accepted or released."""
    failure: str = ""
    """Why the last attempt was refused, or why the change waits for the person."""
    commit: str = ""
    receipt: str = ""
    paths: tuple[str, ...] = ()


class MigrateBoard(msgspec.Struct, frozen=True, kw_only=True, tag="migrate", tag_field="kind"):
    """The whole queue, in its order, with what it cost."""

    jobs: tuple[JobRow, ...]
    task: str = ""
    head: str = ""
    tokens: int = 0
    usd: float = 0.0
    tokens_limit: int = 0
    """0: none."""
    usd_limit: float = 0.0


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """What a job changed, as git shows it."""

    commit: str
    text: str
    cut: bool
    """True if it is longer than what is shown."""


def board(settings: MigrateSettings, state: MigrateState) -> MigrateBoard:
    """Pure: return the queue as it was surveyed last, and jobs that it no longer names behind it."""
    cards = state.survey.cards if state.survey else ()
    named = {card.id for card in cards}
    gone = tuple(CardRef(id=name, title=name, digest="") for name in state.jobs if name not in named)
    return MigrateBoard(
        jobs=tuple(_row(card, state.jobs.get(card.id, Job())) for card in (*cards, *gone)),
        task=state.task,
        head=state.head,
        tokens=state.tokens,
        usd=state.usd,
        tokens_limit=settings.budget.tokens,
        usd_limit=settings.budget.usd,
    )


def _row(card: CardRef, job: Job) -> JobRow:
    candidate = job.candidate
    return JobRow(
        id=card.id,
        title=card.title,
        status=job.status,
        after=card.after,
        starts=job.number,
        attempts=job.attempts,
        failure=job.held or job.failure,
        commit=job.commit or (candidate.commit if candidate else ""),
        receipt=job.receipt,
        paths=job.paths or (candidate.paths if candidate else ()),
    )


def patch(watch: Watch, settings: MigrateSettings, state: MigrateState, name: str) -> Patch | None:
    """Return the change of a job that has one: its commit, or the candidate that waits; `None` if there is none.

    Raises:
        GitError: git cannot show it.
    """
    job = state.jobs.get(name, Job())
    commit = _row(CardRef(id=name, title=name, digest=""), job).commit
    if not commit:
        return None
    options = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--stat", "--patch")
    git = Git.open(Place(watch, settings).repository).neutral()
    raw = git.run("show", "--no-show-signature", "--format=%s%n%n%b", *options, commit, "--")
    return Patch(commit=commit, text=raw[:PATCH_BYTES].decode("utf-8", "replace"), cut=len(raw) > PATCH_BYTES)
