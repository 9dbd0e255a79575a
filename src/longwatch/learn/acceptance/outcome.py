"""From graded answers to the unit of every statistic: one number per problem (L16).

All language versions and samples of a problem are one cluster: twenty answers to four problems are n = 4.
"""

from collections.abc import Callable, Iterable
from math import fsum

import msgspec

from longwatch.kernel.errors import StateError
from longwatch.learn.tasks import Verdict

VOID_ABOVE = 0.02
"""A block with a greater share of infra is void: its answers are graded again, none of them is counted (L10)."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """The champion's and the challenger's answer to one task, under one binding (L15)."""

    task: str
    problem: str
    language: str
    family: str
    champion: Verdict
    challenger: Verdict

    @property
    def infra(self) -> bool:
        """True if our own trouble hides one of the two verdicts: the pair is left out as a whole."""
        return Verdict.INFRA in {self.champion, self.challenger}

    @property
    def difference(self) -> int:
        """+1 gained, -1 lost, 0 the same."""
        return (self.challenger is Verdict.PASS) - (self.champion is Verdict.PASS)

    @property
    def lost(self) -> bool:
        """True if the champion's answer passed and the challenger's failed."""
        return not self.infra and self.difference < 0


class Outcome(msgspec.Struct, frozen=True):
    """D of one problem: the mean over its languages and samples of (challenger passes - champion passes)."""

    problem: str
    difference: float

    def __post_init__(self) -> None:
        """Refuse what no pair of pass rates can give; `not` catches NaN too."""
        if not -1 <= self.difference <= 1:
            raise StateError(
                f"the difference of problem {self.problem} is {self.difference}, outside [-1, 1]: "
                "the record of this confirmation is damaged"
            )


def outcomes(pairs: Iterable[Pair]) -> tuple[Outcome, ...]:
    """Return one outcome per problem, in the order in which the problems first appear.

    Pairs hidden by infra are left out; a problem that has no other pair gives no outcome.
    """
    differences: dict[str, list[int]] = {}
    for pair in pairs:
        if not pair.infra:
            differences.setdefault(pair.problem, []).append(pair.difference)
    return tuple(Outcome(problem, fsum(found) / len(found)) for problem, found in differences.items())


def infra_share(pairs: Iterable[Pair]) -> float:
    """Return the share of pairs that infra hides; 0 of none."""
    hidden = [pair.infra for pair in pairs]
    return sum(hidden) / len(hidden) if hidden else 0.0


def is_void(pairs: Iterable[Pair]) -> bool:
    """True if so much of the block is infra that leaving it out might choose among the problems."""
    return infra_share(pairs) > VOID_ABOVE


def slices(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> dict[str, tuple[Outcome, ...]]:
    """Return the outcomes of each slice, by language or family; a problem's D is then its mean in that slice."""
    parts: dict[str, list[Pair]] = {}
    for pair in pairs:
        parts.setdefault(key(pair), []).append(pair)
    return {name: outcomes(part) for name, part in sorted(parts.items())}
