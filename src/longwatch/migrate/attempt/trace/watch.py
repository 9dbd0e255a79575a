"""When a worker's own signs are reason enough to end it: a stalled provider, or a final result without an exit.

`reason_to_end` is pure; `TraceMonitor` holds the state while the child runs.
"""

import msgspec

from longwatch.migrate.attempt.trace.model import Trace, TraceState


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long signs of the model are waited for (specification M9)."""

    start_s: float
    """Until the first action."""
    idle_s: float
    """Without progress after it, while no tool call is in flight."""
    finish_s: float = 5.0
    """Between the final result and the exit (specification K20)."""


def reason_to_end(state: TraceState, elapsed_s: float, patience: Patience) -> str | None:
    """Pure: the reason to end the worker now, or `None`."""
    if state.ended_s is not None:
        over = elapsed_s - state.ended_s >= patience.finish_s
        return f"it gave its final result and did not exit within {patience.finish_s:g} s" if over else None
    if state.first_action_s is None:
        over = elapsed_s >= patience.start_s
        return f"the model took no action within {patience.start_s:g} s{_last(state)}" if over else None
    if state.in_flight or elapsed_s - state.last_progress_s < patience.idle_s:
        return None
    return f"the model made no progress for {patience.idle_s:g} s with no tool call in flight{_last(state)}"


def _last(state: TraceState) -> str:
    return f"; its provider's last error: {state.provider_errors[-1].text}" if state.provider_errors else ""


class TraceMonitor:
    """A child's monitor that reads its events. Without `patience` it only reads."""

    def __init__(self, trace: Trace, patience: Patience | None) -> None:
        self._trace = trace
        self._patience = patience
        self.state = TraceState()

    def line(self, line: bytes, elapsed_s: float) -> None:
        """Read one line."""
        self.state = self._trace.feed(self.state, line, elapsed_s)

    def reason_to_end(self, elapsed_s: float) -> str | None:
        """Say why the worker should be ended now, or `None`."""
        return None if self._patience is None else reason_to_end(self.state, elapsed_s, self._patience)
