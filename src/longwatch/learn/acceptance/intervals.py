"""Tests and intervals for a fixed number of problems: for guards and for audit reports (L18, L24).

Unlike the e-process none of them may be looked at again and again until it says what one likes.
"""

from collections.abc import Iterable, Sequence
from math import comb, exp, fsum, lgamma, log, log1p, sqrt
from statistics import NormalDist

import msgspec


class Interval(msgspec.Struct, frozen=True):
    """An estimate between its bounds."""

    estimate: float
    lower: float
    upper: float


def quantile(probability: float) -> float:
    """Return the standard normal quantile."""
    return NormalDist().inv_cdf(probability)


def wilson(passed: int, total: int, confidence: float = 0.95) -> Interval:
    """Return a pass rate with Wilson's score interval (1927); without trials it is all of [0, 1]."""
    if not total:
        return Interval(0.5, 0.0, 1.0)
    z2 = quantile((1 + confidence) / 2) ** 2
    rate = passed / total
    centre = (passed + z2 / 2) / (total + z2)
    half = sqrt(z2 * (total * rate * (1 - rate) + z2 / 4)) / (total + z2)
    lower = 0.0 if passed == 0 else centre - half
    return Interval(rate, lower, 1.0 if passed == total else centre + half)


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided McNemar p: are the discordant tasks a fair coin? In integers up to the last step."""
    return min(1.0, 2 * fair_coin(min(gained, lost), gained + lost))


def fair_coin(at_most: int, tosses: int) -> float:
    """Return P(at most so many heads in so many fair tosses), exactly rounded."""
    return sum(comb(tosses, heads) for heads in range(at_most + 1)) / (1 << tosses)


def binomial_at_least(count: int, trials: int, rate: float) -> float:
    """Return P(at least `count` of `trials`) for a rate strictly between 0 and 1."""
    if count <= 0:
        return 1.0
    terms = (
        _log_binomial(trials, k) + k * log(rate) + (trials - k) * log1p(-rate)
        for k in range(count, trials + 1)
    )
    return min(1.0, fsum(exp(term) for term in terms))


def _log_binomial(trials: int, count: int) -> float:
    return lgamma(trials + 1) - lgamma(count + 1) - lgamma(trials - count + 1)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values (1979), in the order of the input."""
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return tuple(adjusted)


def paired(differences: Iterable[float], confidence: float = 0.95) -> Interval:
    """Return the mean difference with its bounds; one bound alone has the confidence (1 + confidence) / 2.

    A normal interval after adding z^2 problems, half of them gained and half lost: as Agresti and Min (2005) do with
    two, as Wilson's interval does for a rate. Without it, a record in which nothing differs would have no width.
    """
    found = tuple(differences)
    z = quantile((1 + confidence) / 2)
    size = len(found) + z**2
    centre = fsum(found) / size
    square = (fsum(each * each for each in found) + z**2) / size
    half = z * sqrt((square - centre**2) / size)
    mean = fsum(found) / len(found) if found else 0.0
    return Interval(mean, max(centre - half, -1.0), min(centre + half, 1.0))


def paired_counts(gained: int, lost: int, total: int, confidence: float = 0.95) -> Interval:
    """Return `paired` of a record in which each task is gained, lost or the same."""
    return paired((1.0,) * gained + (-1.0,) * lost + (0.0,) * (total - gained - lost), confidence)
