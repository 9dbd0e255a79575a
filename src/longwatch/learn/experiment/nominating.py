"""Which round is proposed for the champion's place (L13, L20). Pure. It accepts nothing: fresh problems do."""

from collections.abc import Iterable, Sequence

import msgspec

from longwatch.learn.acceptance import Pair
from longwatch.learn.acceptance import nominate as judge_strictly
from longwatch.learn.experiment.examples import Example
from longwatch.learn.settings import Acceptance, Rule
from longwatch.learn.steps import RoundResult


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One trained round: its numbers, what it learned from, and its verdicts on dev beside the champion's."""

    result: RoundResult
    examples: tuple[Example, ...]
    pairs: tuple[Pair, ...]
    """Of the tasks that it was asked."""


class Nomination(msgspec.Struct, frozen=True, kw_only=True):
    """At most one round, or why it is none."""

    tried: Tried | None = None
    reason: str = ""


def nominate(tried: Sequence[Tried], base: int, rule: Acceptance) -> Nomination:
    """Propose the round that gained most on the champion, of equal ones the earliest.

    `base` is how many of the dev tasks the base model passes: the strict rule wants more than that, too.
    """
    objections = [_objection(one, base, rule) for one in tried]
    better = [one for one, objection in zip(tried, objections, strict=True) if not objection]
    if better:
        return Nomination(tried=max(better, key=lambda one: (net(one.pairs), -one.result.round)))
    return Nomination(reason="; ".join(dict.fromkeys(objections)) or "nothing was trained")


def to_beat(tried: Iterable[Tried], base_lead: int, rule: Acceptance) -> int:
    """Return the net gain that the next round must exceed to be nominated.

    It is the best round's so far, and at least the champion's, which is 0. The strict rule may prefer a round that
    gained less and lost nothing, but wants more than base, which passes `base_lead` tasks more than the champion.
    """
    if rule.rule is Rule.STRICT:
        return max(0, base_lead)
    return max((0, *(net(one.pairs) for one in tried)))


def net(pairs: Iterable[Pair]) -> int:
    """Return gained minus lost tasks; where our own trouble hides a verdict, the task counts for neither."""
    return sum(pair.difference for pair in pairs if not pair.infra)


def hopeless(pairs: Iterable[Pair], still_failed: int, beat: int) -> bool:
    """True if not even passing all tasks not asked yet that the champion failed can exceed `beat`."""
    return net(pairs) + still_failed <= beat


def _objection(one: Tried, base: int, rule: Acceptance) -> str:
    if rule.rule is Rule.STRICT:
        ruling = judge_strictly(one.pairs, base, research=rule.research)
        return "" if ruling.accepts else f"round {one.result.round}: {ruling.sentence}"
    return "" if net(one.pairs) > 0 else "no round was better on dev than the champion"
