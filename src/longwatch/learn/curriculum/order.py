"""In which order an endless curriculum is walked. Pure.

Row by row it goes round its strata (family and level), and inside one round its templates, each with other constants
in each round. What has nothing new left is passed over, so nothing comes twice before everything came once.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd
from random import Random

from longwatch.learn.curriculum.template import Template


class Rounds:
    """Going round members of different sizes, where each takes part in as many rounds as it is large."""

    def __init__(self, sizes: Sequence[int]) -> None:
        bounds = [0, *sorted(set(sizes))]
        self._stretches = tuple(
            (start, sum(size > start for size in sizes), end - start) for start, end in pairwise(bounds)
        )
        self.total = sum(sizes)

    def at(self, place: int) -> tuple[int, int]:
        """The round of a place, and which of those that take part in this round has its turn there."""
        place %= self.total
        for start, active, rounds in self._stretches:
            if place < active * rounds:
                turn, rank = divmod(place, active)
                return start + turn, rank
            place -= active * rounds
        raise AssertionError("a place below the total lies in a stretch")


class Stratum:
    """The templates of one family and level, and the order of their problems under one seed."""

    def __init__(self, seed: int, templates: Sequence[Template]) -> None:
        self._key = f"{seed}/{templates[0].family}/{templates[0].level}"
        self._templates = tuple(templates)
        self._rounds = Rounds([template.size for template in templates])
        self.size = self._rounds.total
        """How many different problems it has."""

    def at(self, place: int) -> tuple[Template, int]:
        """The template at a place and the number of its constants; all places below `size` differ."""
        turn, rank = self._rounds.at(place)
        template = _shuffled(self, turn)[rank]
        return template, _number(f"{self._key}/{template.name}", turn, template.size)

    def shuffled(self, turn: int) -> tuple[Template, ...]:
        """The templates that take part in a round, in their order in it."""
        left = [template for template in self._templates if template.size > turn]
        Random(f"{self._key}/{turn}").shuffle(left)  # noqa: S311 - repeatable, not secret
        return tuple(left)


class Walk:
    """The whole order under one seed."""

    def __init__(self, seed: int, templates: Sequence[Template]) -> None:
        groups: dict[tuple[str, int], list[Template]] = {}
        for template in templates:
            groups.setdefault((template.family, template.level), []).append(template)
        order = sorted(groups)
        Random(f"{seed}/strata").shuffle(order)  # noqa: S311 - repeatable, not secret
        self._strata = tuple(Stratum(seed, groups[key]) for key in order)
        self._rounds = Rounds([stratum.size for stratum in self._strata])

    @property
    def size(self) -> int:
        """How many different problems there are; after them it starts anew, with other tests."""
        return self._rounds.total

    def at(self, row: int) -> tuple[Template, int]:
        """The template of a row and the number of its constants."""
        turn, rank = self._rounds.at(row)
        active = [stratum for stratum in self._strata if stratum.size > turn]
        return active[rank].at(turn)


@lru_cache(maxsize=256)
def _shuffled(stratum: Stratum, turn: int) -> tuple[Template, ...]:
    return stratum.shuffled(turn)


def _number(key: str, turn: int, size: int) -> int:
    """A walk over 0 to `size` - 1 that meets each once."""
    random = Random(key)  # noqa: S311 - repeatable, not secret
    start = random.randrange(size)
    step = random.choice([step for step in range(1, size + 1) if gcd(step, size) == 1])
    return (start + turn * step) % size
