"""Time as values: instants, and deadlines that survive reboots and clock steps. Pure; `clock` reads the clocks.

Three clocks are read together. The wall clock is shown and stored, and never trusted for an interval on the same
boot. CLOCK_BOOTTIME counts suspended time and measures deadlines. CLOCK_MONOTONIC does not and measures active time.
"""

import msgspec


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of all clocks. Seconds."""

    wall_s: float
    boottime_s: float
    monotonic_s: float
    boot_id: str


class Deadline(msgspec.Struct, frozen=True, kw_only=True):
    """A moment `delay_s` after `since`, that stays right after a reboot or a clock step in either direction."""

    since: Instant
    delay_s: float


def remaining_s(deadline: Deadline, now: Instant) -> float:
    """Seconds until the deadline; 0 if it is due. Never more than the delay itself.

    On the same boot only CLOCK_BOOTTIME counts, so stepping the wall clock changes nothing. After a reboot the wall
    clock is the only witness: a clock that went backwards makes the wait start again, at most once if the owner
    keeps the `rebased` deadline.
    """
    if deadline.since.boot_id == now.boot_id:
        passed_s = now.boottime_s - deadline.since.boottime_s
    else:
        passed_s = now.wall_s - deadline.since.wall_s
    return min(max(deadline.delay_s - max(passed_s, 0.0), 0.0), deadline.delay_s)


def rebased(deadline: Deadline, now: Instant) -> Deadline:
    """Return the same deadline as seen from this boot, so that a wall clock that was wrong is asked only once."""
    if deadline.since.boot_id == now.boot_id:
        return deadline
    return Deadline(since=now, delay_s=remaining_s(deadline, now))
