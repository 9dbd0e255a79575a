"""Removes what no experiment needs any more, so that the disk stays as full as it is (L27). `keep` and `plan` are pure.

Only what is found, and whose name is one of ours, is ever removed (K9). What nothing here touches: the accepted
adapters (receipts are about their files), the receipts, and the grades of the sealed set and of benchmarks.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.learn.evidence import succeeded
from longwatch.learn.place import Place
from longwatch.learn.state import LearnState
from longwatch.learn.steps import Keep, LearnStep, Prune, Pruned, number_of

FINISHED = 2
"""So many finished experiments keep their folders; of older ones the log keeps the record."""
WINDOWS = 2
_GENERATION = re.compile(r"[0-9a-f]{64}")
_REPLAY = re.compile(r"[0-9a-f]{64}\.jsonl")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The names of what there is."""

    experiments: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    replays: tuple[str, ...] = ()
    generations: tuple[str, ...] = ()


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that goes, and what it holds."""

    path: str
    """In the watch's folder."""
    size_bytes: int


def keep(state: LearnState) -> Keep:
    """Pure: return what the state refers to, the newest of the finished experiments, and the newest windows."""
    current = state.experiment
    bound = (state.sealed, state.pending, current.window, *current.fresh)
    held = [window.number for window in bound if window is not None]
    # The window after the last counted one may be half prepared: it is the newest.
    newest = range(state.windows + 1, state.windows - WINDOWS, -1)
    finished = state.history[-FINISHED:]
    return Keep(
        # The next one's window may be prepared while this one trains.
        experiments=tuple(sorted({*(one.number for one in finished), current.number, current.number + 1})),
        windows=tuple(sorted({*held, *newest})),
        replay=state.replay,
        generations=tuple(sorted({*(one.generation for one in finished), current.generation} - {""})),
    )


def plan(there: Listing, keep: Keep) -> Listing:
    """Pure: return what of it goes. A name that is not one of ours is left alone."""
    return Listing(
        experiments=_without(there.experiments, keep.experiments),
        windows=_without(there.windows, keep.windows),
        steps=tuple(name for name in there.steps if number_of(name) not in {None, *keep.experiments}),
        replays=tuple(
            name for name in there.replays if _REPLAY.fullmatch(name) and name != f"{keep.replay}.jsonl"
        ),
        generations=tuple(
            name for name in there.generations if _GENERATION.fullmatch(name) and name not in keep.generations
        ),
    )


def _without(names: tuple[str, ...], kept: tuple[int, ...]) -> tuple[str, ...]:
    wanted = {str(number) for number in kept}
    return tuple(name for name in names if name.isascii() and name.isdecimal() and name not in wanted)


def look(place: Place, keep: Keep) -> tuple[Removal, ...]:
    """Return what `prune` would remove. Changes nothing."""
    return tuple(
        Removal(path=str(path.relative_to(place.watch.root)), size_bytes=_size_bytes(path))
        for path in _paths(place, _planned(place, keep))
    )


def prune(place: Place, keep: Keep) -> Pruned:
    """Remove it. What an earlier run began to remove, this one removes."""
    planned = _planned(place, keep)
    freed_bytes = 0
    for path in _paths(place, planned):
        freed_bytes += _size_bytes(path)
        files.remove_recorded(path, place.watch.hidden)
    return Pruned(
        experiments=len(planned.experiments),
        windows=len(planned.windows),
        steps=len(planned.steps),
        freed_bytes=freed_bytes,
    )


def perform(work: Work[LearnStep], step: Prune, place: Place) -> Outcome:
    """Prune. A repeat is harmless."""
    with work.span("prune", step.title):
        return succeeded(prune(place, step.keep))


def _planned(place: Place, keep: Keep) -> Listing:
    there = Listing(
        experiments=_names(place.experiments),
        windows=_names(place.windows),
        steps=_names(place.watch.steps),
        replays=_names(place.replay),
        generations=_names(place.generations),
    )
    return plan(there, keep)


def _paths(place: Place, planned: Listing) -> Iterator[Path]:
    yield from (place.experiments / name for name in planned.experiments)
    yield from (place.windows / name for name in planned.windows)
    yield from (place.watch.steps / name for name in planned.steps)
    yield from (place.replay / name for name in planned.replays)
    yield from (place.generations / name for name in planned.generations)


def _names(parent: Path) -> tuple[str, ...]:
    if not parent.is_dir():
        return ()
    # A link was put there by somebody else.
    return tuple(sorted(path.name for path in parent.iterdir() if not path.is_symlink()))


def _size_bytes(path: Path) -> int:
    if not path.is_dir():
        return path.lstat().st_size
    return sum((Path(parent) / name).lstat().st_size for parent, _, names in os.walk(path) for name in names)
