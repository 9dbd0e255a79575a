"""What `doctor` says of finished jobs: how many are done, and whether what was verified still holds (specification M36)."""

from collections.abc import Iterator

from longwatch.kernel.finding import Finding, fine, note, wrong
from longwatch.migrate.place import Place
from longwatch.migrate.queue import staleness, survey
from longwatch.migrate.queue.survey import Read
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import MigrateState
from longwatch.migrate.steps import CardRef, Done

_SHOWN = 10


def examine(place: Place, queue: Read, state: MigrateState) -> Iterator[Finding]:
    """Yield what has become of the receipts. Changes nothing."""
    finished = state.finished
    again = _again(place, queue, finished)
    earlier = staleness.lost(place.watch, finished, frozenset(card.id for card in queue.cards))
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


def _told(found: tuple[tuple[str, str], ...]) -> str:
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(f"{job}: {reason}" for job, reason in found[:_SHOWN]) + more
