"""What a tree used so far, and since when it does nothing. Pure: measurements and times come in as values."""

import msgspec

_CPU_NOISE_S = 0.02
_CPU_NOISE_SHARE = 0.01
_IO_NOISE_BYTES = 4096
_IO_NOISE_BYTES_PER_S = 128


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree uses at one moment. `cpu_s` and `io_bytes` are sums over what lives now."""

    processes: frozenset[tuple[int, int]] = frozenset()
    """pid and start of each."""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    io_bytes: int = 0


class Meter:
    """Peaks, and the last sign of activity. All times are seconds since the child's start."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.peak_bytes = 0
        self.cpu_s = 0.0
        self.first_output_s: float | None = None
        self._mark = Usage()
        self._marked_s = 0.0
        self._active_s = 0.0

    def output(self, now_s: float) -> None:
        """Note that it printed something."""
        self._active_s = now_s
        if self.first_output_s is None:
            self.first_output_s = now_s

    def measure(self, usage: Usage, now_s: float) -> None:
        """Note a measurement."""
        self.usage = usage
        self.peak_bytes = max(self.peak_bytes, usage.memory_bytes)
        self.cpu_s = max(self.cpu_s, usage.cpu_s)
        if is_active(self._mark, usage, now_s - self._marked_s):
            self._mark, self._marked_s, self._active_s = usage, now_s, now_s

    def idle_s(self, now_s: float) -> float:
        """How long there was neither output nor activity."""
        return now_s - self._active_s


def is_active(before: Usage, now: Usage, passed_s: float) -> bool:
    """True if the tree did more than the housekeeping of a program that only waits.

    A timer that wakes a few times a second, a connection that is kept alive: these must not hide a stall.
    """
    return (
        now.processes != before.processes
        or now.cpu_s - before.cpu_s > _CPU_NOISE_S + _CPU_NOISE_SHARE * passed_s
        or now.io_bytes - before.io_bytes > _IO_NOISE_BYTES + _IO_NOISE_BYTES_PER_S * passed_s
    )
