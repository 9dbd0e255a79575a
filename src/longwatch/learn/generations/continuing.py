"""An undecided experiment moves to another source generation, with its clock (L30). Pure."""

from collections.abc import Iterator

import msgspec

from longwatch.kernel.journal import Note
from longwatch.learn.generations.values import Change, Part, sentence
from longwatch.learn.state import Continued, LearnState


def obstacles(
    state: LearnState, found: tuple[Change, ...], *, active_s: float, limit_s: float
) -> Iterator[str]:
    """Yield everything that keeps the current experiment from moving, with the mend."""
    experiment = state.experiment
    if not found:
        yield (
            f"nothing differs from generation {experiment.generation[:12]} that experiment {experiment.number} is bound "
            "to: `longwatch run` goes on"
        )
    other = tuple(one for one in found if one.part is Part.MODEL)
    if other:
        yield sentence(other)
    if limit_s != experiment.limit_s:
        yield (
            f"the limits are not equal: experiment {experiment.number} may be active for {experiment.limit_s / 3600:g} hours, "
            f"[experiment] hours is {limit_s / 3600:g} now: put {experiment.limit_s / 3600:g} back, and change it with "
            "`longwatch set-hours`"
        )
    carried_s = max(
        (one.carried_s for one in state.continuations if one.experiment == experiment.number), default=0.0
    )
    if active_s < carried_s:
        yield (
            f"the active times are not equal: the clock of experiment {experiment.number} shows {active_s:.1f} s, and "
            f"{carried_s:.1f} s were carried over before: restore its active-seconds.json"
        )


def moved(
    state: LearnState, child: str, found: tuple[Change, ...], *, active_s: float
) -> tuple[LearnState, Note]:
    """Return the state in which the current experiment is bound to `child`, and what to say about it.

    The seconds stay with the experiment: they are counted once, when its training is done.
    """
    experiment = state.experiment
    one = Continued(
        experiment=experiment.number,
        parent=experiment.generation,
        child=child,
        carried_s=active_s,
        limit_s=experiment.limit_s,
    )
    after = msgspec.structs.replace(
        state,
        experiment=msgspec.structs.replace(experiment, generation=child),
        continuations=(*state.continuations, one),
    )
    data: dict[str, str | int | float] = {**msgspec.structs.asdict(one), "changes": len(found)}
    return after, Note("experiment.continued", _said(one, found), data)


def _said(one: Continued, found: tuple[Change, ...]) -> str:
    changed = sentence(msgspec.structs.replace(change, mend="taken over") for change in found)
    return (
        f"Experiment {one.experiment} goes on as source generation {one.child[:12]} instead of {one.parent[:12]}, with its "
        f"{one.carried_s:.1f} active seconds of {one.limit_s:g}. {changed}."
    )
