"""The evidence that a challenger is better: a betting e-process, problem by problem (L17).

H0 says E[D_p | everything before p] <= 0 for every problem p. For a stake lambda in [0, 1) the wealth
prod(1 + lambda D_p) of a gambler who bets against H0 is then a nonnegative supermartingale that begins at 1, and so
is the mean W over several stakes. Ville's inequality: P(W ever reaches 1/alpha) <= alpha under H0, whenever one
looks, pauses, crashes or stops. So the greatest W so far is evidence too, and it is what decides.

Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (2024), section 4.
"""

from collections.abc import Iterable
from enum import StrEnum
from math import exp, fsum, log, log1p

import msgspec

from longwatch.kernel.errors import StateError
from longwatch.learn.acceptance.outcome import Outcome

STAKES = (0.1, 0.2, 0.35, 0.5)
"""Near lambda* = (gained - lost) / (gained + lost), the best stake, of weak to strong challengers."""
HARM_EVIDENCE = 10.0
FUTILE_FROM = 100
MAX_PROBLEMS = 800
NET_ROUNDING = 1e-9
"""A sum of at most some thousand differences is exact to this."""


class Capital(msgspec.Struct, frozen=True):
    """A gambler's wealth, as natural logarithms: no product can overflow."""

    logs: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """One for each of STAKES, in that order."""
    peak: float = 0.0
    """The greatest `now` so far; it begins at log 1."""

    @property
    def now(self) -> float:
        """The log of the mean wealth over the stakes."""
        top = max(self.logs)
        return top + log(fsum(exp(each - top) for each in self.logs) / len(self.logs))

    def after(self, difference: float) -> "Capital":
        """Return the wealth after one more problem. 1 + lambda D >= 1/2, so the logarithm exists."""
        one, two, three, four = (
            each + log1p(stake * difference) for each, stake in zip(self.logs, STAKES, strict=True)
        )
        moved = Capital((one, two, three, four), self.peak)
        return Capital(moved.logs, max(self.peak, moved.now))


class Decision(StrEnum):
    """What a confirmation says."""

    ACCEPT = "accept"
    """The evidence reached 1/alpha, and no guard objects."""
    HARM = "harm"
    """The evidence that the challenger is worse reached 10."""
    FUTILE = "futile"
    """At least 100 problems and none gained in the balance. It ends the work early and claims nothing."""
    EXHAUSTED = "exhausted"
    """The maximum of problems is used up."""
    REGRESSION = "regression"
    """Better on the whole, but a guard of non-inferiority does not hold."""
    UNDECIDED = "undecided"
    """More fresh problems may decide, in this window or the next."""


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, tag="evidence"):
    """The state of one confirmation: everything that is needed to go on tomorrow.

    `after` folds in one problem; `decision` may be read at any time, and is meant to be read after a block.
    """

    alpha: float
    """From the schedule (`lord`), fixed before the first problem."""
    max_problems: int = MAX_PROBLEMS
    gain: Capital = Capital()
    harm: Capital = Capital()
    """The same with -D."""
    problems: int = 0
    net: float = 0.0
    """The sum of D: problems gained minus problems lost."""
    crossed: Decision | None = None
    """ACCEPT or HARM, whichever threshold was reached first; it stays."""

    def __post_init__(self) -> None:
        """Refuse a level at which nothing or everything would be accepted."""
        if not 0 < self.alpha < 1:
            raise StateError(
                f"alpha of a confirmation is {self.alpha}, outside (0, 1): its record is damaged"
            )

    @property
    def needed(self) -> float:
        """The evidence that accepts: 1/alpha."""
        return 1 / self.alpha

    def after(self, outcome: Outcome) -> "Confirmation":
        """Return the state after one more problem."""
        gain, harm = self.gain.after(outcome.difference), self.harm.after(-outcome.difference)
        return msgspec.structs.replace(
            self,
            gain=gain,
            harm=harm,
            problems=self.problems + 1,
            net=self.net + outcome.difference,
            crossed=self.crossed or _crossing(gain, harm, self.alpha),
        )

    @property
    def decision(self) -> Decision:
        """What follows from the problems so far, in this order: what crossed first, the maximum, futility."""
        if self.crossed:
            return self.crossed
        if self.problems >= self.max_problems:
            return Decision.EXHAUSTED
        if self.problems >= FUTILE_FROM and self.net <= NET_ROUNDING:
            return Decision.FUTILE
        return Decision.UNDECIDED

    @property
    def sentence(self) -> str:
        """The decision and its numbers, for a person."""
        return (
            f"{_MEANING[self.decision]} after {self.problems} problems: net {self.net:+.1f}, {self.evidence}"
        )

    @property
    def evidence(self) -> str:
        """How far the evidence is, for a person."""
        return (
            f"evidence {exp(self.gain.now):.3g} (at most {exp(self.gain.peak):.3g}) of {self.needed:.3g} needed, "
            f"evidence of harm at most {exp(self.harm.peak):.3g} of {HARM_EVIDENCE:.3g}"
        )


_MEANING = {
    Decision.ACCEPT: "better than the champion",
    Decision.HARM: "worse than the champion",
    Decision.FUTILE: "given up, nothing gained in the balance",
    Decision.EXHAUSTED: "not shown to be better within the maximum",
    Decision.UNDECIDED: "undecided, more fresh problems may decide",
}


def _crossing(gain: Capital, harm: Capital, alpha: float) -> Decision | None:
    """Return the threshold that is reached. One problem cannot raise both, so their order is no choice."""
    if gain.peak >= -log(alpha):
        return Decision.ACCEPT
    if harm.peak >= log(HARM_EVIDENCE):
        return Decision.HARM
    return None


def confirm(
    state: Confirmation, block: Iterable[Outcome], seen: frozenset[str] = frozenset()
) -> Confirmation:
    """Return the state after a block of fresh problems, in their pre-committed order.

    `seen` are the problems of earlier blocks. A problem that comes twice raises StateError: it would count twice.
    """
    for outcome in block:
        if outcome.problem in seen:
            raise StateError(f"problem {outcome.problem} came twice in one confirmation: it counts once")
        seen |= {outcome.problem}
        state = state.after(outcome)
    return state
