"""`prune`: what old experiments left is listed, or removed in a watch that nobody supervises (specification L27)."""

import msgspec

from longwatch.kernel.errors import RefusedError
from longwatch.kernel.journal import Note
from longwatch.kernel.ownership import owned
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import pruning, settings
from longwatch.learn.place import Place
from longwatch.learn.pruning import Removal
from longwatch.learn.state import LearnState
from longwatch.learn.steps import Keep
from longwatch.observe import kinds


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, or went."""

    dry_run: bool
    removals: tuple[Removal, ...]
    bytes: int


def look(watch: Watch) -> Pruning:
    """Return what `prune` would remove. Takes no lock and changes nothing.

    Raises:
        RefusedError: the watch is no learn watch.
    """
    place = _place(watch)
    store = Store.read(watch.database)
    try:
        return _pruning(pruning.look(place, _keep(store)), dry_run=True)
    finally:
        store.close()


def prune(watch: Watch) -> Pruning:
    """Remove it, and leave an event that says so.

    Raises:
        RefusedError: the watch is no learn watch.
        LeaseHeldError: a supervisor runs.
    """
    place = _place(watch)
    with owned(watch, place.settings.host):
        store = Store.open(watch.database)
        try:
            keep = _keep(store)
            found = pruning.look(place, keep)
            done = pruning.prune(place, keep)
            if found:
                store.begin_generation(
                    Note("experiments.pruned", done.sentence, {"freed_bytes": done.freed_bytes})
                )
        finally:
            store.close()
    return _pruning(found, dry_run=False)


def text(seen: Pruning) -> str:
    """Return the list for a person."""
    if not seen.removals:
        return "Nothing to prune: what there is, is needed."
    verb = "would go" if seen.dry_run else "removed"
    lines = (f"{one.size_bytes:>14,}  {one.path}" for one in seen.removals)
    return "\n".join((*lines, f"{seen.bytes:>14,}  bytes {verb}; the log keeps what was decided"))


def _place(watch: Watch) -> Place:
    kind = kinds.load(watch).settings.kind
    if kind != settings.KIND:
        raise RefusedError(f"{watch.config} is of kind {kind}: only a learn watch is pruned.")
    return Place(watch, settings.load(watch.root))


def _keep(store: Store) -> Keep:
    return pruning.keep(msgspec.json.decode(store.snapshot().line, type=LearnState))


def _pruning(found: tuple[Removal, ...], *, dry_run: bool) -> Pruning:
    return Pruning(dry_run=dry_run, removals=found, bytes=sum(one.size_bytes for one in found))
