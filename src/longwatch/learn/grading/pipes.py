"""The child's half of the wire, in Python: its text is sent into both sandboxed Python processes after `plain`.

A frame is its length in four bytes, most significant first, and a text in JSON.
"""

import posix
import resource
import sys

from longwatch.learn.grading.plain import parse

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than a cell's start
    from typing import Any


class Wire:
    """The two pipes to our own process; prints and reads of other code go nowhere."""

    def __init__(self) -> None:
        self._source, self._sink = posix.dup(0), posix.dup(1)
        nowhere = posix.open("/dev/null", posix.O_RDWR)
        for number in (0, 1, 2):
            posix.dup2(nowhere, number)

    def send(self, text: str) -> None:
        """Write one frame."""
        data = text.encode("ascii")
        left = memoryview(len(data).to_bytes(4, "big") + data)
        while left:
            left = left[posix.write(self._sink, left) :]

    def receive(self) -> "Any":
        """Read one frame; the end of the pipe ends this process."""
        return parse(self._take(int.from_bytes(self._take(4), "big")).decode())

    def _take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = posix.read(self._source, size - len(data))
            if not more:
                posix._exit(0)  # noqa: SLF001 - the only way out that runs nobody's code
            data += more
        return data


def confine() -> None:
    """Take the limits from the command line. Nothing can be forked, nor limits raised, afterwards."""
    cpu_s, memory_bytes, file_bytes = map(int, sys.argv[1:4])
    for which, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(which, (value, value))
    del sys.argv[1:]
