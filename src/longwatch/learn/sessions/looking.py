"""What a session holds, and everything that is wrong with it. Read only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel import files, lease
from longwatch.kernel.digest import Digest, digest, of_bytes
from longwatch.kernel.errors import LongwatchError, RefusedError
from longwatch.kernel.identity import alive
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.store import Store
from longwatch.kernel.verification import verify_receipt
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, settings, witness
from longwatch.learn.adapters import Stored
from longwatch.learn.experiment import replay
from longwatch.learn.experiment.examples import Example
from longwatch.learn.place import Place
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import Decided, LearnState
from longwatch.learn.steps import BASE, Adopt, LearnStep
from longwatch.learn.student.binding import base_digest

_CONFIG_BYTES = 1024 * 1024
T = TypeVar("T")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is missing or wrong: where, what stands there, and the mend."""

    where: str
    found: str
    mend: str

    @property
    def text(self) -> str:
        """It for a person."""
        return f"{self.where}: {self.found} ({self.mend})"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session that holds all that is needed, verified just now."""

    root: Path
    config: bytes
    state: LearnState
    decided: Decided
    """How its adapter was accepted."""
    stored: Stored
    examples: tuple[Example, ...]


class _Looked:
    """Collects what is wrong, so that one look tells all of it."""

    def __init__(self, root: Path) -> None:
        self.place = Place(Watch(root), LearnSettings(kind=settings.KIND))
        self.faults: list[Fault] = []

    def wrong(self, where: Path, found: str, mend: str) -> None:
        self.faults.append(Fault(where=str(where), found=found, mend=mend))

    def tried(self, where: Path, mend: str, make: Callable[[], T]) -> T | None:
        """Return what `make` gives, or note what it raises as a fault."""
        try:
            return make()
        except (LongwatchError, FileNotFoundError, msgspec.MsgspecError) as error:
            self.wrong(where, str(error), mend)
            return None


def look(root: Path) -> Session:
    """Return the session in `root`, verified.

    Raises:
        RefusedError: something is missing or wrong; everything is named, with its file, its value and the mend.
    """
    looked = _Looked(root)
    config = _config(looked)
    with _stored(looked) as store:
        state = _state(looked, store) if store else None
        session = _session(looked, store, state, config) if store and state else None
    if looked.faults or session is None:
        lines = "".join(f"\n  {fault.text}" for fault in looked.faults)
        raise RefusedError(f"{root} is no session that can be taken over; nothing was written:{lines}")
    return session


def _config(looked: _Looked) -> bytes | None:
    path = looked.place.watch.config
    known = looked.tried(path, "name the folder of a learn watch", lambda: settings.load(path.parent))
    if known is None:
        return None
    looked.place = Place(looked.place.watch, known)
    return files.read_bounded(path, _CONFIG_BYTES)


@contextmanager
def _stored(looked: _Looked) -> Iterator[Store | None]:
    watch = looked.place.watch
    mend = "restore it from a copy; it is made by `longwatch init learn` and `longwatch run`"
    if not watch.database.is_file():
        looked.wrong(watch.database, "there is no such file", mend)
        yield None
        return
    store = looked.tried(watch.database, mend, lambda: Store.read(watch.database))
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _state(looked: _Looked, store: Store) -> LearnState | None:
    path = looked.place.watch.database
    broken = looked.tried(path, "restore it from a copy", store.chain)
    if broken:
        looked.wrong(path, broken, "restore it from a copy: what it says is not what was written")
    _refuse_busy(looked, store)
    line = looked.tried(path, "restore it from a copy", lambda: store.snapshot().line)
    if line is None:
        return None
    mend = "name the folder of a learn watch"
    return looked.tried(path, mend, lambda: msgspec.json.decode(line, type=LearnState))


def _refuse_busy(looked: _Looked, store: Store) -> None:
    watch = looked.place.watch
    holder = lease.holder(watch.lease)
    if holder is not None and holder.living:
        looked.wrong(
            watch.lease, f"process {holder.identity.pid} supervises it", "`longwatch stop` there first"
        )
    for left in store.open_steps():
        if left.identity is not None and alive(left.identity):
            found = f"process {left.identity.pid} works on it"
            looked.wrong(watch.step(left.id), found, "`longwatch run` and then `longwatch stop` there first")


def _session(looked: _Looked, store: Store, state: LearnState, config: bytes | None) -> Session | None:
    place = looked.place
    examples = _taught(looked, state)
    decided = _accepted(looked, state)
    if decided is None:
        return None
    stored = looked.tried(
        place.adapters / state.champion,
        "restore it from a copy",
        lambda: adapters.get(place.adapters, digest(state.champion)),
    )
    _receipt(looked, store, decided)
    _evaluated(looked, decided)
    if stored is None:
        return None
    _lineage(looked, store, state, decided, stored)
    if examples is None or config is None:
        return None
    return Session(
        root=place.watch.root, config=config, state=state, decided=decided, stored=stored, examples=examples
    )


def _accepted(looked: _Looked, state: LearnState) -> Decided | None:
    accepted = (one for one in reversed(state.history) if one.adapter == state.champion and one.receipt)
    decided = None if state.champion == BASE else next(accepted, None)
    if decided is None:
        found = f"its champion is {state.champion[:12]}, and no adapter of that name was accepted"
        looked.wrong(looked.place.watch.database, found, "let it run until a challenger is accepted")
    return decided


def _receipt(looked: _Looked, store: Store, decided: Decided) -> None:
    watch = looked.place.watch
    receipts, name = ReceiptStore(watch.receipts), digest(decided.receipt)
    mend = "restore what it is about, or the acceptance settings that it was decided under"
    world = looked.tried(
        watch.keys, "restore the key's folder", lambda: witness.world(watch, looked.place.settings, store)
    )
    if world is None:
        return
    verdict = looked.tried(receipts.path(name), mend, lambda: verify_receipt(name, receipts, world))
    if verdict is not None and not verdict.ok:
        looked.wrong(receipts.path(name), f"{verdict.answer}: {verdict.detail}", mend)


def _taught(looked: _Looked, state: LearnState) -> tuple[Example, ...] | None:
    place = looked.place
    if not state.replay:
        mend = "let it run until a challenger is accepted"
        looked.wrong(place.replay, "it has no verified training data", mend)
        return None
    path = place.replay / f"{state.replay}.jsonl"
    found = looked.tried(path, "restore it from a copy", lambda: replay.load(place.replay, state.replay))
    if found == ():
        looked.wrong(path, "it holds no example", "restore it from a copy")
    return found


def _evaluated(looked: _Looked, decided: Decided) -> None:
    if not 0 <= decided.dev_base <= decided.dev_total or decided.dev_total == 0:
        found = (
            f"experiment {decided.number} has no completed base evaluation: base passed {decided.dev_base} of "
            f"{decided.dev_total} development tasks"
        )
        looked.wrong(
            looked.place.watch.database, found, "let it finish an experiment whose adapter is accepted"
        )


def _lineage(looked: _Looked, store: Store, state: LearnState, decided: Decided, stored: Stored) -> None:
    path, lineage = stored.folder / adapters.LINEAGE, stored.lineage
    # An adapter that the session itself took over keeps the lineage that it came with.
    expected = state.adopted.receipt if state.adopted and not decided.number else decided.receipt
    if lineage.decision != expected:
        found = f"decision {lineage.decision[:12]}, but {expected[:12]} accepted it"
        looked.wrong(path, found, "restore it from a copy")
    base = looked.tried(
        looked.place.watch.config,
        "make its student available here: `longwatch fetch`, or correct [student] model",
        lambda: base_digest(looked.place.settings.student),
    )
    if base is not None and lineage.base != base:
        found = f"trained on base {lineage.base[:12]}, but [student] model is {base[:12]} here"
        looked.wrong(path, found, "restore that model's files: an adapter fits one base only")
    newest = next((one for one in reversed(state.history) if one.adapter), decided)
    if newest is decided and lineage.data not in _data(looked, store, state):
        found = f"data {lineage.data[:12]} is not the window and the training data {state.replay[:12]} of the session"
        looked.wrong(path, found, "restore database and adapter from the same copy")


def _data(looked: _Looked, store: Store, state: LearnState) -> frozenset[Digest]:
    """What the lineage of the champion may say of its data: its window together with the training data."""
    decoder = msgspec.json.Decoder(LearnStep)
    path = looked.place.watch.database
    steps = looked.tried(
        path, "restore it from a copy", lambda: [decoder.decode(one.step) for one in store.steps()]
    )
    adopted = (
        one for one in steps or () if isinstance(one, Adopt) and one.challenger.adapter == state.champion
    )
    own = () if state.adopted is None else (state.adopted.data,)
    return frozenset(
        (*own, *(of_bytes(msgspec.json.encode((one.window.manifest, state.replay))) for one in adopted))
    )
