"""Bounds of one graded answer. They are generous for what is right and small for what is not."""

import msgspec

MIB = 1024 * 1024


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer's process and its tests' process may use, each on its own.

    The verdict hangs on CPU time, so that the machine's load changes none; wall time is the backstop for what waits
    and never computes.
    """

    cpu_s: int = 4
    wall_s: float = 30.0
    """On an idle machine; on one with more to do than cores, as many times longer as it has more to do."""
    memory_bytes: int = 512 * MIB
    """Address space of a Python process; of Node, whose reservations are larger than its use, twice as much data."""
    tmp_bytes: int = 16 * MIB
    """Its only writable folder, in memory; also the largest file."""
    frame_bytes: int = 4 * MIB
    """The largest value that crosses, in its encoded form."""
    depth: int = 100
    """The deepest nesting of a value that crosses."""

    @property
    def near_cpu_s(self) -> float:
        """From here on a run is judged only alone on the machine."""
        return self.cpu_s / 2
