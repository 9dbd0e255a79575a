"""The e-process: numbers, decisions, states."""

from math import exp, inf, log, nan

import msgspec
import numpy as np
import pytest
from graded import pair, record

from longwatch.kernel.errors import StateError
from longwatch.learn.acceptance import (
    Capital,
    Confirmation,
    Decision,
    FlipRate,
    Outcome,
    confirm,
    guards,
    lost,
    mcnemar,
    outcomes,
    rule,
)
from longwatch.learn.acceptance.eprocess import STAKES

ALPHA_1 = 0.021874509  # LORD++ with q = 0.10 before its first confirmation


def differences(values, start=0):
    return tuple(Outcome(f"p{start + number}", value) for number, value in enumerate(values))


def judge(pairs, alpha=ALPHA_1):
    state = confirm(Confirmation(alpha=alpha), outcomes(pairs))
    return rule(state, guards(pairs, margin_pooled=0.03, margin_slice=0.05), lost(pairs, FlipRate(0, 200)))


# Made with confseq 0.0.11, betting.diversified_betting_mart of x = (1 + D) / 2 against m = 1/2, stakes 2 lambda and
# theta = 1. It is no test dependency because its wheel has to be compiled against Boost.
SEQUENCES = {
    "fractions": [((37 * i) % 17 - 8) / 8 for i in range(400)],
    "rising": [((5 * i) % 9 - 3) / 5 for i in range(400)],
    "gained and lost": [1.0 if i % 7 == 3 else -1.0 if i % 11 == 5 else 0.0 for i in range(400)],
    "samples": [((i * i) % 5 - 2) / 4 for i in range(400)],
}
CONFSEQ = [  # name, sign, W after 1, 20, 150 and 400 problems, greatest W
    ("fractions", 1, (0.7125, 0.45370635568232554, 0.23579787104937155, 0.10570964944303814), 1),
    ("fractions", -1, (1.2875, 1.1299789765499926, 0.3200580690525958, 0.15946653020583046), 1.6548974609375),
    ("rising", 1, (0.8275, 2.058594362366704, 4475.847599923611, 55592386567.58462), 63612083270.59947),
    ("rising", -1, (1.1725, 0.3507279124062942, 0.010671469577992547, 4.806994699655684e-05), 1.1725),
    ("gained and lost", 1, (1, 1.016822109375, 2.3933958235735036, 22.171943536418524), 24.439644966105963),
    ("gained and lost", -1, (1, 0.600281015625, 0.10750476906973036, 0.012041890830426413), 1),
    ("samples", 1, (0.85625, 0.8432199675127963, 0.4287677419379558, 0.2427076080811497), 1.030120751953125),
    ("samples", -1, (1.14375, 0.8352564410577247, 0.4199902774706069, 0.23862442262648237), 1.228828125),
]


@pytest.mark.guarantee("L17")
@pytest.mark.parametrize(("name", "sign", "wealths", "greatest"), CONFSEQ)
def test_the_evidence_is_that_of_confseq(name, sign, wealths, greatest):
    state, seen = Confirmation(alpha=1e-300), {}
    for number, outcome in enumerate(differences([sign * d for d in SEQUENCES[name]]), start=1):
        state = state.after(outcome)
        seen[number] = (exp(state.gain.now), exp(state.harm.now))
    assert [seen[n][0] for n in (1, 20, 150, 400)] == pytest.approx(wealths, rel=1e-10)
    assert exp(state.gain.peak) == pytest.approx(greatest, rel=1e-10)
    mirrored = next(row for row in CONFSEQ if row[0] == name and row[1] == -sign)
    assert [seen[n][1] for n in (1, 20, 150, 400)] == pytest.approx(mirrored[2], rel=1e-10)


@pytest.mark.guarantee("L17")
@pytest.mark.parametrize(
    ("values", "alpha", "decision"),
    [
        ((), 0.05, Decision.UNDECIDED),
        ((1.0,) * 9, 0.05, Decision.UNDECIDED),  # mean of 1.1^9, 1.2^9, 1.35^9, 1.5^9 is 15.2
        ((1.0,) * 10, 0.05, Decision.ACCEPT),  # 21.6 >= 20
        ((-1.0,) * 7, 0.05, Decision.UNDECIDED),  # 7.7
        ((-1.0,) * 8, 0.05, Decision.HARM),  # 10.8 >= 10
        ((0.0,) * 99, 0.05, Decision.UNDECIDED),
        ((0.0,) * 100, 0.05, Decision.FUTILE),
        ((0.5, -0.5) * 50, 0.05, Decision.FUTILE),
        ((0.1, 0.2, -0.3) * 34, 0.05, Decision.FUTILE),  # a net of rounding errors is no gain
        ((*(0.0,) * 99, 0.25), 0.05, Decision.UNDECIDED),
        ((1.0, -0.9) * 399, 0.05, Decision.UNDECIDED),
        ((1.0, -0.9) * 400, 0.05, Decision.EXHAUSTED),
        ((*(0.0,) * 790, *(1.0,) * 10), 0.05, Decision.ACCEPT),  # at the last problem evidence comes first
        ((*(1.0,) * 10, *(-1.0,) * 300), 0.05, Decision.ACCEPT),  # what crossed first stays
        ((*(-1.0,) * 8, *(1.0,) * 300), 0.05, Decision.HARM),
        ((1.0,) * 25, 1e-4, Decision.UNDECIDED),  # 6,793
        ((1.0,) * 26, 1e-4, Decision.ACCEPT),  # 10,113
    ],
)
def test_decisions(values, alpha, decision):
    assert confirm(Confirmation(alpha=alpha), differences(values)).decision is decision


@pytest.mark.guarantee("L17")
@pytest.mark.parametrize(("off", "accepted"), [(1e-9, True), (-1e-9, False)])
def test_the_thresholds_are_met_to_the_last_digits(off, accepted):
    wealth = sum((1 + stake) ** 10 for stake in STAKES) / 4
    state = confirm(Confirmation(alpha=(1 + off) / wealth), differences((1.0,) * 10))
    assert (state.decision is Decision.ACCEPT) == accepted
    base = sum((1 + stake) ** 7 for stake in STAKES) / 4
    slope = sum((1 + stake) ** 7 * stake for stake in STAKES) / 4
    last = (10 - base) / slope + off  # the eighth loss that brings the evidence of harm to 10
    state = confirm(Confirmation(alpha=0.05), differences((*(-1.0,) * 7, -last)))
    assert (state.decision is Decision.HARM) == accepted


@pytest.mark.guarantee("L17")
def test_the_maximum_is_a_setting():
    assert (
        confirm(Confirmation(alpha=0.05, max_problems=40), differences((0.1,) * 40)).decision
        is Decision.EXHAUSTED
    )


@pytest.mark.guarantee("L17")
def test_evidence_that_was_reached_is_not_lost_by_going_on():
    state = confirm(Confirmation(alpha=0.05), differences((1.0,) * 10))
    before = state.gain.peak
    state = confirm(state, differences((-1.0,) * 5, start=10))
    assert state.gain.now < log(20) <= state.gain.peak == before


@pytest.mark.guarantee("L17")
def test_every_decision_has_a_sentence_with_its_numbers():
    seen = {}
    for values in ((), (1.0,) * 10, (-1.0,) * 8, (0.0,) * 100, (1.0, -0.9) * 400):
        state = confirm(Confirmation(alpha=0.05), differences(values))
        seen[state.decision] = state.sentence
        assert f"after {len(values)} problems" in state.sentence
        assert "of 20 needed" in state.sentence
    assert len(set(seen.values())) == len(Decision) - 1  # REGRESSION belongs to the ruling


@pytest.mark.guarantee("L17")
def test_a_problem_cannot_count_twice():
    block = differences((1.0, 0.0))
    state = confirm(Confirmation(alpha=0.05), block)
    with pytest.raises(StateError, match="p0 came twice"):
        confirm(state, block, seen=frozenset({"p0", "p1"}))
    with pytest.raises(StateError, match="p1 came twice"):
        confirm(Confirmation(alpha=0.05), (*block, block[1]))


@pytest.mark.guarantee("L16", "L17")
@pytest.mark.parametrize("difference", [1.0000001, -1.5, inf, nan])
def test_an_impossible_difference_is_refused(difference):
    with pytest.raises(StateError, match="outside"):
        Outcome("p", difference)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, nan])
def test_an_impossible_level_is_refused(alpha):
    with pytest.raises(StateError, match="alpha"):
        Confirmation(alpha=alpha)


@pytest.mark.guarantee("L17")
def test_the_logarithms_hold_where_products_would_not():
    capital = Capital()
    for _ in range(5000):
        capital = capital.after(1.0)
    assert capital.now == pytest.approx(5000 * log(1.5) - log(4))
    assert exp(capital.logs[0] / 5000) == pytest.approx(1 + STAKES[0])


@pytest.mark.guarantee("L17")
def test_the_public_record_14_gained_11_lost_of_164_is_undecided():
    pairs = record(14, 11, 107, 32)
    assert len(pairs) == 164
    ruling = judge(pairs)
    assert ruling.decision is Decision.UNDECIDED
    assert mcnemar(14, 11) == pytest.approx(0.69, abs=0.005)
    states = [Confirmation(alpha=ALPHA_1)]
    for outcome in outcomes(pairs):
        states.append(states[-1].after(outcome))
    assert {state.decision for state in states} <= {Decision.UNDECIDED, Decision.FUTILE}


def walks(rng, gained, lost, total, orders):
    """The evidence of gain and of harm along many random orders of one record, by products instead of logarithms."""
    problems = np.zeros(total)
    problems[:gained], problems[gained : gained + lost] = 1, -1
    shuffled = rng.permuted(np.tile(problems, (orders, 1)), axis=1)
    return [
        np.mean([np.cumprod(1 + sign * stake * shuffled, axis=1) for stake in STAKES], axis=0).max(axis=1)
        for sign in (1, -1)
    ]


@pytest.mark.guarantee("L17")
def test_the_public_record_of_164_is_undecided_in_nearly_any_order():
    gain, harm = walks(np.random.default_rng(1), 14, 11, 164, 5000)
    assert np.mean(gain >= 1 / ALPHA_1) < 0.005
    assert np.mean(harm >= 10) < 0.02


@pytest.mark.guarantee("L17", "L18")
@pytest.mark.parametrize("gained", [0, 5, 20, 60, 150, 317])
def test_the_public_record_433_against_473_of_790_is_never_accepted(gained):
    pairs = record(gained, gained + 40, 433 - gained, 317 - gained)
    assert len(pairs) == 790
    for order in (pairs, pairs[::-1], sorted(pairs, key=lambda each: -each.difference)):
        assert judge(order).decision in {Decision.HARM, Decision.FUTILE, Decision.REGRESSION}
    gain, _ = walks(np.random.default_rng(gained), gained, gained + 40, 790, 400)
    assert np.mean(gain >= 1 / ALPHA_1) <= (0 if gained < 100 else 0.0075)


@pytest.mark.guarantee("L7", "L17")
def test_only_an_order_made_from_the_outcomes_deceives_block_by_block():
    best_first = sorted(record(60, 100, 373, 257), key=lambda each: -each.difference)
    assert judge(best_first[:20]).decision is Decision.ACCEPT  # why the order is committed before training
    assert judge(best_first).decision is Decision.REGRESSION


@pytest.mark.guarantee("L17")
def test_a_state_that_slept_goes_on_bit_for_bit():
    awake = asleep = Confirmation(alpha=0.02, max_problems=300)
    for outcome in differences(SEQUENCES["gained and lost"]):
        awake = awake.after(outcome)
        asleep = msgspec.json.decode(msgspec.json.encode(asleep.after(outcome)), type=Confirmation)
        assert asleep == awake


@pytest.mark.guarantee("L16")
def test_the_unit_is_the_problem():
    pairs = [
        pair(1, False, True, problem="sum", language="python"),
        pair(1, False, False, problem="sum", language="javascript"),
        pair(2, False, True, problem="sum", language="python"),
        pair(2, True, False, problem="sum", language="javascript"),
        pair(3, True, True, problem="sort"),
        pair(4, None, True, problem="split"),
        pair(5, True, False, problem="split", language="javascript"),
        pair(6, True, None, problem="join"),
    ]
    assert outcomes(pairs) == (Outcome("sum", 0.25), Outcome("sort", 0.0), Outcome("split", -1.0))
