"""What `doctor` says of a queue in pointer form: task, jobs, completion proof, inventory proof (specification M36)."""

from collections.abc import Iterator

from longwatch.kernel.finding import Finding, fine, note, wrong
from longwatch.migrate.place import Place
from longwatch.migrate.queue import accounting, authority, forms
from longwatch.migrate.queue.folder import Folder, document
from longwatch.migrate.queue.forms import Manifest
from longwatch.migrate.queue.survey import Read, source
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import Job, MigrateState, Status

_SHOWN = 10


def examine(place: Place, queue: Read, state: MigrateState | None) -> Iterator[Finding]:
    """Yield the queue's findings. Changes nothing."""
    jobs = state.jobs if state else {}
    done = [card.id for card in queue.cards if jobs.get(card.id, Job()).status is Status.DONE]
    following = next((card.id for card in queue.cards if card.id not in done), "")
    if queue.facts.ended:
        yield fine("queue", f"{place.profile.queue.pointer}: at its end")
    else:
        text = f"{queue.facts.task}: {len(queue.cards)} jobs with the handoff, {len(done)} done; next is {following}"
        yield fine("queue", text)
        yield _completion(place, queue, len(done))
    if place.profile.queue.inventory:
        yield _inventory(place, queue)
    yield from _uncommitted(place, queue)


def _uncommitted(place: Place, queue: Read) -> Iterator[Finding]:
    dirty = Git.open(place.repository).dirty_paths()
    found = authority.uncommitted(place.profile.queue, queue.files, dirty)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        text = f"{', '.join(found[:_SHOWN])}{more}: not as committed, and the queue counts only as it is committed"
        yield wrong("queue", text, "commit it, or put it back")


def _completion(place: Place, queue: Read, done: int) -> Finding:
    """Say what is still missing for the current task to be accepted."""
    folder, name = Folder(place.repository), authority.manifest_path(place.profile.queue, queue.facts.task)
    manifest, found = document(folder, name, Manifest, lambda one: forms.manifest_problems(name, one))
    left = len(queue.cards) - done
    if manifest is None:
        missing = found[0].mend if (place.repository / name).exists() else "not written yet"
    else:
        problems = (*found, *authority.accepted(name, manifest, None))
        missing = "; ".join(f"{one.where}: {one.mend}" for one in problems) or "it is accepted"
    return note("completion", f"{queue.facts.task}: {left} jobs are open; its manifest {name}: {missing}")


def _inventory(place: Place, queue: Read) -> Finding:
    proof = accounting.prove(queue.account.inventory, Folder(place.repository), source(place))
    text = (
        f"{len(queue.account.units)} units: {len(proof.verified)} verified, {len(proof.unverified)} unverified, "
        f"{len(proof.drifted)} drifted, {len(proof.invalid)} invalid references"
    )
    if proof.invalid:
        mend = "restore these files, or bring the inventory up to date in a reviewed commit"
        return wrong("inventory", f"{text}: {'; '.join(proof.invalid[:_SHOWN])}", mend)
    return fine("inventory", text)
