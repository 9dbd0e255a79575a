"""Deadlines under any readings of the clocks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.clock import stamp
from longwatch.kernel.instant import Deadline, Instant, rebased, remaining_s

SECONDS = st.floats(0, 1e10, allow_nan=False)
INSTANTS = st.builds(
    Instant, wall_s=SECONDS, boottime_s=SECONDS, monotonic_s=SECONDS, boot_id=st.sampled_from(["one", "two"])
)
DEADLINES = st.builds(Deadline, since=INSTANTS, delay_s=st.floats(0, 1e6, allow_nan=False))


@pytest.mark.guarantee("K27")
@given(DEADLINES, INSTANTS)
def test_what_remains_is_never_less_than_nothing_nor_more_than_the_delay(deadline, now):
    assert 0 <= remaining_s(deadline, now) <= deadline.delay_s


@pytest.mark.guarantee("K27")
@given(DEADLINES, INSTANTS, SECONDS, SECONDS)
def test_the_wall_clock_changes_nothing_on_one_boot(deadline, now, wall_s, monotonic_s):
    other = Instant(
        wall_s=wall_s, boottime_s=now.boottime_s, monotonic_s=monotonic_s, boot_id=deadline.since.boot_id
    )
    same = Instant(wall_s=now.wall_s, boottime_s=now.boottime_s, monotonic_s=0, boot_id=other.boot_id)
    assert remaining_s(deadline, other) == remaining_s(deadline, same)


@pytest.mark.guarantee("K27")
@given(DEADLINES, INSTANTS, st.floats(0, 1e6, allow_nan=False))
def test_from_any_boot_the_wait_ends_after_at_most_its_delay(deadline, booted, wall_s):
    kept = rebased(deadline, booted)
    assert remaining_s(kept, booted) == pytest.approx(remaining_s(deadline, booted))
    due = Instant(
        wall_s=wall_s,
        # A float of this size is exact to a microsecond.
        boottime_s=booted.boottime_s + deadline.delay_s + 1e-3 if kept.since is booted else 3e10,
        monotonic_s=0,
        boot_id=booted.boot_id,
    )
    assert remaining_s(kept, due) == 0


@given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
def test_a_stamp_is_read_back_to_the_microsecond(seconds, microseconds):
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)
    text = stamp(seconds + microseconds / 1_000_000)
    assert abs((datetime.fromisoformat(text) - at).total_seconds()) <= 1e-6
    assert text.endswith("Z")
    assert len(text) == 27
