"""What a family of problems is made of: templates, each a pure function from constants and chance to a problem."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from random import Random

import msgspec

from longwatch.learn.tasks import Case, Json, Language, Split

Constants = Mapping[str, Json]
Arguments = tuple[Json, ...]

LEAST_CASES = 6
_EXAMPLES = 2
_TURNS = (Split.TRAIN, Split.CONFIRM, Split.TRAIN, Split.DEV, Split.TRAIN, Split.SEALED)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem with its references. Its tests are calls; what they return is computed later, by the one in Python."""

    name: str
    """Of the function, in snake case."""
    parameters: tuple[str, ...]
    sentence: str
    """What to do, in words."""
    references: Mapping[Language, str]
    """In Python, in JavaScript, and in the languages of `solutions` that have one."""
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


def tell_apart(cases: Sequence[Case]) -> bool:
    """Whether these are enough, and no constant answer passes them."""
    return len(cases) >= LEAST_CASES and len({msgspec.json.encode(case.expected) for case in cases}) > 1


def telling(cases: Iterable[Case]) -> list[Case]:
    """The examples of a prompt: the first that return something, if any do."""
    cases = list(cases)
    return ([case for case in cases if case.expected] or cases)[:_EXAMPLES]
