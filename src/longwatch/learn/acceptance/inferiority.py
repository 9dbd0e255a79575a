"""No regressions, as something that can be shown: non-inferiority (L18).

"No lost task" cannot be shown of any number of tasks, and gets less likely with each one. What can be shown is that
the loss is smaller than a margin. All guards must hold at once, so each may use its whole 5 % (intersection-union).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import ceil

import msgspec

from longwatch.learn.acceptance.intervals import binomial_at_least, fair_coin, holm, paired, quantile
from longwatch.learn.acceptance.outcome import Outcome, Pair, outcomes, slices
from longwatch.learn.tasks import Verdict

ALARM = 0.05
LOST_ALARM = 0.01
PLANNED_DISCORDANCE = 0.10
PLANNED_POWER = 0.80
POOLED = "all problems"


class Standing(StrEnum):
    """How a guard stands."""

    SHOWN = "shown"
    """The lower 95 % bound of the difference lies above -margin."""
    NOT_ALARMED = "not alarmed"
    """Too few problems for the bound, and no sign of harm."""
    FAILED = "failed"
    """Enough problems and the bound does not hold, or too few and they alarm."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """One guard: a slice of the problems and its margin."""

    name: str
    problems: int
    difference: float
    lower: float
    """The one-sided 95 % bound."""
    margin: float
    harm_p: float
    """Exact sign test of "not worse", adjusted by Holm among the guards with too few problems."""
    standing: Standing

    @property
    def holds(self) -> bool:
        """True if it does not stand against an acceptance."""
        return self.standing is not Standing.FAILED

    @property
    def sentence(self) -> str:
        """The guard and its numbers, for a person."""
        points = f"{100 * self.difference:+.1f} points on {self.problems} problems, at least {100 * self.lower:+.1f}"
        if self.standing is Standing.SHOWN:
            return f"{self.name}: not worse by {100 * self.margin:g} points ({points})"
        if self.standing is Standing.NOT_ALARMED:
            return (
                f"{self.name}: too few problems to show it, no sign of harm ({points}; p = {self.harm_p:.2g})"
            )
        return f"{self.name}: a loss of {100 * self.margin:g} points is not ruled out ({points}; p = {self.harm_p:.2g})"


def enough(margin: float) -> int:
    """Return the number of problems with which an equal challenger shows non-inferiority four times in five.

    It is planned with 10 % discordance and does not depend on what is observed: a bad result cannot excuse itself.
    """
    reach = quantile(1 - ALARM) + quantile(PLANNED_POWER)
    return ceil(PLANNED_DISCORDANCE * (reach / margin) ** 2)


def guards(pairs: Sequence[Pair], *, margin_pooled: float, margin_slice: float) -> tuple[Guard, ...]:
    """Return the pooled guard, then one per language and family where there are several of that kind."""
    found = [_unadjusted(POOLED, outcomes(pairs), margin_pooled)]
    for by in (slices(pairs, lambda pair: pair.language), slices(pairs, lambda pair: pair.family)):
        found += [_unadjusted(name, part, margin_slice) for name, part in by.items() if part and len(by) > 1]
    return _settled(found)


def _unadjusted(name: str, part: Sequence[Outcome], margin: float) -> Guard:
    differences = [outcome.difference for outcome in part]
    bound = paired(differences, confidence=1 - 2 * ALARM)
    shown = bound.lower > -margin
    return Guard(
        name=name,
        problems=len(part),
        difference=bound.estimate,
        lower=bound.lower,
        margin=margin,
        harm_p=_sign_test(differences),
        standing=Standing.SHOWN if shown else Standing.FAILED,
    )


def _sign_test(differences: Iterable[float]) -> float:
    """Return the exact p of "as many problems better as worse" against "more are worse"."""
    signs = [difference > 0 for difference in differences if difference]
    return fair_coin(sum(signs), len(signs))


def _settled(found: Sequence[Guard]) -> tuple[Guard, ...]:
    """Return the guards with Holm's p among those that are too small for the bound, which only alarm."""
    small = [place for place, guard in enumerate(found) if _only_alarms(guard)]
    settled = list(found)
    for place, harm_p in zip(small, holm([found[place].harm_p for place in small]), strict=True):
        settled[place] = _alarmed(found[place], harm_p)
    return tuple(settled)


def _only_alarms(guard: Guard) -> bool:
    return guard.standing is Standing.FAILED and guard.problems < enough(guard.margin)


def _alarmed(guard: Guard, harm_p: float) -> Guard:
    standing = Standing.FAILED if harm_p < ALARM else Standing.NOT_ALARMED
    return msgspec.structs.replace(guard, harm_p=harm_p, standing=standing)


class FlipRate(msgspec.Struct, frozen=True):
    """The A/A run: how often the champion's own passing answers failed when they were made again (L15)."""

    flipped: int
    repeated: int

    @property
    def rate(self) -> float:
        """(flipped + 1) / (repeated + 2): no flip in a finite run does not show that none ever happens."""
        return (self.flipped + 1) / (self.repeated + 2)

    @property
    def sentence(self) -> str:
        """What is said beside every score, for a person."""
        return f"A/A: {self.flipped} of {self.repeated} passed answers failed when asked again"


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that the champion's answer passed and the challenger's did not. They are listed, never a veto."""

    tasks: tuple[str, ...]
    answers: int
    of: int
    """The answers that the champion passed."""
    p: float
    """P(at least so many) if only the A/A flip rate were at work."""
    alarm: bool

    @property
    def sentence(self) -> str:
        """What was lost, for a person."""
        more = "more than" if self.alarm else "no more than"
        return f"{self.answers} of {self.of} passed answers lost, {more} A/A flips explain (p = {self.p:.2g})"


def lost(pairs: Sequence[Pair], flips: FlipRate) -> Lost:
    """Return what the challenger lost, and whether chance between two runs of the same model explains it."""
    gone = [pair for pair in pairs if pair.lost]
    of = sum(pair.champion is Verdict.PASS for pair in pairs if not pair.infra)
    p = binomial_at_least(len(gone), of, flips.rate)
    tasks = tuple(dict.fromkeys(pair.task for pair in gone))
    return Lost(tasks=tasks, answers=len(gone), of=of, p=p, alarm=p < LOST_ALARM)
