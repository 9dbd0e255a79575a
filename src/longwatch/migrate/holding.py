"""What `doctor` says of finished jobs: how many are done, and whether what was verified still holds (specification M36)."""

from collections.abc import Iterator

from longwatch.kernel.finding import Finding, fine, note, wrong
from longwatch.migrate.place import Place
from longwatch.migrate.queue import staleness, survey
from longwatch.migrate.queue.kept import Kept
from longwatch.migrate.queue.survey import Read
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import MigrateState, Status
from longwatch.migrate.steps import CardRef, Done

_SHOWN = 10


def done(state: MigrateState) -> tuple[Done, ...]:
    """Return the finished jobs, with what their receipts are about. Pure."""
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


def examine(place: Place, queue: Read, state: MigrateState) -> Iterator[Finding]:
    """Yield what has become of the receipts. Changes nothing."""
    finished = done(state)
    again = _again(place, queue, finished)
    earlier = _earlier(place, queue, finished)
    if again:
        text = f"{len(again)} of {len(finished)} done jobs will be done again: {_told(again)}"
        yield note("receipts", text, "nothing; or put back what changed")
    if earlier:
        mend = "restore .longwatch from a copy; `longwatch verify` says more"
        yield wrong("receipts", f"of {len(earlier)} jobs that are over: {_told(earlier)}", mend)
    if not finished:
        yield fine("receipts", "none yet: no job is done")
    elif not (again or earlier):
        yield fine(
            "receipts", f"those of all {len(finished)} done jobs hold (`longwatch verify` looks closer)"
        )


def _again(place: Place, queue: Read, finished: tuple[Done, ...]) -> tuple[tuple[str, str], ...]:
    git = Git.open(place.repository)
    head = git.head()
    if head is None:
        return ()
    sources = staleness.Sources(git=git, watch=place.watch, source=survey.source(place), head=head)
    refs = tuple(CardRef(id=card.id, title=card.title, digest=card.digest) for card in queue.cards)
    return staleness.stale(sources, finished, refs)


def _earlier(place: Place, queue: Read, finished: tuple[Done, ...]) -> tuple[tuple[str, str], ...]:
    """Jobs without a card now, of an earlier task for one: nobody does them again."""
    kept, current = Kept(place.watch), {card.id for card in queue.cards}
    found = ((one.job, kept.fault(one.receipt)) for one in finished if one.job not in current)
    return tuple((job, fault) for job, fault in found if fault)


def _told(found: tuple[tuple[str, str], ...]) -> str:
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(f"{job}: {reason}" for job, reason in found[:_SHOWN]) + more
