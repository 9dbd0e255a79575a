"""The step: an experiment is bound to what is here, and that is archived, before its training begins (L29)."""

from msgspec.structs import replace

from longwatch.kernel import files
from longwatch.kernel.digest import Digest, digest
from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.learn import adapters
from longwatch.learn.evidence import succeeded
from longwatch.learn.generations import archive
from longwatch.learn.generations.present import present
from longwatch.learn.generations.values import Change, Generation, Part, changes, sentence
from longwatch.learn.place import Place
from longwatch.learn.settings import FILE
from longwatch.learn.steps import BASE, Bind, Bound, LearnStep
from longwatch.learn.student.binding import base_digest

_SETTINGS_BYTES = 1024 * 1024


def perform(work: Work[LearnStep], step: Bind, place: Place) -> Outcome:
    """Bind an experiment. A repeat is harmless: what was archived before is found again."""
    with work.span("bind", step.title):
        return succeeded(bind(step, place))


def bind(step: Bind, place: Place) -> Bound:
    """Archive the generation that is here, and say what changed since the experiment before.

    Raises:
        IntegrityError: the base model is another one than that of all earlier experiments.
    """
    here = present(place.settings, place.watch.root)
    found = _since(step, place, here)
    _refuse_another_base(step, place, found)
    return Bound(
        generation=kept(place, here),
        limit_s=3600 * place.settings.experiment.hours,
        changes=len(found),
        changed=sentence(replace(one, mend="since the experiment before") for one in found),
    )


def kept(place: Place, here: Generation) -> Digest:
    """Archive a generation with the settings as they stand in the watch.

    Raises:
        IntegrityError, NotReadyError: as `archive.put`.
    """
    return archive.put(place.generations, here, files.read_bounded(place.watch.root / FILE, _SETTINGS_BYTES))


def _since(step: Bind, place: Place, here: Generation) -> tuple[Change, ...]:
    if not step.previous:
        return ()
    return changes(archive.get(place.generations, step.previous).generation, here)


def _refuse_another_base(step: Bind, place: Place, found: tuple[Change, ...]) -> None:
    """Adapters, levels and the replay belong to one base for the whole life of a watch."""
    other = [one for one in found if one.part is Part.MODEL]
    if other:
        raise IntegrityError(f"every experiment before was made on another base: {sentence(other)}")
    if step.champion == BASE:
        return
    lineage = adapters.get(place.adapters, digest(step.champion)).lineage
    now = base_digest(place.settings.student)
    if lineage.base != now:
        raise IntegrityError(
            f"the champion {step.champion[:12]} was trained on base {lineage.base[:12]}, and [student] model is "
            f"{now[:12]}: restore its files, or begin a new watch: adapters fit one base only"
        )
