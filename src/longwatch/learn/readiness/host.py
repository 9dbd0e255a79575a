"""What Linux says of memory, mains power, heat and load, in /proc and /sys. Each is `None` where it says nothing."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SYS, PROC = Path("/sys"), Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FRESH_S = 120.0
"""What was counted longer ago says nothing of the load now."""
GLANCE_S = 0.1
PROCESSOR = ("cpu", "core", "k10temp", "zenpower", "x86_pkg")
"""What sensors of a processor are called, in part; the others may be of a disk or a battery."""


def available_bytes(proc: Path = PROC) -> int | None:
    """Return the memory that programs may take without swapping."""
    for line in _lines(proc / "meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return 1024 * int(value.split()[0])
    return None


def on_ac(sys: Path = SYS) -> bool | None:
    """Return whether mains power is there. A machine without a battery of its own does not say."""
    supplies = [
        {key: _word(folder / key) for key in ("type", "scope", "online", "status")}
        for folder in _folders(sys / "class/power_supply")
    ]
    batteries = [one for one in supplies if one["type"] == "Battery" and one["scope"] != "Device"]
    if not batteries:
        return None
    mains = [one["online"] for one in supplies if one["type"] in {"Mains", "USB"} and one["online"]]
    if "1" in mains:
        return True
    discharging = any(one["status"] == "Discharging" for one in batteries)
    return False if mains or discharging else None


def temperature_c(sys: Path = SYS) -> float | None:
    """Return what the hottest sensor of the processor shows."""
    found = [
        degrees
        for named, inputs in _sensors(sys)
        if any(part in named.lower() for part in PROCESSOR)
        for path in inputs
        if (degrees := _number(path)) is not None
    ]
    return max(found) / 1000 if found else None


def _sensors(sys: Path) -> Iterator[tuple[str, list[Path]]]:
    for folder in _folders(sys / "class/thermal"):
        yield _word(folder / "type"), [folder / "temp"]
    for folder in _folders(sys / "class/hwmon"):
        yield _word(folder / "name"), sorted(folder.glob("temp*_input"))


class Load:
    """How many cores others use, since the last look or for a tenth of a second."""

    def __init__(self, ours_s: Callable[[], float], proc: Path = PROC) -> None:
        """`ours_s` returns the seconds that our own processes have computed."""
        self._ours_s, self._proc = ours_s, proc
        self._last: tuple[float, float] | None = None
        self._last_s = 0.0

    def cores(self) -> float | None:
        """Look now."""
        last = self._last if time.monotonic() - self._last_s < FRESH_S else None
        if last is None:
            last = self._count()
            time.sleep(GLANCE_S)
        found = self._count()
        if last is None or found is None or found[0] <= last[0]:
            return None
        return max(0.0, (found[1] - last[1]) / (found[0] - last[0]))

    def _count(self) -> tuple[float, float] | None:
        """Return when it was counted, and the seconds that others have computed by then."""
        line = next(iter(_lines(self._proc / "stat")), "").split()
        if len(line) < 9 or line[0] != "cpu":
            return None
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line[1:9])
        busy_s = (user + nice + system + irq + softirq + steal) / TICKS_PER_S
        self._last_s = time.monotonic()
        self._last = (self._last_s, busy_s - self._ours_s())
        return self._last


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(parent.iterdir())
    except OSError:  # the kernel has no such class
        return []


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # not on this machine, or just unplugged
        return []


def _word(path: Path) -> str:
    return next(iter(_lines(path)), "").strip()


def _number(path: Path) -> float | None:
    word = _word(path)
    return float(word) if word.lstrip("-").isdigit() else None
