"""Deadlines through reboots, suspends and clocks that jump (specification K27)."""

import msgspec
import pytest

from longwatch.kernel import clock
from longwatch.kernel.instant import Deadline, Instant, rebased, remaining_s

YEAR_S = 365 * 86_400.0
SINCE = Instant(wall_s=1.8e9, boottime_s=5_000.0, monotonic_s=4_000.0, boot_id="one")
WAIT = Deadline(since=SINCE, delay_s=900.0)


def later(boot_s, *, wall_s=None, monotonic_s=None, boot_id="one"):
    return Instant(
        wall_s=SINCE.wall_s + (boot_s if wall_s is None else wall_s),
        boottime_s=SINCE.boottime_s + boot_s,
        monotonic_s=SINCE.monotonic_s + (boot_s if monotonic_s is None else monotonic_s),
        boot_id=boot_id,
    )


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize(
    ("now", "left_s"),
    [
        (later(0), 900),
        (later(300), 600),
        (later(900), 0),
        (later(10_000), 0),
        # Suspended for ten minutes: CLOCK_MONOTONIC stood still, the wait did not.
        (later(600, monotonic_s=1.0), 300),
        # The wall clock jumps by a year while it waits.
        (later(300, wall_s=YEAR_S), 600),
        (later(300, wall_s=-YEAR_S), 600),
        (later(900, wall_s=-YEAR_S), 0),
    ],
)
def test_on_the_same_boot_only_boottime_counts(now, left_s):
    assert remaining_s(WAIT, now) == left_s


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize(
    ("wall_s", "left_s"),
    [(60, 840), (899, 1), (900, 0), (YEAR_S, 0), (0, 900), (-1, 900), (-YEAR_S, 900)],
)
@pytest.mark.parametrize("boottime_s", [3.0, 5_000.0, 9e6])
def test_after_a_reboot_the_wall_clock_is_the_only_witness(wall_s, left_s, boottime_s):
    now = Instant(wall_s=SINCE.wall_s + wall_s, boottime_s=boottime_s, monotonic_s=1.0, boot_id="two")
    assert remaining_s(WAIT, now) == left_s


@pytest.mark.guarantee("K27")
def test_after_a_reboot_with_a_clock_a_year_behind_it_waits_once_and_not_for_a_year():
    booted = Instant(wall_s=SINCE.wall_s - YEAR_S, boottime_s=10.0, monotonic_s=10.0, boot_id="two")
    kept = rebased(WAIT, booted)
    soon = msgspec.structs.replace(booted, wall_s=booted.wall_s + 900, boottime_s=910.0)
    assert remaining_s(WAIT, soon) == 900, "the deadline of the other boot would not come for a year"
    assert remaining_s(kept, soon) == 0
    corrected = msgspec.structs.replace(booted, wall_s=SINCE.wall_s + 60, boottime_s=310.0)
    assert remaining_s(kept, corrected) == 600, "a clock that is set right later moves nothing"


@pytest.mark.guarantee("K27")
def test_a_rebased_deadline_is_the_same_deadline():
    assert rebased(WAIT, later(300)) is WAIT
    booted = Instant(wall_s=SINCE.wall_s + 60, boottime_s=10.0, monotonic_s=10.0, boot_id="two")
    assert remaining_s(rebased(WAIT, booted), booted) == remaining_s(WAIT, booted) == 840


@pytest.mark.guarantee("K37")
@pytest.mark.parametrize(
    ("wall_s", "stamp"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1796060055.000123, "2026-11-30T17:34:15.000123Z"),
        (1796060055.9999999, "2026-11-30T17:34:16.000000Z"),
        (-0.5, "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_times_are_stored_in_utc(wall_s, stamp, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    assert clock.stamp(wall_s) == stamp


def test_the_clocks_are_read_together():
    first, second = clock.now(), clock.now()
    assert first.boot_id == second.boot_id == clock.boot_id()
    assert first.boottime_s <= second.boottime_s
    assert first.monotonic_s <= second.monotonic_s
