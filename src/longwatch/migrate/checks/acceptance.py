"""Whether a handoff is proved: what the generators changed, the task's manifest, the queue and the inventory (M32)."""

from collections.abc import Iterable, Iterator

import msgspec

from longwatch.kernel.config import Problem
from longwatch.kernel.errors import ConfigError
from longwatch.migrate.declared import Bound
from longwatch.migrate.place import Place
from longwatch.migrate.queue import authority, forms
from longwatch.migrate.queue.accounting import Account
from longwatch.migrate.queue.cards import Card
from longwatch.migrate.queue.folder import Folder, document, unbound
from longwatch.migrate.queue.forms import Coverage, Manifest
from longwatch.migrate.queue.survey import Read, source
from longwatch.migrate.steps import Candidate


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks against a handoff, and what it hands to."""

    reasons: tuple[str, ...]
    successor: str = ""
    artifacts: tuple[Bound, ...] = ()


def prove(place: Place, card: Card, candidate: Candidate, before: Read, folder: Folder) -> Acceptance:
    """Look at a handoff in the clean checkout of its candidate; `before` is the queue that it moves."""
    queue, task = place.profile.queue, card.finishes
    name = authority.manifest_path(queue, task)
    manifest, found = document(folder, name, Manifest, lambda one: forms.manifest_problems(name, one))
    reasons = [*_foreign(candidate, before, place), *_told(found)]
    if manifest is None:
        return Acceptance(reasons=tuple(reasons))
    reasons += _told(authority.accepted(name, manifest, folder))
    reasons += _about(manifest, name, task)
    reasons += _queue(place, manifest, candidate, before, folder)
    return Acceptance(
        reasons=tuple(reasons), successor=manifest.next_task or "", artifacts=manifest.artifacts
    )


def _foreign(candidate: Candidate, before: Read, place: Place) -> Iterator[str]:
    """Yield each change that is no generator's: verified work, the parent manifest, whatever else is not generated."""
    generated = authority.generated(place.profile.queue)
    for path in candidate.paths:
        if path == before.parent:
            yield f"{path}: it is the parent manifest, which a handoff must leave as it is"
        elif not generated.matches(path):
            yield f"{path}: it is not generated; a handoff may change only what queue.generated and the queue name"


def _about(manifest: Manifest, name: str, task: str) -> Iterator[str]:
    if manifest.task != task:
        yield f"{name}: task: is {manifest.task}, and the task that is handed off is {task}"


def _queue(
    place: Place, manifest: Manifest, candidate: Candidate, before: Read, folder: Folder
) -> Iterator[str]:
    """The queue must show the successor that the manifest authorises, whole and well-formed."""
    try:
        after = authority.read(place.profile, folder, before=manifest.task)
    except ConfigError as error:
        yield f"after the handoff the queue is not fit to go on with: {error}"
        return
    if after.pointer.task == manifest.task:
        yield f"the queue still shows {manifest.task}: a handoff moves it to the successor"
    yield from _units(after.account, before, candidate)
    yield from _evidence(after.account, before, folder, source(place))
    if place.profile.queue.parity:
        ported = {port.unit for port in after.account.parity.ports}
        yield from (f"parity: {unit} has no entry" for unit in candidate.covered if unit not in ported)


def _units(after: Account, before: Read, candidate: Candidate) -> Iterator[str]:
    """No unit may be called verified that no verified job of this task covers (specification M26)."""
    was = {unit.id: unit for unit in before.account.inventory.units}
    covered = set(candidate.covered)
    for unit in after.inventory.units:
        old = was.pop(unit.id, None)
        if old is None:
            yield f"inventory: {unit.id} is new: a handoff brings no units"
            continue
        if unit.references != old.references:
            yield f"inventory: the references of {unit.id} changed: a handoff leaves them as they are"
        if unit.status is Coverage.VERIFIED is not old.status and unit.id not in covered:
            yield f"inventory: {unit.id} is called verified, and no receipt of this task covers it"
    for name in was:
        yield f"inventory: {name} is gone: a handoff removes no units"
    verified = {unit.id for unit in after.inventory.units if unit.status is Coverage.VERIFIED}
    for name in sorted(covered - verified):
        yield f"inventory: {name} is covered by a receipt of this task and is not called verified"


def _evidence(after: Account, before: Read, folder: Folder, sources: Folder | None) -> Iterator[str]:
    """Evidence of newly verified units must be there; sources must be what the inventory says."""
    was = {unit.id for unit in before.account.inventory.units if unit.status is Coverage.VERIFIED}
    ported = {port.unit: port.files for port in after.parity.ports}
    for unit in after.inventory.units:
        if unit.status is not Coverage.VERIFIED or unit.id in was:
            continue
        yield from _told(unbound(f"evidence of {unit.id}", unit.evidence, folder))
        if sources is not None:
            yield from _told(unbound(f"source of {unit.id}", unit.references, sources))
        for path in ported.get(unit.id, ()):
            if folder.sha256(path) is None:
                yield f"parity: {path}, which is said to port {unit.id}, is no file of the repository"


def _told(problems: Iterable[Problem]) -> list[str]:
    return [f"{one.where}: {one.mend}" for one in problems]
