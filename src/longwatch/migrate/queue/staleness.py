"""Which receipts no longer hold on the branch as it is now (specification M4, M26)."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from longwatch.kernel.watch import Watch
from longwatch.migrate.queue.folder import Folder, unbound
from longwatch.migrate.queue.kept import Kept
from longwatch.migrate.repository.git import Git
from longwatch.migrate.steps import CardRef, Done


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where it is looked whether what was verified is still so."""

    git: Git
    watch: Watch
    source: Folder | None
    """The source system."""
    head: str


def stale(
    sources: Sources, done: tuple[Done, ...], cards: tuple[CardRef, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the done jobs that have to be done again, each with the reason; jobs without a card are left alone."""
    digests = {card.id: card.digest for card in cards}
    known = [one for one in done if one.job in digests]
    if not known:
        return ()
    git, head = sources.git, sources.head
    age = {
        commit: number for number, commit in enumerate(git.line("rev-list", "--first-parent", head).split())
    }
    reasons = dict(_changed_artifacts(git, head, _owned(age, known)))
    kept = Kept(sources.watch)
    for one in known:
        there = one.commit in age or git.is_ancestor(one.commit, head)
        reason = _own_reason(sources, one, digests[one.job], there=there) or kept.fault(one.receipt)
        if reason:
            reasons[one.job] = reason
    return tuple(reasons.items())


def lost(watch: Watch, done: tuple[Done, ...], current: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Return the done jobs that nobody does again (they have no card now), and whose receipts no longer stand."""
    kept = Kept(watch)
    found = ((one.job, kept.fault(one.receipt)) for one in done if one.job not in current)
    return tuple((job, fault) for job, fault in found if fault)


def _own_reason(sources: Sources, one: Done, card: str, *, there: bool) -> str:
    if card != one.card:
        return "its card changed"
    if not there:
        return f"its commit {one.commit[:12]} is no longer on the branch"
    drifted = () if sources.source is None else tuple(unbound("source", one.references, sources.source))
    return f"{drifted[0].where} {drifted[0].mend}" if drifted else ""


def _changed_artifacts(
    git: Git, head: str, owned: Iterable[tuple[Done, list[str]]]
) -> Iterator[tuple[str, str]]:
    blobs = {entry.path: entry.blob for entry in git.ls_tree(head)}
    for one, paths in owned:
        then = {entry.path: entry.blob for entry in git.ls_tree(one.commit, *paths)}
        for path in paths:
            if then.get(path) != blobs.get(path):
                yield one.job, f"{path} changed since it was verified"


def _owned(age: Mapping[str, int], done: list[Done]) -> Iterator[tuple[Done, list[str]]]:
    """Yield the jobs with the paths that they answer for.

    The newest job that verified a path answers for it: later work of others is theirs to prove.
    """
    oldest_first = sorted((one for one in done if one.commit in age), key=lambda one: -age[one.commit])
    owners = {path: number for number, one in enumerate(oldest_first) for path in one.paths}
    for number, one in enumerate(oldest_first):
        paths = [path for path in one.paths if owners[path] == number]
        if paths:
            yield one, paths
