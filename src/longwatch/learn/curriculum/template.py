"""What a family of problems is made of: templates, each a pure function from constants and chance to a problem."""

from collections.abc import Callable, Mapping
from math import prod
from random import Random

import msgspec

from longwatch.learn.tasks import Json, Split

Constants = Mapping[str, Json]
Arguments = tuple[Json, ...]

_TURNS = (Split.TRAIN, Split.CONFIRM, Split.TRAIN, Split.DEV, Split.TRAIN, Split.SEALED)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem with its reference in both languages. Its tests are calls; what they return is computed later."""

    name: str
    """Of the function, in snake case."""
    parameters: tuple[str, ...]
    sentence: str
    """What to do, in words."""
    python: str
    javascript: str
    calls: tuple[Arguments, ...]
    """Arguments of each call as plain data; the first ones serve as examples in the prompt."""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of problem: whatever is built from it is on one side of the split, in every language."""

    family: str
    name: str
    level: int
    split: Split
    space: Mapping[str, tuple[Json, ...]]
    """The values that each of its constants may take."""
    build: Callable[[Constants, Random], Problem]

    @property
    def size(self) -> int:
        """How many problems it has that differ in a constant."""
        return prod(len(values) for values in self.space.values())

    def constants(self, number: int) -> Constants:
        """The `number`-th choice of constants; different for all numbers below `size`."""
        chosen = {}
        for name, values in self.space.items():
            number, place = divmod(number, len(values))
            chosen[name] = values[place]
        return chosen


def side_at(place: int) -> Split:
    """The side of the `place`-th classic of a family, so that each side gets some: append, never insert."""
    return _TURNS[place % len(_TURNS)]


def camel(name: str) -> str:
    """`snake_case` as `snakeCase`, JavaScript's custom."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
