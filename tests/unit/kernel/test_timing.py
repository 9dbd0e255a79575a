"""The table of `timings`: sums, shares, overlaps and what is unaccounted for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.clock import stamp
from longwatch.kernel.timing import Span, report

BEGIN_S = 1_700_000_000


def span(phase: str, start_s: float, duration_s: float) -> Span:
    return Span(phase=phase, started_at=stamp(BEGIN_S + start_s), duration_s=duration_s)


def row(spans, phase: str, wall_s: float = 100):
    return next(row for row in report(spans, wall_s).phases if row.phase == phase)


@pytest.mark.guarantee("K36")
def test_a_phase_shows_count_total_median_p95_max_and_share():
    spans = [span("check", 2 * n, n) for n in (1, 2, 3, 4)]
    got = row(spans, "check", wall_s=50)
    assert (got.count, got.total_s, got.median_s, got.max_s) == (4, 10, 2.5, 4)
    assert got.p95_s == 4
    # They began at 2, 4, 6, 8 and the third touches the fourth: [2,3], [4,6], [6,9], [8,12].
    assert got.covered_s == pytest.approx(9)
    assert got.share == pytest.approx(9 / 50)


@pytest.mark.guarantee("K36")
def test_p95_is_a_duration_that_was_measured():
    spans = [span("check", n, n / 100) for n in range(1, 101)]
    assert row(spans, "check", 200).p95_s == pytest.approx(0.95)


@pytest.mark.guarantee("K36")
def test_overlapping_phases_count_their_time_once_in_what_is_accounted_for():
    table = report([span("attempt", 0, 10), span("worker", 2, 6), span("worker", 4, 6)], 20)
    assert table.accounted_s == pytest.approx(10)
    assert table.unaccounted_s == pytest.approx(10)
    assert table.overlap_s == pytest.approx(8)
    assert row([span("worker", 2, 6), span("worker", 4, 6)], "worker", 20).total_s == 12


@pytest.mark.guarantee("K36")
def test_nothing_measured_is_all_unaccounted_for():
    table = report([], 12)
    assert (table.phases, table.unaccounted_s) == ((), 12)
    assert report([], 0).unaccounted_s == 0


@pytest.mark.guarantee("K36")
def test_a_stepped_clock_never_gives_more_time_than_there_was():
    table = report([span("worker", -5000, 60), span("worker", 9000, 60)], 100)
    assert table.accounted_s == 100
    assert table.unaccounted_s == 0
    assert table.phases[0].share == 1
    assert table.phases[0].total_s == 120


SPANS = st.lists(
    st.builds(span, st.sampled_from("abc"), st.integers(0, 1000), st.integers(0, 500)), max_size=20
)


@pytest.mark.guarantee("K36")
@given(spans=SPANS, wall_s=st.integers(0, 3000))
def test_the_table_adds_up_for_any_spans(spans, wall_s):
    table = report(spans, wall_s)
    assert sum(row.count for row in table.phases) == len(spans)
    assert math.isclose(table.accounted_s + table.unaccounted_s, wall_s)
    assert table.accounted_s <= wall_s
    for row in table.phases:
        assert 0 <= row.share <= 1
        assert row.median_s <= row.p95_s <= row.max_s <= row.total_s
        assert row.covered_s <= table.accounted_s + 1e-9
