"""What each round asks, and when the rounds are over (L8). Pure."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from longwatch.learn.experiment.examples import Example
from longwatch.learn.experiment.nominating import Tried
from longwatch.learn.tasks import Task

MOST_DRY = 3
"""So many rounds without a new example, one after another, complete an experiment."""


class Ended(StrEnum):
    """Why an experiment makes no further round."""

    ROUNDS = "rounds"
    CURRICULUM = "curriculum_exhausted"
    DRY = "no_new_examples"
    HOURS = "hours"

    @property
    def sentence(self) -> str:
        """The reason for a person."""
        return _SENTENCES[self]


_SENTENCES = {
    Ended.ROUNDS: "all rounds are done",
    Ended.CURRICULUM: "no task is left that was not asked",
    Ended.DRY: f"{MOST_DRY} rounds gave no new verified example",
    Ended.HOURS: "the experiment has used its hours",
}


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far the rounds are."""

    rounds: int = 0
    """Rounds that are over."""
    collected: tuple[Example, ...] = ()
    """Of all rounds: they are cumulative."""
    taught: tuple[Example, ...] = ()
    """What the last training learned from, the replay left out."""
    dry: int = 0
    """The last so many rounds gave no new example."""
    tried: tuple[Tried, ...] = ()
    """What was trained and evaluated."""


def batch(tasks: Sequence[Task], size: int, number: int) -> tuple[Task, ...]:
    """Return the tasks that are new in a round, counted from 1, in the order that was bound. Empty: none is left."""
    return tuple(tasks[(number - 1) * size : number * size])


def ending(standing: Standing, *, rounds: int, following: Sequence[Task]) -> Ended | None:
    """Say why there is no further round, or `None` if `following`, the next batch, is to be asked."""
    if standing.rounds >= rounds:
        return Ended.ROUNDS
    if standing.dry >= MOST_DRY:
        return Ended.DRY
    return None if following else Ended.CURRICULUM
