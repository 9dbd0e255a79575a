"""The anchor: the champion against base and against the best ever, on a sealed set (L21).

A chain of acceptances, each "not worse by 3 points", could lose 3 points each time. The sealed set stops that creep.
"""

from collections.abc import Sequence
from enum import StrEnum
from functools import reduce
from math import exp, log

import msgspec

from longwatch.learn.acceptance.eprocess import Capital
from longwatch.learn.acceptance.intervals import paired
from longwatch.learn.acceptance.outcome import Pair, outcomes

ROLL_BACK_EVIDENCE = 20.0


class Hold(StrEnum):
    """What a comparison on the sealed set says."""

    HOLDS = "holds"
    """Not worse by the margin: shown."""
    UNSHOWN = "unshown"
    """Neither shown nor refuted: the champion stays, and the report says so."""
    ROLL_BACK = "roll back"
    """The evidence of harm reached 20: the rival takes the champion's place again."""


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of the champion with a rival."""

    rival: str
    problems: int
    difference: float
    lower: float
    margin: float
    harm: float
    """The log of the greatest evidence of harm."""

    @property
    def hold(self) -> Hold:
        """What follows; harm comes first."""
        if self.harm >= log(ROLL_BACK_EVIDENCE):
            return Hold.ROLL_BACK
        return Hold.HOLDS if self.lower > -self.margin else Hold.UNSHOWN

    @property
    def sentence(self) -> str:
        """The comparison and its numbers, for a person."""
        return (
            f"against {self.rival} on {self.problems} sealed problems: {100 * self.difference:+.1f} points, at least "
            f"{100 * self.lower:+.1f}; {_MEANING[self.hold]} (evidence of harm {exp(self.harm):.3g} of 20)"
        )


_MEANING = {
    Hold.HOLDS: "not worse by the margin",
    Hold.UNSHOWN: "not shown to be no worse, no evidence of harm",
    Hold.ROLL_BACK: "worse, so the rival returns",
}


def anchor(rival: str, pairs: Sequence[Pair], *, margin: float) -> Anchor:
    """Compare the champion (each pair's `challenger`) with a rival (each pair's `champion`), in the sealed order."""
    differences = [outcome.difference for outcome in outcomes(pairs)]
    bound = paired(differences, confidence=0.90)
    harm = reduce(lambda capital, difference: capital.after(-difference), differences, Capital())
    return Anchor(
        rival=rival,
        problems=len(differences),
        difference=bound.estimate,
        lower=bound.lower,
        margin=margin,
        harm=harm.peak,
    )
