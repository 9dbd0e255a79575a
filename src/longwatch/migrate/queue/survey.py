"""Looks at the queue, the branch and the receipts afresh, and clears away what a dead step left."""

import msgspec

from longwatch.kernel import logs
from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.queue import accounting, authority, guarding, staleness
from longwatch.migrate.queue.accounting import Account
from longwatch.migrate.queue.cards import Card, against_settings
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.queue.order import read_queue
from longwatch.migrate.repository import checkout, harvest
from longwatch.migrate.repository.git import Git
from longwatch.migrate.steps import CardRef, MigrateStep, Survey, Surveyed

_WILD = frozenset("*?[")


def perform(work: Work[MigrateStep], step: Survey, place: Place) -> Outcome:
    """Return what is the case as evidence; a problem that a person has to solve is evidence too."""
    return succeeded(look(work, step, place))


def look(work: Work[MigrateStep], step: Survey, place: Place) -> Surveyed:
    """Return what is the case."""
    git = Git.open(place.repository)
    with work.span("survey"):
        _clear(work, step, git, place)
        removed = logs.prune((place.attempts, place.watch.steps), place.settings.host.logs_bytes)
        if removed:
            work.note(
                "logs.pruned", f"{len(removed)} old logs were removed: host.logs_bytes bounds them all."
            )
        try:
            queue = read(place, before=step.task)
            _refuse_uncommitted(git, place, queue)
        except ConfigError as error:
            return Surveyed(problem=str(error))
        head = git.head() or ""
        problem = _branch_problem(git, place, head) or _end_problem(place, step, queue)
        refs = tuple(_ref(card) for card in queue.cards)
        sources = staleness.Sources(git=git, watch=place.watch, source=source(place), head=head)
        found = () if problem else staleness.stale(sources, step.done, refs)
        return msgspec.structs.replace(queue.facts, head=head, cards=refs, stale=found, problem=problem)


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The queue, in either form."""

    cards: tuple[Card, ...]
    account: Account = Account()
    files: frozenset[str] = frozenset()
    """Files that belong to the queue and that no pattern of it names: the current card, the inventory's evidence."""
    parent: str = ""
    """Path of the parent manifest."""
    facts: Surveyed = Surveyed()
    """What only the pointer form knows: the current task, or the queue's end."""

    everything: frozenset[str] = frozenset()
    """All files of the queue that it was read from."""

    def card(self, ident: str, sha256: str) -> Card | None:
        """Return the card with this id, if there is one and it is the one that was surveyed."""
        return next((card for card in self.cards if (card.id, card.digest) == (ident, sha256)), None)


def read(place: Place, *, before: str = "") -> Read:
    """Return the queue, fit for the configured checks; `before` is the task that was current at the last look.

    Raises:
        ConfigError: it is damaged, or has moved without an accepted handoff.
    """
    queue = (
        _pointed(place, before) if place.profile.queue.pointer else Read(cards=read_queue(place.cards).cards)
    )
    jobs = tuple(card for card in queue.cards if not card.finishes)
    fit = against_settings(jobs, place.settings.checks, place.profile.required_kinds)
    problems = (*fit, *guarding.card_problems(jobs, place))
    if problems:
        raise ConfigError("\n".join(f"{problem.where} {problem.mend}" for problem in problems))
    return queue


def source(place: Place) -> Folder | None:
    """Return the source system's folder, where the queue names one."""
    return None if place.source_root is None else Folder(place.source_root)


def _pointed(place: Place, before: str) -> Read:
    folder = Folder(place.repository)
    found = authority.read(place.profile, folder, before=before)
    ended = found.pointer.ended
    proof = accounting.prove(found.account.inventory, folder, source(place)) if ended else None
    planning = "" if proof is None or proof.complete else proof.open_units()
    facts = Surveyed(task=found.pointer.task, ended=ended, planning=planning)
    own = frozenset({found.pointer.card, *authority.evidence(found.account.inventory)} - {""})
    named = authority.documents_of(place.profile.queue, found.pointer)
    return Read(
        cards=found.cards,
        account=found.account,
        files=own,
        everything=own | named,
        parent=found.pointer.parent,
        facts=facts,
    )


def _ref(card: Card) -> CardRef:
    return CardRef(
        id=card.id,
        title=card.title,
        digest=card.digest,
        after=card.after,
        finishes=card.finishes,
        files=tuple(path for path in card.owned if not _WILD.intersection(path)),
    )


def _refuse_uncommitted(git: Git, place: Place, queue: Read) -> None:
    """The queue in pointer form is what is committed: attempts and generators start from the commit."""
    settings = place.profile.queue
    dirty = authority.uncommitted(settings, queue.files, git.dirty_paths()) if settings.pointer else ()
    if dirty:
        named = ", ".join(dirty[:10])
        raise ConfigError(f"The queue differs from what is committed: {named}. Commit it, or put it back.")


def _end_problem(place: Place, step: Survey, queue: Read) -> str:
    """At the end of the queue every receipt on the way to it must stand: no later look would ask for them again."""
    lost = staleness.lost(place.watch, step.done, frozenset()) if queue.facts.ended else ()
    if not lost:
        return ""
    named = "; ".join(f"{job}: {fault}" for job, fault in lost[:10])
    return f"The queue is at its end, and {len(lost)} receipts do not stand: {named}. Restore .longwatch from a copy."


def _branch_problem(git: Git, place: Place, head: str) -> str:
    wanted, there = place.settings.repository.branch, git.branch()
    if there != wanted:
        return (
            f"{place.repository} has {there or 'no branch'} checked out, repository.branch is {wanted}: "
            f"`git switch {wanted}`, or change longwatch.toml."
        )
    operation = git.operation()
    if operation:
        return f"A {operation} is in progress in {place.repository}: finish or abort it."
    return "" if head else f"{place.repository} has no commit yet: make one."


def _clear(work: Work[MigrateStep], step: Survey, git: Git, place: Place) -> None:
    """No step begins beside a survey: what lies in the work folder and belongs to none that ran before was left by the dead."""
    if not place.work.is_dir():
        return
    for left in sorted(place.work.iterdir()):
        if left.name in step.busy:
            continue
        if (left / "repo").is_dir():
            _salvage(work, git, place, left.name)
        checkout.remove(left, place.work)


def _salvage(work: Work[MigrateStep], git: Git, place: Place, name: str) -> None:
    folder = place.attempt(name)
    baseline = folder / "baseline"
    if not baseline.is_file():
        return
    try:
        kept = harvest.salvage(
            git,
            baseline.read_text(encoding="ascii").strip(),
            place.work / name / "repo",
            folder,
            patch=folder / "salvage.patch",
        )
    except LongwatchError as error:
        work.note("attempt.unsalvaged", f"{name}: what the cut attempt left could not be kept: {error}")
        return
    if kept.patch is not None:
        work.note("attempt.salvaged", f"{name}: the cut attempt's partial work is kept in {kept.patch}.")
