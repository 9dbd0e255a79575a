"""`continue`: an undecided experiment is bound to what is here now, with its clock (specification L30)."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from longwatch.kernel import lease
from longwatch.kernel.clock import now
from longwatch.kernel.errors import LeaseHeldError, RefusedError
from longwatch.kernel.identity import alive
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import HELD
from longwatch.kernel.line import Line, Lost
from longwatch.kernel.ownership import owned
from longwatch.kernel.program import REPORT
from longwatch.kernel.store import Ended, OpenStep, Store
from longwatch.kernel.tree import end_tree
from longwatch.kernel.watch import Watch
from longwatch.learn import settings
from longwatch.learn.experiment import meter
from longwatch.learn.generations import binding, continuing, entering
from longwatch.learn.generations.present import present
from longwatch.learn.generations.values import Change, sentence
from longwatch.learn.place import Place
from longwatch.learn.state import LearnState
from longwatch.learn.steps import LearnStep
from longwatch.observe import kinds

_LOST = "The experiment was moved to another source generation."


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """What moves, or moved."""

    dry_run: bool
    experiment: int
    parent: str
    child: str
    carried_s: float
    limit_s: float
    changes: tuple[Change, ...]
    obstacles: tuple[str, ...] = ()
    """Why it cannot move as it is; only in a dry run."""
    held: bool = False
    """The watch waits for a person's word."""


def look(watch: Watch) -> Continuation:
    """Return what `continue` would do, and what keeps it from that. Takes no lock and changes nothing.

    Raises:
        RefusedError: the watch is no learn watch, or its experiment is bound to nothing yet.
    """
    place = _place(watch)
    store = Store.read(watch.database)
    try:
        return _look(place, store)
    finally:
        store.close()


def move(watch: Watch) -> Continuation:
    """Move the current experiment, in one commit after what it is bound to now was archived.

    Raises:
        RefusedError: it cannot move; everything that is in the way is named with its mend.
        LeaseHeldError: a supervisor runs.
        IntegrityError, NotReadyError: what is here cannot be archived.
    """
    seen = look(watch)
    _refuse(seen.obstacles)
    place = _place(watch)
    with owned(watch, place.settings.host), _alone(place, seen):
        store = Store.open(watch.database)
        try:
            again = _look(place, store)
            _refuse((*again.obstacles, *_unequal(seen, again)))
            _commit(place, store, again)
            held = store.snapshot().lifecycle.phase in HELD
        finally:
            store.close()
    return msgspec.structs.replace(again, dry_run=False, held=held)


def text(seen: Continuation) -> str:
    """Return it for a person."""
    changed = [f"  {one.part}: {one.text}" for one in seen.changes]
    name = f"Experiment {seen.experiment}"
    if seen.obstacles:
        return "\n".join(
            [f"{name} cannot go on as what is here now:", *(f"- {one}" for one in seen.obstacles), *changed]
        )
    clock = f"{seen.carried_s:.1f} active seconds of {seen.limit_s:g} go with it"
    if seen.dry_run:
        return "\n".join([f"{name} would go on as generation {seen.child[:12]}; {clock}.", *changed])
    mend = "`longwatch resume --accept`, then `longwatch run`" if seen.held else "`longwatch run`"
    return "\n".join(
        [f"{name} is bound to generation {seen.child[:12]} now; {clock}. {mend} goes on.", *changed]
    )


def _place(watch: Watch) -> Place:
    kind = kinds.load(watch).settings.kind
    if kind != settings.KIND:
        raise RefusedError(
            f"{watch.config} is of kind {kind}: only a learn watch has experiments to continue."
        )
    return Place(watch, settings.load(watch.root))


def _look(place: Place, store: Store) -> Continuation:
    state = msgspec.json.decode(store.snapshot().line, type=LearnState)
    experiment = state.experiment
    if not experiment.generation:
        raise RefusedError(
            f"Experiment {experiment.number} is bound to no source generation yet: `longwatch run` binds it to what is here."
        )
    found = entering.drift(place, state)
    active_s = meter.read(place.experiment(experiment.number)).total_s
    hours_s = 3600 * place.settings.experiment.hours
    return Continuation(
        dry_run=True,
        experiment=experiment.number,
        parent=experiment.generation,
        child=present(place.settings, place.watch.root).digest,
        carried_s=active_s,
        limit_s=experiment.limit_s,
        changes=found,
        obstacles=(
            *_busy(place.watch, store, found),
            *continuing.obstacles(state, found, active_s=active_s, limit_s=hours_s),
        ),
    )


def _busy(watch: Watch, store: Store, found: tuple[Change, ...]) -> Iterator[str]:
    """Yield what still holds the experiment: a live program, or an outcome that nobody counted yet."""
    differs = f" What differs: {sentence(found)}." if found else ""
    for left in store.open_steps():
        if left.identity is not None and alive(left.identity):
            yield (
                f"{left.id} is held by a live worker, process {left.identity.pid}: `longwatch run` takes it over, and "
                f"`longwatch pause` lets it save and end.{differs}"
            )
        elif (watch.step(left.id) / REPORT).exists():
            yield f"{left.id} left an outcome that is not counted yet: `longwatch run` counts it first.{differs}"


def _refuse(found: tuple[str, ...]) -> None:
    if found:
        raise RefusedError(f"The experiment stays as it is: {'; '.join(found)}")


def _unequal(seen: Continuation, again: Continuation) -> Iterator[str]:
    for name in ("experiment", "parent", "child", "carried_s", "limit_s"):
        before, after = getattr(seen, name), getattr(again, name)
        if before != after:
            yield f"{name} was {before} a moment ago and is {after}: somebody works on it; look again"


@contextmanager
def _alone(place: Place, seen: Continuation) -> Iterator[None]:
    """Hold the experiment's own lock, as its worker does."""
    folder = place.experiment(seen.experiment)
    if not folder.is_dir():
        yield
        return
    try:
        held = lease.acquire(folder / "lock")
    except LeaseHeldError as error:
        who = lease.holder(folder / "lock")
        named = f", process {who.identity.pid} since {who.since}" if who else ""
        raise RefusedError(
            f"Experiment {seen.experiment} is held by a live worker{named}: end it first. "
            f"What differs: {sentence(seen.changes)}."
        ) from error
    try:
        yield
    finally:
        held.close()


def _commit(place: Place, store: Store, seen: Continuation) -> None:
    child = binding.kept(place, present(place.settings, place.watch.root))
    snapshot, line = store.snapshot(), kinds.load(place.watch).line
    state = msgspec.json.decode(snapshot.line, type=LearnState)
    left, notes = store.open_steps(), list[Note]()
    for one in left:
        end_tree(one.identity, one.cookie, grace_s=0.0)
        state, said = _closed(line, state, one)
        notes += said
    state, note = continuing.moved(state, child, seen.changes, active_s=seen.carried_s)
    # We own the watch, so its newest generation of supervisors is ours to write for.
    store.commit(
        snapshot.generation,
        notes=(*notes, note),
        line=msgspec.json.encode(state),
        changes=tuple(Ended(id=one.id, outcome=Lost(_LOST), active_s=one.active_s) for one in left),
    )


def _closed(
    line: Line[LearnState, LearnStep], state: LearnState, left: OpenStep
) -> tuple[LearnState, tuple[Note, ...]]:
    step: LearnStep = msgspec.json.decode(left.step, type=line.step_type)
    return line.apply(state, step, Lost(_LOST), now())
