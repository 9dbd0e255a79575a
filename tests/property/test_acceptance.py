"""The acceptance statistics under any numbers, any null and any adversary."""

from itertools import accumulate, pairwise
from math import exp, fsum

import msgspec
import numpy as np
import pytest
from graded import pair, record
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from longwatch.learn.acceptance import (
    Confirmation,
    Decision,
    FlipRate,
    Lord,
    Outcome,
    Schedule,
    Standing,
    confirm,
    guards,
    lost,
    outcomes,
    paired,
    rule,
    wilson,
)
from longwatch.learn.acceptance.eprocess import STAKES

DIFFERENCES = st.floats(-1, 1, allow_nan=False)
QUARTERS = st.integers(-4, 4).map(lambda number: number / 4)
RECORDS = st.lists(QUARTERS | DIFFERENCES, max_size=150)
MARGINS = {"margin_pooled": 0.03, "margin_slice": 0.05}


def numbered(values):
    return [Outcome(f"p{number}", value) for number, value in enumerate(values)]


@st.composite
def nulls(draw):
    """A distribution on [-1, 1] with a mean of 0, or below it where there is nothing to push down."""
    values = draw(st.lists(DIFFERENCES, min_size=1, max_size=6))
    weights = draw(st.lists(st.integers(1, 50), min_size=len(values), max_size=len(values)))
    chances = [weight / sum(weights) for weight in weights]
    mean = fsum(value * chance for value, chance in zip(values, chances, strict=True))
    down = max(mean, 0.0) / (1 + max(mean, 0.0))
    return (*values, -1.0), (*(chance * (1 - down) for chance in chances), down)


@pytest.mark.guarantee("L17")
@settings(deadline=None)
@given(RECORDS, nulls())
def test_under_any_null_and_after_any_past_the_evidence_is_expected_to_fall(past, null):
    """The property on which Ville's inequality rests, by arithmetic instead of by chance."""
    state = confirm(Confirmation(alpha=0.01), numbered(past))
    values, chances = null
    expected = fsum(
        chance * exp(state.after(Outcome("next", value)).gain.now - state.gain.now)
        for value, chance in zip(values, chances, strict=True)
    )
    assert expected <= 1 + 1e-9


def greatest_evidence(values, chances, seed, paths=1500, steps=150):
    drawn = np.random.default_rng(seed).choice(
        values, p=np.array(chances) / sum(chances), size=(paths, steps)
    )
    return np.mean([np.cumprod(1 + stake * drawn, axis=1) for stake in STAKES], axis=0).max(axis=1)


@pytest.mark.guarantee("L17")
@settings(max_examples=25, deadline=None)
@given(nulls(), st.integers(0, 2**32 - 1))
def test_stopping_at_the_best_moment_deceives_no_more_than_alpha(null, seed):
    """Ville: the adversary sees the whole path and stops where the evidence is greatest."""
    greatest = greatest_evidence(*null, seed)
    for alpha in (0.2, 0.05):
        slack = 6 * (alpha * (1 - alpha) / len(greatest)) ** 0.5
        assert np.mean(greatest >= 1 / alpha) <= alpha + slack


@pytest.mark.guarantee("L17")
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1), st.floats(1, 10))
def test_an_adversary_that_chooses_each_null_by_the_past_gains_nothing(seed, small, bold_above):
    """It bets small while the evidence is low and everything near the threshold, always with a mean of 0."""
    rng, paths, alpha = np.random.default_rng(seed), 1500, 0.05
    capital, greatest = np.ones((paths, len(STAKES))), np.ones(paths)
    for _ in range(150):
        now = capital.mean(axis=1)
        size = np.where(now >= bold_above, 1.0, small)
        step = np.where(rng.random(paths) < 0.5, size, -size)
        capital = capital * (1 + step[:, None] * np.array(STAKES))
        greatest = np.maximum(greatest, capital.mean(axis=1))
    assert np.mean(greatest >= 1 / alpha) <= alpha + 6 * (alpha * (1 - alpha) / paths) ** 0.5


@pytest.mark.guarantee("L17")
@settings(deadline=None)
@given(RECORDS, st.floats(1e-6, 0.5), st.integers(1, 200))
def test_a_confirmation_survives_its_record_at_every_step(values, alpha, most):
    state = Confirmation(alpha=alpha, max_problems=most)
    for outcome in numbered(values):
        state = state.after(outcome)
        again = msgspec.json.decode(msgspec.json.encode(state), type=Confirmation)
        assert again == state
        assert again.decision is state.decision
        state = again


@pytest.mark.guarantee("L17")
@settings(deadline=None)
@given(RECORDS, st.data())
def test_blocks_do_not_matter(values, data):
    """A pause anywhere changes nothing: the same bits, whatever the blocks."""
    block = numbered(values)
    cut = data.draw(st.integers(0, len(block)))
    start = Confirmation(alpha=0.03)
    halves = confirm(
        confirm(start, block[:cut]), block[cut:], frozenset(each.problem for each in block[:cut])
    )
    assert halves == confirm(start, block)


@pytest.mark.guarantee("L17")
@settings(deadline=None)
@given(RECORDS)
def test_a_crossing_stays_and_a_peak_never_falls(values):
    states = list(accumulate(numbered(values), Confirmation.after, initial=Confirmation(alpha=0.1)))
    for before, after in pairwise(states):
        assert after.gain.peak >= before.gain.peak
        assert after.gain.peak >= after.gain.now
        assert before.crossed in {None, after.crossed}
    assert states[-1].net == pytest.approx(fsum(values), abs=1e-9)


@pytest.mark.guarantee("L17")
@settings(deadline=None)
@given(RECORDS, st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_a_stricter_level_never_accepts_more(values, one, other):
    assume(one != other)
    strict, lax = (
        confirm(Confirmation(alpha=alpha), numbered(values)).crossed for alpha in sorted((one, other))
    )
    assert not (strict is Decision.ACCEPT and lax is None)


@pytest.mark.guarantee("L17", "L18")
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 317), st.randoms(use_true_random=False))
def test_the_record_that_fell_by_40_of_790_is_accepted_in_no_order(gained, random):
    pairs = list(record(gained, gained + 40, 433 - gained, 317 - gained))
    random.shuffle(pairs)
    state = confirm(Confirmation(alpha=0.0219), outcomes(pairs))
    ruling = rule(state, guards(pairs, **MARGINS), lost(pairs, FlipRate(0, 200)))
    assert ruling.decision is not Decision.ACCEPT


@pytest.mark.guarantee("L19")
@settings(deadline=None)
@given(
    st.floats(0.001, 0.9), st.floats(0.01, 1), st.lists(st.sampled_from(["begin", "accepted"]), max_size=60)
)
def test_lord_never_spends_more_than_its_wealth(q, share, moves):
    state: Schedule = Lord(q=q, w0=q * share)
    spent = earned = 0.0
    for move in moves:
        state = msgspec.json.decode(msgspec.json.encode(state), type=Schedule)
        if move == "begin":
            spent += state.alpha
            state = state.begin()
        elif len(state.known) < state.begun:
            earned += q - (state.start if not state.known else 0)
            state = state.accepted()
        assert 0 < state.alpha <= q
        assert state.remaining <= state.start + earned - spent + 1e-9
        assert state.remaining > 0
        assert spent <= q * max(len(state.known), 1)


ANSWERS = st.sampled_from([True, False, None])


@st.composite
def graded(draw):
    """Pairs with infra, several languages and samples of a problem."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 9), st.sampled_from(["python", "javascript"]), ANSWERS, ANSWERS),
            max_size=60,
        )
    )
    return [
        pair(number, champion, challenger, problem=f"p{problem}", language=language)
        for number, (problem, language, champion, challenger) in enumerate(rows)
    ]


@pytest.mark.guarantee("L16", "L18")
@settings(deadline=None)
@given(graded())
def test_swapping_the_two_models_turns_every_sign(pairs):
    turned = [
        msgspec.structs.replace(each, champion=each.challenger, challenger=each.champion) for each in pairs
    ]
    assert outcomes(turned) == tuple(Outcome(o.problem, -o.difference) for o in outcomes(pairs))
    assert len(outcomes(pairs)) == len({each.problem for each in pairs if not each.infra})
    one, other = (confirm(Confirmation(alpha=0.05), outcomes(each)) for each in (pairs, turned))
    assert (one.gain, one.harm) == (other.harm, other.gain)


@pytest.mark.guarantee("L18")
@settings(deadline=None)
@given(graded())
def test_every_guard_stands_somewhere_for_a_reason(pairs):
    for guard in guards(pairs, **MARGINS):
        assert -1 <= guard.lower <= guard.difference <= 1
        assert 0 <= guard.harm_p <= 1
        assert (guard.standing is Standing.SHOWN) == (guard.lower > -guard.margin)
        assert guard.sentence.startswith(guard.name)
    assert 0 <= lost(pairs, FlipRate(1, 40)).p <= 1


@pytest.mark.guarantee("L24")
@settings(deadline=None)
@given(RECORDS, st.floats(0.5, 0.999))
def test_an_interval_holds_its_estimate_and_widens_with_confidence(values, confidence):
    narrow, wide = paired(values, confidence / 2), paired(values, confidence)
    assert wide.lower - 1e-12 <= narrow.lower <= narrow.upper <= wide.upper + 1e-12
    passed = sum(value > 0 for value in values)
    rate = wilson(passed, len(values), confidence)
    assert 0 <= rate.lower <= rate.estimate <= rate.upper <= 1
