"""The strict rule (L20): more development passes, no lost task, then a small confirmation with a veto.

It is what many people would do, and it is here as an alternative. It is too lax over many tries and too strict for
true gains at once; `Rates` says how much, and the report prints it.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import comb, fsum

import msgspec

from longwatch.learn.acceptance.outcome import Pair
from longwatch.learn.tasks import Verdict

CONFIRMATION_TASKS = 20
RESEARCH_LOSSES = 1
"""What a research branch may lose on the development tasks while it explores."""


class Strict(StrEnum):
    """What the strict rule says."""

    PASSES = "passes"
    NO_GAIN = "no gain"
    """Not more passes than the champion and than base; in the confirmation, none at all."""
    LOST = "lost"
    """A lost task too many: the next experiment begins at the champion."""
    SHORT = "short"
    """Fewer than 20 complete pairs: not judged."""


class StrictConfirmation(msgspec.Struct, frozen=True, kw_only=True, tag="strict"):
    """A confirmation by veto. It gathers no evidence: what it carries is how often its rule errs."""

    dev_tasks: int
    tries: int
    """Rounds that were judged by the strict rule so far: each is a chance to be lucky."""
    losses: int = 0
    """How many lost tasks a nomination was allowed."""

    @property
    def sentence(self) -> str:
        """What decides, for a person."""
        return f"one block of {CONFIRMATION_TASKS} matched tasks, on which any lost task refuses"

    @property
    def error_sentences(self) -> tuple[str, ...]:
        """How often the rule errs, for a person."""
        return error_sentences(self.dev_tasks, self.tries, losses=self.losses)


class StrictRuling(msgspec.Struct, frozen=True, kw_only=True, tag="strict"):
    """The strict rule's answer, with its numbers."""

    decision: Strict
    passed: int
    champion: int
    base: int | None
    """None where base is not compared: in the confirmation."""
    lost: tuple[str, ...]
    confirmation: StrictConfirmation | None = None
    """None in a nomination, which accepts nothing."""

    @property
    def accepts(self) -> bool:
        """True if the challenger may take the champion's place."""
        return self.decision is Strict.PASSES

    @property
    def undecided(self) -> bool:
        """It is never undecided: one block says yes or no."""
        return False

    @property
    def sentences(self) -> tuple[str, ...]:
        """The answer first, then how often the rule errs, for a person."""
        errs = self.confirmation.error_sentences if self.confirmation else ()
        return (self.sentence, *errs)

    @property
    def sentence(self) -> str:
        """The answer for a person."""
        base = "" if self.base is None else f", base {self.base}"
        return f"{self.decision.value}: passed {self.passed}, champion {self.champion}{base}, lost {len(self.lost)}"


def nominate(pairs: Sequence[Pair], base: int, *, research: bool = False) -> StrictRuling:
    """Judge the development tasks; `base` is how many of the same tasks the base model passes."""
    counted = _count(pairs)
    lost = len(counted.lost) > (RESEARCH_LOSSES if research else 0)
    gained = counted.passed > max(counted.champion, base)
    decision = Strict.LOST if lost else Strict.PASSES if gained else Strict.NO_GAIN
    return msgspec.structs.replace(counted, decision=decision, base=base)


def veto(pairs: Sequence[Pair], confirmation: StrictConfirmation) -> StrictRuling:
    """Judge the matched confirmation: any lost task sends the next experiment back to the champion.

    Where nothing passed nothing was confirmed: its receipt would be empty.
    """
    counted = msgspec.structs.replace(_count(pairs), confirmation=confirmation)
    if counted.lost:
        return msgspec.structs.replace(counted, decision=Strict.LOST)
    if not counted.passed:
        return msgspec.structs.replace(counted, decision=Strict.NO_GAIN)
    complete = sum(not pair.infra for pair in pairs)
    decision = Strict.PASSES if complete >= CONFIRMATION_TASKS else Strict.SHORT
    return msgspec.structs.replace(counted, decision=decision)


def _count(pairs: Sequence[Pair]) -> StrictRuling:
    seen = [pair for pair in pairs if not pair.infra]
    return StrictRuling(
        decision=Strict.PASSES,
        passed=sum(pair.challenger is Verdict.PASS for pair in seen),
        champion=sum(pair.champion is Verdict.PASS for pair in seen),
        base=None,
        lost=tuple(dict.fromkeys(pair.task for pair in seen if pair.lost)),
    )


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """How often the strict rule lets a challenger pass that gains and loses a task with these chances."""

    gained: float
    lost: float
    nominated: float
    confirmed: float
    """Of those nominated."""

    @property
    def accepted(self) -> float:
        """Both steps, one try."""
        return self.nominated * self.confirmed

    def any_of(self, tries: int) -> float:
        """Return the chance that at least one of so many such challengers is accepted."""
        return float(1 - (1 - self.accepted) ** tries)


def rates(gained: float, lost: float, *, dev_tasks: int, losses: int = 0) -> Rates:
    """Return the exact rates: P(more gained than lost, at most `losses` lost), then P(no loss in 20)."""
    nominated = fsum(_nominated(gained, lost, dev_tasks, count) for count in range(losses + 1))
    return Rates(gained=gained, lost=lost, nominated=nominated, confirmed=(1 - lost) ** CONFIRMATION_TASKS)


def _nominated(gained: float, lost: float, tasks: int, count: int) -> float:
    """Return P(exactly `count` lost and more gained): of the others not all may be the same, or gained too rarely."""
    others = tasks - count
    too_few = fsum(
        comb(others, some) * gained**some * (1 - gained - lost) ** (others - some)
        for some in range(count + 1)
    )
    return comb(tasks, count) * lost**count * ((1 - lost) ** others - too_few)


def error_sentences(dev_tasks: int, tries: int, *, losses: int = 0) -> tuple[str, ...]:
    """Return what stands beside every decision of the strict rule."""
    nothing, harmful, good = (
        rates(g, w, dev_tasks=dev_tasks, losses=losses) for g, w in ((0.03, 0.03), (0.03, 0.06), (0.10, 0.05))
    )
    return (
        (
            f"the strict rule with {dev_tasks} development tasks errs: in {tries} tries a challenger without effect "
            f"(3 % gained, 3 % lost) is accepted at least once with {nothing.any_of(tries):.0%}"
        ),
        f"one that is 3 points worse is accepted at least once with {harmful.any_of(tries):.0%}",
        f"one that is 5 points better passes a single try with {good.accepted:.0%}",
    )
