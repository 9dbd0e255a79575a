"""`export`: the champion as a model of its own (specification L37). It only reads the watch, so it may run beside its supervisor."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longwatch.kernel.digest import digest
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.program import Work
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import settings
from longwatch.learn.line import ENVIRONMENT
from longwatch.learn.place import Place
from longwatch.learn.sides import tasks_of
from longwatch.learn.state import LearnState
from longwatch.learn.steps import BASE, Anchor, LearnStep, Window
from longwatch.learn.tasks import Split
from longwatch.observe import kinds

if TYPE_CHECKING:
    from longwatch.learn.exporting.story import Exported, Format

Told = Callable[[str, str, int | None, int | None], None]
"""What is being done, a few words more, how much of it is done, and how much there is."""


class _Shown(Work[LearnStep]):
    """A step's program shows its progress in a file; here somebody waits at a terminal."""

    def __init__(self, folder: Path, step: LearnStep, told: Told) -> None:
        super().__init__(folder, step)
        self._told = told

    def progress(
        self,
        phase: str,
        text: str = "",
        *,
        done: int | None = None,
        total: int | None = None,
        idle_s: float = 0.0,  # noqa: ARG002 - the signature of what it stands for
    ) -> None:
        """Tell it."""
        self._told(phase, text, done, total)


def run(watch: Watch, target: Path, *, form: str, number: str, told: Told) -> "Exported":
    """Export the champion of a watch, proved on its sealed tasks.

    Raises:
        RefusedError: there is no champion yet, the watch is no learn watch, or as `export`.
        IntegrityError, NotReadyError, TransientError: as `export`.
    """
    place = _place(watch)
    champion, sealed, experiment = _champion(watch)
    # Every exam is computed with these, and torch reads them when it is loaded.
    os.environ.update(ENVIRONMENT)
    from longwatch.learn.exporting.story import Wanted, export, number_of  # noqa: PLC0415 - loads torch

    chosen = _format(form)
    wanted = Wanted(
        champion=digest(champion),
        target=target,
        format=chosen,
        number=number_of(chosen, number),
        tasks=tasks_of(place.windows, sealed, Split.SEALED),
    )
    step = Anchor(id="export", number=experiment, window=sealed, candidate=champion, rivals=())
    return export(_Shown(watch.root, step, told), place, wanted)


def text(made: "Exported") -> str:
    """Say what was exported, for a person."""
    found = made.provenance
    return (
        f"{made.path}: {found.format}, {found.number}, {made.size_bytes / 1e6:.1f} MB, adapter {found.adapter[:12]} merged into "
        f"{found.model}.\n{found.evaluation.sentence}."
    )


def _format(name: str) -> "Format":
    from longwatch.learn.exporting.story import Format  # noqa: PLC0415 - as above

    found = next((one for one in Format if one == name), None)
    if found is None:
        raise RefusedError(f"there is no format {name!r}: choose {', '.join(Format)}")
    return found


def _place(watch: Watch) -> Place:
    kind = kinds.load(watch).settings.kind
    if kind != settings.KIND:
        raise RefusedError(f"{watch.config} is of kind {kind}: only a learn watch has a champion.")
    return Place(watch, settings.load(watch.root))


def _champion(watch: Watch) -> tuple[str, Window, int]:
    store = Store.read(watch.database)
    try:
        state = msgspec.json.decode(store.snapshot().line, type=LearnState)
    finally:
        store.close()
    if state.champion == BASE or state.sealed is None:
        raise RefusedError(
            "There is no champion yet: no adapter was accepted, and the base model need not be exported."
        )
    return state.champion, state.sealed, state.experiment.number
