"""Whole lives of a watch, simulated many at a time with numpy: the rule of docs/reference/acceptance.md.

It shares no code with `longwatch.learn.acceptance`; a test holds the two together on random records.
Each life has its own row; a world is a distribution of D per problem, as its values and their probabilities.
"""

from typing import NamedTuple

import numpy as np

STAKES = np.array([0.1, 0.2, 0.35, 0.5])
HARM = 10.0
UNDECIDED, ACCEPT, HARMED, FUTILE, EXHAUSTED = range(5)
GAMMA_SUM = 2.2857656656801293


class World(NamedTuple):
    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    @property
    def mean(self):
        return float(np.dot(self.values, self.probabilities))


def world(gained, lost):
    """One language, one sample: a problem is gained, lost or the same."""
    return World((1.0, -1.0, 0.0), (gained, lost, 1 - gained - lost))


class Runs(NamedTuple):
    decision: np.ndarray
    problems: np.ndarray


def confirm(rng, truth, alpha, *, max_problems=800, block=20, futility_from=100):
    """Run one confirmation per entry of `alpha`, looked at after every block."""
    alpha = np.asarray(alpha, dtype=float)
    lives = len(alpha)
    runs = Runs(np.zeros(lives, dtype=int), np.zeros(lives, dtype=int))
    live = np.arange(lives)
    gain, harm = np.ones((lives, 1, 4)), np.ones((lives, 1, 4))
    net = np.zeros(lives)
    values = np.array(truth.values)
    steps = np.cumsum(truth.probabilities)
    for seen in range(block, max_problems + block, block):
        drawn = np.searchsorted(steps[:-1], rng.random((len(live), block)), side="right")
        differences = values[drawn]
        gain, won = _bet(gain, (1 + STAKES * values[:, None])[drawn])
        harm, hurt = _bet(harm, (1 - STAKES * values[:, None])[drawn])
        net = net + differences.sum(axis=1)
        wins = _first(won >= 1 / alpha[live, None])
        harms = _first(hurt >= HARM)
        decision = np.select(
            [
                (wins <= harms) & (wins < block),
                harms < block,
                np.full(len(live), seen >= max_problems),
                (seen >= futility_from) & (net <= 1e-9),
            ],
            [ACCEPT, HARMED, EXHAUSTED, FUTILE],
            UNDECIDED,
        )
        runs.decision[live] = decision
        runs.problems[live] = seen
        stay = decision == UNDECIDED
        live, gain, harm, net = live[stay], gain[stay], harm[stay], net[stay]
        if not len(live):
            break
    return runs


def _bet(capital, factors):
    path = capital * np.cumprod(factors, axis=1)
    return path[:, -1:, :], path.mean(axis=2)


def _first(crossed):
    """The index of the first True in each row; the row's length where there is none."""
    return np.where(crossed.any(axis=1), crossed.argmax(axis=1), crossed.shape[1])


def gamma(distance):
    """The share of alpha-wealth for a test so many places after its source; 0 where it isn't after it."""
    distance = np.asarray(distance, dtype=float)
    return np.where(distance >= 1, np.maximum(distance, 1) ** -1.6 / GAMMA_SUM, 0.0)


class Lives(NamedTuple):
    decisions: np.ndarray
    """One row per life, one column per round."""
    problems: np.ndarray
    alphas: np.ndarray


def lives(rng, worlds, count, *, q=0.10, max_problems=800, block=20):
    """Simulate `count` lives of one confirmation per world, under LORD++ with w0 = q / 2."""
    rounds = len(worlds)
    accepted = np.zeros((count, rounds), dtype=bool)
    decisions = np.zeros((count, rounds), dtype=int)
    problems = np.zeros((count, rounds), dtype=int)
    alphas = np.zeros((count, rounds))
    for k, truth in enumerate(worlds):
        distance = k - np.arange(rounds)
        earlier = accepted & (distance >= 1)
        first = earlier & (np.cumsum(earlier, axis=1) == 1)
        payout = q * earlier - q / 2 * first
        alphas[:, k] = q / 2 * gamma(k + 1) + payout @ gamma(distance)
        runs = confirm(rng, truth, alphas[:, k], max_problems=max_problems, block=block)
        decisions[:, k], problems[:, k] = runs
        accepted[:, k] = runs.decision == ACCEPT
    return Lives(decisions, problems, alphas)
