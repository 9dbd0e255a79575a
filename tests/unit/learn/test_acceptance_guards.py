"""Guards against regressions, lost tasks, the anchor, the ruling, and blocks spoilt by infra."""

import msgspec
import pytest
from graded import pair, record
from scipy import stats
from statsmodels.stats.multitest import multipletests

from longwatch.learn.acceptance import (
    Confirmation,
    Decision,
    FlipRate,
    Hold,
    Outcome,
    Ruling,
    Standing,
    anchor,
    confirm,
    guards,
    infra_share,
    is_void,
    lost,
    outcomes,
    rule,
)
from longwatch.learn.acceptance.inferiority import enough
from longwatch.learn.acceptance.intervals import holm

MARGINS = {"margin_pooled": 0.03, "margin_slice": 0.05}


def by_name(pairs, **margins):
    return {guard.name: guard for guard in guards(pairs, **(MARGINS | margins))}


@pytest.mark.guarantee("L18")
def test_how_many_problems_are_enough_is_planned_and_not_observed():
    assert (enough(0.03), enough(0.05)) == (687, 248)


@pytest.mark.guarantee("L18")
@pytest.mark.parametrize(
    ("gained", "lost_", "kept", "standing"),
    [
        (0, 0, 0, Standing.NOT_ALARMED),
        (0, 0, 60, Standing.NOT_ALARMED),  # even without a loss 60 problems do not rule out 3 points
        (0, 0, 90, Standing.SHOWN),
        (40, 40, 720, Standing.SHOWN),
        (40, 48, 712, Standing.SHOWN),  # -1.0 points, at least -2.9
        (40, 49, 711, Standing.FAILED),
        (40, 64, 696, Standing.FAILED),
        (20, 60, 710, Standing.FAILED),  # the record that fell by 40 of 790
        (8, 8, 184, Standing.NOT_ALARMED),
        (4, 11, 185, Standing.NOT_ALARMED),  # p = 0.059
        (4, 12, 184, Standing.FAILED),  # p = 0.038
        (0, 5, 100, Standing.FAILED),  # p = 1/32
        (0, 4, 100, Standing.NOT_ALARMED),
        (14, 11, 139, Standing.NOT_ALARMED),
    ],
)
def test_the_pooled_guard(gained, lost_, kept, standing):
    (guard,) = guards(record(gained, lost_, kept), **MARGINS)
    assert guard.standing is standing
    assert guard.holds == (standing is not Standing.FAILED)
    assert guard.problems == gained + lost_ + kept
    assert str(guard.problems) in guard.sentence


@pytest.mark.guarantee("L18")
def test_slices_are_guarded_where_there_are_several():
    pairs = (
        *record(30, 10, 360, language="python", family="lists"),
        *record(2, 30, 368, language="javascript", family="lists"),
        *record(10, 0, 190, language="python", family="dates"),
    )
    found = by_name(pairs)
    assert set(found) == {"all problems", "python", "javascript", "lists", "dates"}
    assert found["javascript"].standing is Standing.FAILED
    assert {name for name, guard in found.items() if guard.standing is Standing.SHOWN} == {
        "python",
        "dates",
        "lists",
        "all problems",
    }
    assert set(by_name(record(3, 2, 40))) == {"all problems"}


@pytest.mark.guarantee("L18")
def test_a_language_and_a_family_of_one_name_are_two_guards():
    pairs = (
        *record(0, 9, 30, language="r", family="go"),
        *record(9, 0, 30, language="go", family="r"),
        *record(9, 0, 300, language="r", family="r"),
    )
    found = guards(pairs, **MARGINS)
    assert [guard.name for guard in found] == ["all problems", "go", "r", "go", "r"]
    assert [guard.holds for guard in found[1:]] == [True, True, False, True]


@pytest.mark.guarantee("L16", "L18")
def test_a_slice_clusters_its_own_answers():
    pairs = [
        pair(number, True, number % 2 == 0, problem=f"p{number // 4}", language=language)
        for language in ("python", "javascript")
        for number in range(40)
    ]
    found = by_name(pairs)
    assert (found["python"].problems, found["python"].difference) == (10, -0.5)
    assert found["all problems"].problems == 10


@pytest.mark.guarantee("L18")
def test_small_slices_share_one_alarm_by_holm():
    losses = {"a": 5, "b": 7, "c": 3, "d": 0}
    pairs = [each for name, count in losses.items() for each in record(0, count, 40, family=name)]
    found = by_name(pairs, margin_pooled=0.9)
    raw = [2.0**-count for count in losses.values()]
    expected = multipletests(raw, method="holm")[1]
    assert [found[name].harm_p for name in losses] == pytest.approx(list(expected))
    assert [found[name].holds for name in losses] == [
        True,
        False,
        True,
        True,
    ]  # 4/128 alarms, then 3/32 does not


@pytest.mark.guarantee("L18")
@pytest.mark.parametrize(
    "values", [(0.01, 0.04, 0.03, 0.005), (0.5, 0.5, 0.5), (1.0,), (), (0.02, 0.001, 0.9)]
)
def test_holm_is_that_of_statsmodels(values):
    expected = multipletests(values, method="holm")[1] if values else ()
    assert holm(values) == pytest.approx(tuple(expected))


@pytest.mark.guarantee("L18")
@pytest.mark.parametrize(
    ("gone", "kept", "flips", "alarm"),
    [
        (0, 100, FlipRate(0, 0), False),
        (2, 98, FlipRate(0, 200), False),  # at a rate of 1/202 two of a hundred are nothing
        (3, 97, FlipRate(0, 200), False),
        (4, 96, FlipRate(0, 200), True),
        (8, 92, FlipRate(9, 198), False),
        (13, 87, FlipRate(9, 198), True),
        (0, 0, FlipRate(1, 10), False),
    ],
)
def test_lost_tasks_alarm_only_beyond_what_flips_explain(gone, kept, flips, alarm):
    pairs = (*record(3, gone, kept), pair("infra", True, None))
    found = lost(pairs, flips)
    assert found.tasks == tuple(each.task for each in pairs if each.lost)
    assert (found.answers, found.of) == (gone, gone + kept)
    assert found.p == pytest.approx(stats.binom.sf(gone - 1, gone + kept, flips.rate))
    assert found.alarm == alarm
    assert f"{gone} of {gone + kept} passed answers lost" in found.sentence


@pytest.mark.guarantee("L18")
def test_a_lost_task_with_several_samples_is_listed_once():
    pairs = [pair(1, True, False), pair(1, True, False), pair(2, True, True)]
    found = lost(pairs, FlipRate(0, 50))
    assert (found.tasks, found.answers, found.of) == (("1-python",), 2, 3)


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(("infra", "void"), [(0, False), (1, False), (2, False), (3, True), (100, True)])
def test_a_block_with_more_than_two_percent_infra_is_void(infra, void):
    pairs = [*record(0, 0, 100 - infra), *(pair(f"i{n}", None, True) for n in range(infra))]
    assert infra_share(pairs) == infra / 100
    assert is_void(pairs) == void
    assert not is_void(())


@pytest.mark.guarantee("L10", "L16")
@pytest.mark.parametrize(
    ("champion", "challenger"), [(None, True), (True, None), (None, False), (False, None)]
)
def test_infra_is_never_a_gain_or_a_loss(champion, challenger):
    hidden = pair(1, champion, challenger)
    assert not hidden.lost
    assert outcomes([hidden]) == ()
    assert outcomes([hidden, pair(2, False, True, problem="p1")]) == (Outcome("p1", 1.0),)


@pytest.mark.guarantee("L21")
@pytest.mark.parametrize(
    ("gained", "lost_", "kept", "hold"),
    [
        (0, 0, 100, Hold.HOLDS),
        (10, 3, 87, Hold.HOLDS),
        (3, 4, 93, Hold.UNSHOWN),
        (0, 1, 99, Hold.UNSHOWN),  # a lost task is not a reason to go back
        (0, 9, 91, Hold.UNSHOWN),  # evidence 15.2
        (0, 10, 90, Hold.ROLL_BACK),  # evidence 21.6
        (2, 20, 78, Hold.ROLL_BACK),
        (0, 0, 0, Hold.UNSHOWN),
    ],
)
def test_the_anchor_rolls_back_only_on_harm(gained, lost_, kept, hold):
    found = anchor("base", record(gained, lost_, kept), margin=0.03)
    assert found.hold is hold
    assert found.sentence.startswith(f"against base on {gained + lost_ + kept} sealed problems")


@pytest.mark.guarantee("L21")
def test_the_anchor_goes_in_the_sealed_order_and_remembers_the_greatest_harm():
    losses_first = sorted(record(20, 12, 68), key=lambda each: each.difference)
    assert anchor("best ever", losses_first, margin=0.03).hold is Hold.ROLL_BACK
    assert anchor("best ever", losses_first[::-1], margin=0.03).hold is Hold.HOLDS


def ruled(pairs, **margins):
    state = confirm(Confirmation(alpha=0.02), outcomes(pairs))
    return rule(state, guards(pairs, **(MARGINS | margins)), lost(pairs, FlipRate(1, 300)))


@pytest.mark.guarantee("L17", "L18")
def test_better_on_the_whole_and_worse_in_a_language_is_a_regression():
    better = record(40, 4, 156, language="python")
    worse = record(0, 12, 60, language="javascript")
    assert ruled(better).decision is Decision.ACCEPT
    ruling = ruled((*better, *worse))
    assert ruling.confirmation.decision is Decision.ACCEPT
    assert ruling.decision is Decision.REGRESSION
    assert any(
        text.startswith("javascript: a loss of 5 points is not ruled out") for text in ruling.sentences
    )


@pytest.mark.guarantee("L18")
def test_lost_tasks_are_reported_and_are_no_veto():
    ruling = ruled(record(60, 12, 220))
    assert ruling.lost.alarm
    assert len(ruling.lost.tasks) == 12
    assert ruling.decision is Decision.ACCEPT
    assert "12 of 232 passed answers lost, more than A/A flips explain" in ruling.sentences[-1]


@pytest.mark.guarantee("L17")
@pytest.mark.parametrize("pairs", [record(14, 11, 139), record(0, 30, 70), record(10, 10, 100), ()])
def test_guards_never_turn_a_refusal_into_an_acceptance(pairs):
    ruling = ruled(pairs, margin_pooled=0.99)
    assert ruling.decision is ruling.confirmation.decision is not Decision.ACCEPT


@pytest.mark.guarantee("L17", "L18")
def test_a_ruling_survives_its_record():
    ruling = ruled((*record(20, 4, 100), *record(1, 6, 30, language="javascript")))
    assert msgspec.json.decode(msgspec.json.encode(ruling), type=Ruling) == ruling
