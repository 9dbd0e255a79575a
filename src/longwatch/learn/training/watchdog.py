"""Watches the time of steps: a sudden slow-down means spilled memory, silence means a stall (L12)."""

import statistics
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

SLOW_FACTOR = 4.0
"""From here on a slow-down is reported: the sign of memory that spills to a slower place."""
HISTORY = 5
"""So many steps make the pace that others are compared with."""
STALL_FACTOR = 20.0
STALL_S = 300.0
"""No stall is reported earlier."""


class Pace(msgspec.Struct, frozen=True):
    """Seconds per token of the first steps: later ones are compared with their median."""

    first: tuple[float, ...] = ()

    def with_step(self, seconds: float, tokens: int) -> "Pace":
        """Return the pace that knows this step, too."""
        return Pace((*self.first, seconds / max(1, tokens))) if len(self.first) < HISTORY else self

    def slow_down(self, seconds: float, tokens: int) -> float | None:
        """By which factor this step was slower than the first ones, or `None` if that is no news."""
        if len(self.first) < HISTORY:
            return None
        factor = seconds / max(1, tokens) / max(statistics.median(self.first), 1e-12)
        return factor if factor >= SLOW_FACTOR else None


def stalled(silent_s: float, usual_s: float) -> bool:
    """True if nothing has moved for so long that nothing will: twenty usual moves, and five minutes at least."""
    return silent_s >= max(STALL_S, STALL_FACTOR * usual_s)


class Watchdog:
    """Calls `on_stall` from a thread of its own, once for each silence. Tell it of each move with `beat`.

    A step that hangs inside the accelerator's driver cannot tell anybody itself.
    """

    def __init__(
        self,
        on_stall: Callable[[float], None],
        *,
        look_s: float = 5.0,
        judge: Callable[[float, float], bool] = stalled,
    ) -> None:
        self._on_stall = on_stall
        self._look_s = look_s
        self._judge = judge
        self._ended = threading.Event()
        self._last_s = time.monotonic()
        self._usual_s = 0.0
        self._told = False
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def beat(self) -> None:
        """Something has moved."""
        now_s = time.monotonic()
        self._usual_s = max(self._usual_s, now_s - self._last_s)
        self._last_s = now_s
        self._told = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._look_s):
            silent_s = time.monotonic() - self._last_s
            if not self._told and self._judge(silent_s, self._usual_s):
                self._told = True
                self._on_stall(silent_s)
