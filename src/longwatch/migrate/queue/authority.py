"""The queue in pointer form, read afresh: pointer, card, parent manifest, backlog, and the account of the source system.

Everything that is wrong is told at once, with file, place, value and mend (specification M1, M2a, M3, M5).
"""

from collections.abc import Iterable, Iterator

import msgspec

from longwatch.kernel.config import Problem, at, printable, refuse
from longwatch.kernel.digest import Digest, of_bytes
from longwatch.kernel.errors import ConfigError
from longwatch.migrate.patterns import Patterns, fold
from longwatch.migrate.profiles import SLOT, Profile, QueueSettings
from longwatch.migrate.queue import accounting, backlog, forms, pointer
from longwatch.migrate.queue.accounting import Account
from longwatch.migrate.queue.backlog import Listed
from longwatch.migrate.queue.cards import Card, NewTests, parse_card
from longwatch.migrate.queue.folder import Folder, content, document, unbound
from longwatch.migrate.queue.forms import Backlog, Inventory, JobEntry, Manifest, Standing
from longwatch.migrate.queue.order import queue_of
from longwatch.migrate.queue.pointer import Pointer

_PRIORITY = 1_000_000
_SHOWN = 300
_canonical = msgspec.json.Encoder(order="sorted").encode


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """What the queue authorises now."""

    pointer: Pointer
    cards: tuple[Card, ...]
    """The current task's jobs in their order, and last the job that hands it off; none at the end of the queue."""
    account: Account


class _Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What a task's jobs are made of."""

    card: Card
    parent: Digest
    backlog: Backlog | None
    account: Account


def read(profile: Profile, folder: Folder, *, before: str = "") -> Authority:
    """Return what the queue in `folder` authorises; `before` is the task that was current at the last look.

    Raises:
        ConfigError: it is damaged, or moved without an accepted handoff; the message lists everything.
    """
    queue = profile.queue
    raw, found = content(folder, queue.pointer)
    refuse("queue", found)
    where = pointer.parse(raw or b"", queue)
    account, found = accounting.read(queue, folder)
    card, more = _card(where, queue, folder)
    listed, jobs = _backlog(where, profile, folder, account)
    moved = _moved(where, queue, before)
    refuse("queue", (*found, *more, *_parent(where, queue, folder), *jobs, *moved))
    if card is None:
        return Authority(pointer=where, cards=(), account=account)
    parent = of_bytes(folder.read(where.parent))
    sources = _Sources(card=card, parent=parent, backlog=listed, account=account)
    return Authority(pointer=where, cards=_cards(sources, queue), account=account)


def manifest_path(queue: QueueSettings, task: str) -> str:
    """Return where a task's manifest is."""
    return queue.manifest.replace(SLOT, task)


def accepted(name: str, manifest: Manifest, folder: Folder | None) -> Iterator[Problem]:
    """Yield what keeps a manifest from proving that its task is done; with a `folder`, its artifacts are looked at too."""
    if manifest.status is not Standing.DONE:
        yield Problem(at(f"{name}: status", manifest.status), 'is not "done": the task is not accepted')
    if manifest.deferred:
        yield Problem(
            at(f"{name}: deferred", list(manifest.deferred)), "puts something off: the task is not accepted"
        )
    if not manifest.acceptance:
        yield Problem(f"{name}: acceptance", "is empty: nothing was accepted")
    for number, one in enumerate(manifest.acceptance):
        if not one.met:
            yield Problem(f"{name}: acceptance[{number}]", f"is not met: {one.criterion[:_SHOWN]}")
    if folder is not None:
        yield from unbound(f"{name}: artifacts", manifest.artifacts, folder)


def generated(queue: QueueSettings) -> Patterns:
    """Return what the generators of a handoff may write."""
    own = (queue.pointer, queue.manifest.replace(SLOT, "*"), queue.inventory, queue.parity)
    return Patterns((*(f"/{path}" for path in own if path), *queue.generated))


def guarded(queue: QueueSettings) -> tuple[str, ...]:
    """Return patterns of the queue's own files: no worker's to change."""
    if not queue.pointer:
        return ()
    named = (queue.manifest, queue.backlog)
    paths = (
        queue.pointer,
        queue.inventory,
        queue.catalog,
        queue.parity,
        *(p.replace(SLOT, "*") for p in named),
    )
    return (*(f"/{path}" for path in paths if path), *queue.generated)


def uncommitted(queue: QueueSettings, own: frozenset[str], dirty: Iterable[str]) -> tuple[str, ...]:
    """Return what of the queue is not as it is committed; `own` are files that no pattern of it names."""
    patterns = Patterns(guarded(queue), own)
    return tuple(path for path in dirty if queue.pointer and patterns.matches(path))


def documents_of(queue: QueueSettings, where: Pointer) -> frozenset[str]:
    """Return the files that the queue is read from now."""
    backlog = queue.backlog.replace(SLOT, where.task) if where.task else ""
    named = (queue.pointer, where.card, where.parent, backlog, queue.inventory, queue.catalog, queue.parity)
    return frozenset(path for path in named if path)


def evidence(inventory: Inventory) -> frozenset[str]:
    """Return the files that an inventory calls as evidence: no worker's to change either."""
    return frozenset(one.path for unit in inventory.units for one in unit.evidence)


def _pointed(
    where: Pointer, queue: QueueSettings, column: str, found: Iterable[Problem]
) -> tuple[Problem, ...]:
    """Say of a file that cannot be read where it was named."""
    named = f"{queue.pointer}: line {where.line}: {column}"
    return tuple(Problem(f"{named}: {one.where}", one.mend) for one in found)


def _card(where: Pointer, queue: QueueSettings, folder: Folder) -> tuple[Card | None, tuple[Problem, ...]]:
    if where.ended:
        return None, ()
    raw, found = content(folder, where.card)
    if raw is None:
        return None, _pointed(where, queue, queue.card_column, found)
    try:
        card = parse_card(where.card, raw)
    except ConfigError as error:
        return None, (Problem("card", str(error)),)
    if card.id != where.task:
        return None, (
            Problem(at(f"{where.card}: id", card.id), f"is not the current task {where.task}: correct one"),
        )
    return card, ()


def _parent(where: Pointer, queue: QueueSettings, folder: Folder) -> tuple[Problem, ...]:
    """The parent manifest must be done and must name the current task (specification M1)."""
    path = where.parent
    raw, unread = content(folder, path)
    if raw is None:
        return _pointed(where, queue, queue.parent_column, unread)
    parent, found = document(folder, path, Manifest, lambda one: forms.manifest_problems(path, one))
    if parent is None:
        return found
    wanted = manifest_path(queue, parent.task)
    if path != wanted:
        mend = printable(f"is the manifest of {parent.task}, which belongs at {wanted}")
        found = (
            *found,
            Problem(at(f"{queue.pointer}: line {where.line}: {queue.parent_column}", path), mend),
        )
    if parent.next_task != (where.task or None):
        mend = f"does not authorise {where.task or 'the end of the queue'}, which {queue.pointer} line {where.line} names"
        found = (*found, Problem(at(f"{path}: nextTask", parent.next_task), mend))
    return (*found, *accepted(path, parent, None))


def _moved(where: Pointer, queue: QueueSettings, before: str) -> tuple[Problem, ...]:
    """The queue moves only through an accepted handoff of the task that was current (specification M5)."""
    if not before or before == where.task:
        return ()
    wanted = manifest_path(queue, before)
    if where.parent == wanted:
        return ()  # Its acceptance and its successor are what `_parent` looks at.
    mend = (
        f"the queue moved from {before} to {where.task or 'its end'} without an accepted handoff: only {wanted} "
        f"authorises a successor of {before}; put the pointer back, or finish {before} first"
    )
    return (Problem(at(f"{queue.pointer}: line {where.line}: {queue.parent_column}", where.parent), mend),)


def _backlog(
    where: Pointer, profile: Profile, folder: Folder, account: Account
) -> tuple[Backlog | None, tuple[Problem, ...]]:
    queue = profile.queue
    if where.ended or not queue.backlog:
        return None, ()
    path = queue.backlog.replace(SLOT, where.task)
    raw, found = content(folder, path)
    if raw is None:
        return None, found
    listed = backlog.read(path, raw, where.task)
    if isinstance(listed, tuple):
        return None, listed
    own = (*backlog.problems(listed, queue.priorities), *_job_problems(listed, profile, account))
    if listed.backlog.task != where.task:
        mend = f"is not the current task {where.task}: correct one"
        own = (Problem(at(f"{path}: task", listed.backlog.task), mend), *own)
    return listed.backlog, own


def _job_problems(listed: Listed, profile: Profile, account: Account) -> Iterator[Problem]:
    """Yield what in the jobs does not fit the inventory or the policy."""
    known = Patterns(tuple(fold(p) for p in (*guarded(profile.queue), *profile.protected)))
    for number, job in enumerate(listed.backlog.jobs):
        units = listed.place(number, "units")
        yield from forms.unknown_units(units, job.units, account.units)
        if profile.has_cases and not job.units:
            yield Problem(units, f"is empty: name the units that {job.id} ports")
        for pattern in job.owned:
            if known.matches(fold(pattern.strip("/"))):
                mend = "is the queue's or the policy's, and no worker's"
                yield Problem(at(listed.place(number, "owned"), pattern), mend)


def _cards(sources: _Sources, queue: QueueSettings) -> tuple[Card, ...]:
    """Return the jobs in their order. Each card's digest binds all that authorises the job."""
    entries = sources.backlog.jobs if sources.backlog else ()
    jobs = queue_of(_job(sources, entry, queue) for entry in entries).cards or (_whole(sources),)
    task = sources.card.id
    last = msgspec.structs.replace(
        sources.card,
        id=f"{task}.{forms.HANDOFF}",
        title=f"Hand off {task}",
        after=tuple(card.id for card in jobs),
        owned=(),
        checks=queue.handoff_checks,
        tests=NewTests.OPTIONAL,
        digest=_digest(sources, "handoff", *(card.digest for card in jobs)),
        finishes=task,
    )
    return (*jobs, last)


def _whole(sources: _Sources) -> Card:
    return msgspec.structs.replace(sources.card, after=(), digest=_digest(sources, "task"))


def _job(sources: _Sources, entry: JobEntry, queue: QueueSettings) -> Card:
    card = sources.card
    return Card(
        id=_name(card.id, entry.id),
        title=entry.title,
        owned=entry.owned,
        after=tuple(_name(card.id, other) for other in entry.after),
        checks=entry.checks or card.checks,
        allow=entry.allow,
        priority=_rank(entry.priority, queue.priorities),
        tests=entry.tests,
        body="\n\n".join(part for part in (card.body, entry.text) if part),
        path=f"{queue.backlog.replace(SLOT, card.id)}: {entry.id}",
        digest=_digest(sources, _canonical(entry).decode()),
        units=entry.units,
    )


def _name(task: str, job: str) -> str:
    return f"{task}.{job}"


def _rank(priority: int | str, words: Iterable[str]) -> int:
    """Higher goes first, as with cards."""
    if isinstance(priority, int):
        return max(-_PRIORITY, min(priority, _PRIORITY))
    return -tuple(words).index(priority)


def _digest(sources: _Sources, *parts: str) -> Digest:
    return of_bytes(_canonical((sources.card.digest, sources.parent, parts)))
