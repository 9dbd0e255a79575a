"""The A/A flip rate: how often a verdict changes although nothing did (L15). Pure but for the asking."""

from collections.abc import Callable, Sequence

import msgspec

from longwatch.learn.student.answers import Answer, Request, Sampling
from longwatch.learn.tasks import Verdict


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """What two gradings of the same student said about the same requests."""

    compared: int
    """Pairs in which neither side was our own trouble."""
    gained: int
    lost: int

    @property
    def rate(self) -> float:
        """The share of compared verdicts that changed; 0 where nothing was compared."""
        return (self.gained + self.lost) / self.compared if self.compared else 0.0


def flip_rate(first: Sequence[Verdict], second: Sequence[Verdict]) -> Flips:
    """Pure: compare two gradings, pair by pair; a pair with our own trouble in it counts for nothing (L10).

    Raises:
        ValueError: the lists differ in length.
    """
    pairs = [pair for pair in zip(first, second, strict=True) if Verdict.INFRA not in pair]
    return Flips(
        compared=len(pairs),
        gained=pairs.count((Verdict.FAIL, Verdict.PASS)),
        lost=pairs.count((Verdict.PASS, Verdict.FAIL)),
    )


Ask = Callable[[Sequence[Request], Sampling], Sequence[Answer]]
"""Asks a student at the batch size that is measured, and answers in the order of the requests."""


def again_in_other_company(requests: Sequence[Request], sampling: Sampling, ask: Ask) -> tuple[Answer, ...]:
    """Ask everything once more, in two calls over every other request, so that rows share their batches with others.

    The answers come in the order of the requests; whatever differs from the first time is the arithmetic's doing.
    """
    halves = requests[::2], requests[1::2]
    answers = [ask(half, sampling) if half else () for half in halves]
    return tuple(answers[place % 2][place // 2] for place in range(len(requests)))
