"""Active seconds of one experiment, over all its runs, by what was done in them (L14).

A thread adds up the time twice a second, whatever the rest of the program does, and leaves the sum in a file: a run that
is killed loses half a second. The clock is monotonic: it knows no steps, and stands still while the machine sleeps.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, LongwatchError

FILE = "active-seconds.json"
TICK_S = 0.5
_MAX_BYTES = 64 * 1024


class Active(msgspec.Struct, frozen=True):
    """Active seconds by phase."""

    by_phase: Mapping[str, float] = {}

    @property
    def total_s(self) -> float:
        """All of them."""
        return math.fsum(self.by_phase.values())

    def plus(self, phase: str, seconds: float) -> "Active":
        """Return the sum with some more of one phase."""
        return Active({**self.by_phase, phase: self.by_phase.get(phase, 0.0) + seconds})


def read(folder: Path) -> Active:
    """Return the active seconds of the experiment in `folder`: none where it has not begun.

    Raises:
        IntegrityError: the file is damaged.
    """
    path = folder / FILE
    try:
        found = msgspec.json.decode(files.read_bounded(path, _MAX_BYTES), type=Active)
    except FileNotFoundError:
        return Active()
    except msgspec.MsgspecError as error:
        raise _damaged(path, str(error)) from error
    if not all(math.isfinite(seconds) and seconds >= 0 for seconds in found.by_phase.values()):
        raise _damaged(path, "not all of its numbers are seconds")
    return found


def _damaged(path: Path, why: str) -> IntegrityError:
    return IntegrityError(
        f"{path} is damaged ({why}): restore it, or remove it, and the experiment's hours are counted from 0 again"
    )


class Meter:
    """Counts while it is entered. Used by the main thread of a program."""

    def __init__(
        self,
        folder: Path,
        limit_s: float,
        phase: Callable[[], str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`phase` says what is being done."""
        self._folder, self._limit_s, self._phase, self._clock = folder, limit_s, phase, clock
        self._active = read(folder)
        self._last_s = clock()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="meter", daemon=True)
        self._mask: set[int] = set()

    @property
    def active(self) -> Active:
        """The seconds so far; at most half a second old."""
        return self._active

    @property
    def over(self) -> bool:
        """True if the experiment has used its hours."""
        return self._active.total_s >= self._limit_s

    def save(self) -> None:
        """Make the seconds so far durable."""
        with self._lock:
            files.replace(self._folder / FILE, self._counted())

    def __enter__(self) -> Self:
        # Blocked, it still continues this process, and is remembered: that is how a stop is noticed.
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
        self._last_s = self._clock()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.save()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            with self._lock:
                data = self._counted()
                try:
                    files.show(self._folder / FILE, data)
                except LongwatchError:
                    # The next tick writes these seconds, too; if the disk stays full, `save` says so.
                    continue

    def _counted(self) -> bytes:
        """Add the time since the last look, and return what the file shall hold."""
        now_s = self._clock()
        gap_s, self._last_s = now_s - self._last_s, now_s
        # Who was stopped worked for a tick at most, however long it stood still.
        self._active = self._active.plus(
            self._phase() or "other", min(gap_s, TICK_S) if _continued() else gap_s
        )
        return msgspec.json.encode(self._active)


def _continued() -> bool:
    """Return whether this process was continued since the last look: until then it may have stood still."""
    return signal.sigtimedwait({signal.SIGCONT}, 0) is not None
