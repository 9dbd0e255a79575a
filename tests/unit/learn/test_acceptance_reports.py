"""Tests and intervals for reports, and the strict rule with its error rates."""

from math import comb

import numpy as np
import pytest
from graded import pair, record
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.proportion import proportion_confint

from longwatch.learn.acceptance import (
    Strict,
    StrictConfirmation,
    error_sentences,
    mcnemar,
    nominate,
    paired,
    paired_counts,
    rates,
    veto,
    wilson,
)
from longwatch.learn.acceptance.intervals import binomial_at_least, fair_coin


@pytest.mark.guarantee("L24")
@pytest.mark.parametrize(
    ("gained", "lost"), [(0, 0), (1, 0), (0, 1), (14, 11), (20, 60), (5, 5), (3, 17), (277, 317), (700, 790)]
)
def test_mcnemar_is_that_of_statsmodels(gained, lost):
    table = [[400, gained], [lost, 100]]
    expected = reference_mcnemar(table, exact=True).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-9)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


@pytest.mark.guarantee("L24")
@pytest.mark.parametrize(
    ("passed", "total"), [(0, 1), (1, 1), (0, 164), (9, 82), (118, 164), (121, 164), (164, 164), (433, 790)]
)
@pytest.mark.parametrize("confidence", [0.95, 0.8, 0.99])
def test_wilson_is_that_of_statsmodels(passed, total, confidence):
    found = wilson(passed, total, confidence)
    expected = proportion_confint(passed, total, alpha=1 - confidence, method="wilson")
    assert (found.lower, found.upper) == pytest.approx(expected, abs=1e-12)
    assert 0 <= found.lower <= found.estimate == passed / total <= found.upper <= 1


@pytest.mark.guarantee("L24")
def test_a_rate_of_nothing_is_anything():
    assert (wilson(0, 0).lower, wilson(0, 0).upper) == (0.0, 1.0)


@pytest.mark.guarantee("L18")
@pytest.mark.parametrize("rate", [1e-6, 0.005, 0.3, 0.97])
@pytest.mark.parametrize("trials", [1, 20, 790, 5000])
def test_binomial_tails_are_those_of_scipy(trials, rate):
    for count in {0, 1, 2, trials // 7, trials // 2, trials}:
        assert binomial_at_least(count, trials, rate) == pytest.approx(
            stats.binom.sf(count - 1, trials, rate), rel=1e-8, abs=1e-280
        )


@pytest.mark.guarantee("L18", "L24")
def test_a_fair_coin_is_exact():
    assert fair_coin(0, 0) == 1
    assert fair_coin(-1, 5) == 0
    assert fair_coin(3, 10) == (1 + 10 + 45 + 120) / 1024
    assert fair_coin(500, 1001) == 0.5


@pytest.mark.guarantee("L24")
@pytest.mark.parametrize(
    ("gained", "lost", "total", "lower", "upper"),
    [
        (14, 11, 164, -0.0448, 0.0805),
        (20, 60, 790, -0.0727, -0.0281),
        (0, 0, 100, -0.0370, 0.0370),
        (0, 0, 0, -1.0, 1.0),
    ],
)
def test_the_paired_interval(gained, lost, total, lower, upper):
    found = paired_counts(gained, lost, total)
    assert found.estimate == ((gained - lost) / total if total else 0)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=5e-5)
    mirrored = paired_counts(lost, gained, total)
    assert (mirrored.lower, mirrored.upper) == pytest.approx((-upper, -lower), abs=5e-5)


@pytest.mark.guarantee("L24")
def test_the_paired_interval_takes_fractions():
    assert paired((0.5, -0.25, 0.25)).estimate == pytest.approx(1 / 6)
    assert paired((0.5,) * 50).lower < 0.5 < paired((0.5,) * 50).upper
    halves, wholes = paired((0.5, -0.5) * 80), paired((1.0, -1.0) * 80)
    assert halves.upper < wholes.upper


def covers(gained, lost, total, truth, confidence):
    bound = paired_counts(gained, lost, total, confidence)
    return bound.lower <= truth <= bound.upper, bound.lower <= truth


@pytest.mark.guarantee("L18", "L24")
@pytest.mark.parametrize("total", [60, 164])
@pytest.mark.parametrize(
    ("win", "loss"), [(0.06, 0.06), (0.02, 0.07), (0.005, 0.055), (0.0, 0.05), (0.15, 0.12)]
)
def test_the_paired_interval_covers_what_it_promises(total, win, loss):
    """The exact coverage: every possible table, weighted by its multinomial probability."""
    both = bound = weight = 0.0
    for gained in range(min(total, 45) + 1):
        for lost in range(min(total - gained, 45) + 1):
            chance = (
                comb(total, gained)
                * comb(total - gained, lost)
                * win**gained
                * loss**lost
                * (1 - win - loss) ** (total - gained - lost)
            )
            if chance > 1e-9:
                weight += chance
                both += chance * covers(gained, lost, total, win - loss, 0.95)[0]
                bound += chance * covers(gained, lost, total, win - loss, 0.90)[1]
    assert weight > 0.9999
    assert both >= 0.935
    assert bound >= (0.935 if win else 0.91)  # nominally 95 %; the page says how far it errs without any gain


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize(
    ("pairs", "base", "research", "decision"),
    [
        (record(1, 0, 20), 5, False, Strict.PASSES),
        (record(0, 0, 20), 5, False, Strict.NO_GAIN),
        (record(1, 0, 20), 21, False, Strict.NO_GAIN),  # as many as base
        (record(1, 0, 20), 20, False, Strict.PASSES),
        (record(9, 1, 20), 5, False, Strict.LOST),
        (record(9, 1, 20), 5, True, Strict.PASSES),
        (record(1, 1, 20), 5, True, Strict.NO_GAIN),
        (record(9, 2, 20), 5, True, Strict.LOST),
        ((), 0, False, Strict.NO_GAIN),
    ],
)
def test_the_strict_rule_nominates(pairs, base, research, decision):
    found = nominate(pairs, base, research=research)
    assert found.decision is decision
    assert found.base == base
    assert found.sentence.startswith(decision.value)


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize(
    ("pairs", "decision"),
    [
        (record(0, 0, 20), Strict.PASSES),
        (record(5, 0, 10, 5), Strict.PASSES),
        (record(5, 0, 14), Strict.SHORT),
        (record(15, 1, 10), Strict.LOST),
        (record(0, 1, 0), Strict.LOST),
        (record(0, 0, 0, 20), Strict.NO_GAIN),
        (record(1, 0, 0, 19), Strict.PASSES),
        ((*record(0, 0, 19), pair("i", True, None)), Strict.SHORT),
        ((*record(0, 0, 20), pair("i", True, None)), Strict.PASSES),
    ],
)
def test_the_strict_rule_vetoes(pairs, decision):
    found = veto(pairs, StrictConfirmation(dev_tasks=25, tries=40))
    assert found.decision is decision
    assert found.accepts == (decision is Strict.PASSES)
    assert not found.undecided
    assert found.sentences == (found.sentence, *error_sentences(dev_tasks=25, tries=40))
    assert len(found.lost) == sum(each.lost for each in pairs)


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize(
    ("gained", "lost", "dev", "nominated", "confirmed"),
    [
        (0.03, 0.03, 15, 0.24, 0.54),
        (0.03, 0.03, 50, 0.17, 0.54),
        (0.06, 0.11, 25, 0.045, 0.10),
        (0.03, 0.06, 50, 0.036, 0.29),
        (0.10, 0.05, 25, 0.26, 0.36),
        (0.10, 0.05, 50, 0.077, 0.36),
    ],
)
def test_the_error_rates_of_the_strict_rule(gained, lost, dev, nominated, confirmed):
    found = rates(gained, lost, dev_tasks=dev)
    assert found.nominated == pytest.approx(nominated, abs=0.006)
    assert found.confirmed == pytest.approx(confirmed, abs=0.006)
    drawn = np.random.default_rng(1).multinomial(dev, [gained, lost, 1 - gained - lost], size=40_000)
    assert np.mean((drawn[:, 0] > 0) & (drawn[:, 1] == 0)) == pytest.approx(found.nominated, abs=0.01)
    assert found.any_of(40) == pytest.approx(1 - (1 - found.nominated * found.confirmed) ** 40)


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize(("gained", "lost", "dev"), [(0.03, 0.03, 25), (0.03, 0.06, 50), (0.10, 0.05, 15)])
def test_a_research_branch_errs_more_often_and_says_how_much(gained, lost, dev):
    found = rates(gained, lost, dev_tasks=dev, losses=1)
    drawn = np.random.default_rng(2).multinomial(dev, [gained, lost, 1 - gained - lost], size=40_000)
    assert np.mean((drawn[:, 0] > drawn[:, 1]) & (drawn[:, 1] <= 1)) == pytest.approx(
        found.nominated, abs=0.01
    )
    assert found.accepted > rates(gained, lost, dev_tasks=dev).accepted
    assert error_sentences(dev, 40, losses=1) != error_sentences(dev, 40)


@pytest.mark.guarantee("L20")
def test_the_report_says_how_often_the_strict_rule_errs():
    text = "\n".join(error_sentences(dev_tasks=25, tries=40))
    assert "without effect (3 % gained, 3 % lost) is accepted at least once with 100%" in text
    assert "3 points worse is accepted at least once with 75%" in text
    assert "5 points better passes a single try with 9%" in text
