"""A step of an experiment begins: what it is bound to is here, or it says what is not, before any accelerator work (L29).

Training goes on only if nothing at all differs. An experiment that is trained already is confirmed, adopted and audited
with its own settings and, where the package is another one now, by its archived sources. It is refused only if what it
is measured on differs: the base, the runtimes, the environment, for an audit the benchmarks.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from longwatch.kernel.errors import IntegrityError, LongwatchError
from longwatch.kernel.finding import Finding, fine, wrong
from longwatch.kernel.program import Work
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn import settings
from longwatch.learn.generations import archive
from longwatch.learn.generations.archive import Archived
from longwatch.learn.generations.present import FREE_TABLES, PACKAGE, present, sources
from longwatch.learn.generations.values import Change, Part, changes, sentence
from longwatch.learn.place import Place
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import LearnState, Stage
from longwatch.learn.steps import Audit, LearnStep, OfGeneration, Train

MEASURED = (Part.MODEL, Part.RUNTIMES, Part.ENVIRONMENT)
_UNPACKED = "sources"
_PROGRAM = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module('longwatch.learn.program', run_name='__main__', alter_sys=True)"
)


def enter(work: Work[LearnStep], watch: Watch) -> Place:
    """Return the watch as this step shall see it; where the sources are archived ones, go on as their program.

    Raises:
        IntegrityError: something differs; every change is named with its mend.
    """
    step = work.step
    if not isinstance(step, OfGeneration) or not step.generation:
        return Place(watch, settings.load(watch.root))
    archived = archive.get(Place.archive_of(watch), step.generation)
    if isinstance(step, Train):
        place = Place(watch, settings.load(watch.root))
        refuse(place, archived, Part)
        return place
    if isinstance(step, Audit) and not archived.generation.data:
        # No benchmark was bound: base and champion are both measured as what is here now.
        return Place(watch, settings.load(watch.root))
    if sources(PACKAGE) != archived.generation.sources:
        _go_on_as(archived, work.folder)
    place = Place(watch, _bound(watch, archived))
    refuse(place, archived, (*MEASURED, Part.DATA) if isinstance(step, Audit) else MEASURED)
    return place


def refuse(place: Place, archived: Archived, parts: Iterable[Part]) -> None:
    """Return if nothing differs in these parts from the generation that is bound.

    Raises:
        IntegrityError: something does.
    """
    found = changes(archived.generation, present(place.settings, place.watch.root), parts)
    if found:
        raise IntegrityError(
            f"the experiment is bound to generation {archived.folder.name[:12]}, and not all of it is here: {sentence(found)}. "
            "Or `longwatch continue` binds it to what is here now (`--dry-run` only lists it)"
        )


def ready(watch: Watch, known: LearnSettings) -> None:
    """Return if the current experiment can go on here; what a step may have left is settled first.

    Raises:
        IntegrityError: something differs; every change is named with its mend.
    """
    store = Store.read(watch.database)
    try:
        left, state = store.open_steps(), msgspec.json.decode(store.snapshot().line, type=LearnState)
    finally:
        store.close()
    if not left:
        refuse_drift(Place(watch, known), state)


def refuse_drift(place: Place, state: LearnState) -> None:
    """Return if the current experiment, as far as it is, can go on here.

    Raises:
        IntegrityError: something differs; every change is named with its mend.
    """
    experiment = state.experiment
    if experiment.generation:
        archived = archive.get(place.generations, experiment.generation)
        refuse(place, archived, parts_of(experiment.stage))


def drift(place: Place, state: LearnState) -> tuple[Change, ...]:
    """Return everything that differs from the generation of the current experiment, whether it matters now or not."""
    archived = archive.get(place.generations, state.experiment.generation)
    return changes(archived.generation, present(place.settings, place.watch.root))


def findings(watch: Watch, known: LearnSettings, state: LearnState) -> Iterator[Finding]:
    """Yield whether the current experiment, if it is bound, can go on here. Changes nothing."""
    if not state.experiment.generation:
        return
    try:
        refuse_drift(Place(watch, known), state)
    except LongwatchError as error:
        yield wrong("generation", str(error), "mend what is named, or longwatch continue")
        return
    yield fine("generation", f"all that experiment {state.experiment.number} is bound to is here")


def parts_of(stage: Stage) -> Iterable[Part]:
    """Return what must be equal in this stage of an experiment."""
    if stage is Stage.TRAIN:
        return Part
    return (*MEASURED, Part.DATA) if stage is Stage.AUDIT else MEASURED


def _bound(watch: Watch, archived: Archived) -> LearnSettings:
    """The settings that were bound; what is free is as the file says now, where this program can read it."""
    bound = archived.settings()
    if _is_archived(watch):
        return bound
    now = settings.load(watch.root)
    tables = {name: getattr(bound, name) for name in bound.__struct_fields__ if name not in FREE_TABLES}
    student = msgspec.structs.replace(bound.student, model=now.student.model)
    return msgspec.structs.replace(now, **{**tables, "student": student})


def _is_archived(watch: Watch) -> bool:
    return PACKAGE.is_relative_to(watch.steps.resolve())


def _go_on_as(archived: Archived, folder: Path) -> NoReturn:
    """Become the program of the archived sources: isolated, with nothing of ours on its path before them."""
    if PACKAGE.is_relative_to(folder.resolve()):
        raise IntegrityError(
            f"{PACKAGE} changed since it was unpacked there: end what writes to it; it is unpacked again"
        )
    home = archive.unpack(archived, folder / _UNPACKED)
    sys.stdout.flush()
    sys.stderr.flush()
    argv = (sys.executable, "-I", "-B", "-W", "ignore", "-c", _PROGRAM, str(home), str(folder))
    os.execv(sys.executable, argv)  # noqa: S606 - our own program, verified just now
