"""The output of a program that speaks no protocol: every line is a sign of life, and nothing more. Pure."""

from longwatch.migrate.attempt.trace import reading
from longwatch.migrate.attempt.trace.model import TraceState

_SHOWN_BYTES = 2000


class PlainTrace:
    """The parser. Such a program's end is its exit, and its answer lies in a file."""

    def feed(self, state: TraceState, line: bytes, elapsed_s: float) -> TraceState:
        """Pure: the state after one more line. Survives any bytes; never raises."""
        words = line[:_SHOWN_BYTES].decode("utf-8", "replace")
        return reading.acted(reading.seen(state, elapsed_s), elapsed_s, words)
