"""Reads the clocks. What the readings mean stands in `instant`, which is pure."""

import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from longwatch.kernel.instant import Instant


def boot_id() -> str:
    """Name of the current boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


_BOOT_ID = boot_id()


def now() -> Instant:
    """Read all clocks."""
    return Instant(
        wall_s=time.time(),
        boottime_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        monotonic_s=time.monotonic(),
        boot_id=_BOOT_ID,
    )


def stamp(wall_s: float) -> str:
    """UTC, ISO 8601 with microseconds and a Z: `2026-11-30T17:34:15.000123Z`."""
    second, microseconds = divmod(round(wall_s * 1_000_000), 1_000_000)
    return f"{_second(second)}.{microseconds:06d}Z"


@lru_cache(maxsize=1)
def _second(wall_s: int) -> str:
    # Formatting a date takes as long as the rest of a commit's own work; most commits share their second.
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
