"""The level of each confirmation: LORD++ and the lifetime rule."""

from math import pi

import msgspec
import pytest
from online_fdr.p_values.investing.lord.plus_plus import LordPlusPlus

from longwatch.kernel.errors import StateError
from longwatch.learn.acceptance import Lifetime, Lord, Schedule
from longwatch.learn.acceptance.lord import GAMMA_SUM, gamma, unspent


def lived(schedule, accepted):
    """The levels of a life in which confirmations end one by one, and the schedule after it."""
    levels = []
    for yes in accepted:
        levels.append(schedule.alpha)
        schedule = schedule.begin()
        schedule = schedule.accepted() if yes else schedule
    return levels, schedule


class Gammas:
    """Our shares for the reference."""

    def calc_gamma(self, place):
        return place**-1.6 / GAMMA_SUM


LIVES = [
    [False] * 40,
    [True] * 40,
    [place % 7 == 2 for place in range(40)],
    [place in {0, 1, 30} for place in range(40)],
    [place == 39 for place in range(40)],
]


@pytest.mark.guarantee("L19")
@pytest.mark.parametrize("accepted", LIVES)
@pytest.mark.parametrize(("q", "w0"), [(0.10, None), (0.10, 0.02), (0.20, 0.1), (0.05, 0.04)])
def test_the_levels_are_those_of_an_independent_lord_plus_plus(accepted, q, w0):
    reference = LordPlusPlus(alpha=q, wealth=w0 or q / 2)
    reference.seq = Gammas()
    expected = []
    for yes in accepted:
        reference.test_one(0.0 if yes else 1.0)
        expected.append(reference.last_test_level)
    assert lived(Lord(q=q, w0=w0), accepted)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.guarantee("L19")
def test_the_numbers_of_the_page():
    levels, _ = lived(Lord(), [False] * 40)
    assert [levels[k - 1] for k in (1, 2, 5, 10, 40)] == pytest.approx(
        [0.021875, 0.0072159, 0.0016656, 0.00054947, 0.000059790], rel=1e-4
    )
    after_one, _ = lived(Lord(), [True, False])
    assert after_one[1] == pytest.approx(0.0072159 + 0.021875, rel=1e-4)


@pytest.mark.guarantee("L19")
def test_the_shares_add_up_to_one():
    assert unspent(0) == 1
    assert unspent(100_000) == pytest.approx(
        100_000**-0.6 / 0.6 / GAMMA_SUM, rel=1e-4
    )  # the rest of the integral
    assert all(gamma(place) > gamma(place + 1) > 0 for place in range(1, 500))


@pytest.mark.guarantee("L19")
@pytest.mark.parametrize("accepted", LIVES)
def test_what_is_left_is_what_all_tests_to_come_may_spend(accepted):
    levels, after = lived(Lord(), accepted)
    earned = 0.05 * any(accepted) + 0.10 * max(sum(accepted) - 1, 0)
    assert after.remaining == pytest.approx(0.05 + earned - sum(levels), abs=1e-12)
    to_come, at_last = lived(after, [False] * 300)
    assert sum(to_come) == pytest.approx(after.remaining - at_last.remaining, abs=1e-12)
    assert 0 < at_last.remaining < after.remaining


@pytest.mark.guarantee("L19")
def test_without_an_acceptance_all_levels_together_stay_within_w0():
    levels, after = lived(Lord(), [False] * 2000)
    assert sum(levels) + after.remaining == pytest.approx(0.05)
    assert sum(levels) < 0.05


@pytest.mark.guarantee("L19")
def test_an_acceptance_counts_only_once_it_is_known():
    one = Lord().begin()
    both = one.begin()
    assert both.begin().accepted().known == (3,)
    late = both.accepted()
    assert one.alpha == Lord(begun=1).alpha  # the second began while the first was open
    assert late.alpha == pytest.approx(0.05 * gamma(3) + 0.05 * gamma(1))


@pytest.mark.guarantee("L19")
def test_acceptances_that_become_known_at_once_do_not_lift_a_level_above_q():
    state = Lord(q=0.75, w0=0.75, begun=4, known=(4, 4, 4, 4))
    assert state.alpha == 0.75
    assert lived(Lord(), [True] * 200)[1].alpha < 0.10


@pytest.mark.guarantee("L19")
def test_the_lifetime_rule():
    levels, after = lived(Lifetime(), [False, True, False])
    assert levels == pytest.approx([0.05 * 6 / pi**2 / k**2 for k in (1, 2, 3)])
    assert after.remaining == pytest.approx(0.05 - sum(levels))
    levels, _ = lived(Lifetime(level=0.01), [True] * 3000)
    assert 0.00999 < sum(levels) < 0.01


@pytest.mark.guarantee("L19")
@pytest.mark.parametrize("start", [Lord(), Lifetime()])
def test_a_schedule_survives_its_record_and_says_where_it_is(start):
    state = start
    for place in range(12):
        state = msgspec.json.decode(msgspec.json.encode(state.begin()), type=Schedule)
        state = state.accepted() if place % 5 == 0 else state
        assert f"in {place + 1} confirmations" in state.sentence
        assert f"{state.alpha:.3g}" in state.sentence
    assert type(state) is type(start)
    assert state.begun == 12


@pytest.mark.guarantee("L19")
@pytest.mark.parametrize(
    "schedule", [Lord(), Lifetime(), Lord().begin().accepted(), Lifetime().begin().accepted()]
)
def test_more_acceptances_than_confirmations_are_refused(schedule):
    with pytest.raises(StateError, match="one more cannot be"):
        schedule.accepted()


@pytest.mark.parametrize(("q", "w0"), [(0, None), (1, None), (0.1, 0.2), (0.1, 0.0), (float("nan"), None)])
def test_levels_that_promise_nothing_are_refused(q, w0):
    with pytest.raises(StateError, match=r"acceptance\.q"):
        Lord(q=q, w0=w0)


def test_a_lifetime_without_promise_is_refused():
    with pytest.raises(StateError, match="lifetime"):
        Lifetime(level=1.0)
