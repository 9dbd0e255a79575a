"""When a worker is ended because of what its events say."""

import msgspec
import pytest

from longwatch.migrate.attempt.trace import (
    ClaudeTrace,
    CodexTrace,
    Patience,
    ProviderError,
    Tokens,
    TraceMonitor,
    TraceState,
    reason_to_end,
)
from longwatch.migrate.attempt.trace.model import Ending, Item

PATIENCE = Patience(start_s=10, idle_s=20, finish_s=3)


def state(**known: object) -> TraceState:
    return msgspec.structs.replace(TraceState(), **known)


@pytest.mark.guarantee("M9", "K20")
@pytest.mark.parametrize(
    ("seen", "elapsed_s", "word"),
    [
        (state(), 9.9, None),
        (state(), 10.0, "no action within 10 s"),
        (state(last_activity_s=9.0, provider_errors=(ProviderError(text="no network"),)), 10.0, "no network"),
        (state(first_action_s=1.0, last_progress_s=1.0), 20.9, None),
        (state(first_action_s=1.0, last_progress_s=1.0), 21.0, "no progress for 20 s"),
        (state(first_action_s=1.0, last_progress_s=1.0, in_flight=(Item("1", "make"),)), 9_000.0, None),
        (state(first_action_s=1.0, last_progress_s=1.0, last_activity_s=20.0), 21.0, "no progress"),
        (state(ended=Ending.SUCCEEDED, ended_s=5.0), 7.9, None),
        (state(ended=Ending.SUCCEEDED, ended_s=5.0), 8.0, "did not exit within 3 s"),
        (state(ended=Ending.FAILED, ended_s=5.0, in_flight=(Item("1", "make"),)), 8.0, "did not exit"),
    ],
)
def test_reason(seen: TraceState, elapsed_s: float, word: str | None) -> None:
    reason = reason_to_end(seen, elapsed_s, PATIENCE)
    assert reason is None if word is None else word in (reason or "")


@pytest.mark.guarantee("M9")
def test_endless_reconnecting_is_a_stall() -> None:
    monitor = TraceMonitor(CodexTrace(), PATIENCE)
    monitor.line(b'{"type":"item.completed","item":{"id":"0","type":"reasoning","text":"hm"}}', 1.0)
    for second in range(2, 30):
        monitor.line(b'{"type":"error","message":"Reconnecting... waiting for network"}', float(second))
    assert "no progress" in (monitor.reason_to_end(30.0) or "")


def test_a_monitor_without_patience_only_reads() -> None:
    monitor = TraceMonitor(ClaudeTrace(), None)
    monitor.line(b"words", 1.0)
    assert monitor.reason_to_end(1e9) is None
    assert monitor.state.lines == 1


def test_tokens_count_cached_ones_once() -> None:
    line = b'{"type":"result","subtype":"success","usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":4}}'
    seen = ClaudeTrace().feed(TraceState(), line, 1.0)
    assert seen.tokens == Tokens(input=6, cached=2, output=4)
