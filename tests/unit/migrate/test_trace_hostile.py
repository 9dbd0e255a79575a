"""Output that no honest program would print."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.migrate.attempt.trace import (
    AcpTrace,
    ClaudeTrace,
    CodexTrace,
    Ending,
    PlainTrace,
    Trace,
    TraceState,
)
from longwatch.migrate.attempt.trace.model import MAX_ANSWER_BYTES, MAX_KEPT

TRACES: list[Trace] = [CodexTrace(), ClaudeTrace(), AcpTrace(), PlainTrace()]
EACH = pytest.mark.parametrize("trace", TRACES, ids=["codex", "claude", "acp", "plain"])

WORDS = st.sampled_from(
    [
        "type", "item", "id", "message", "content", "usage", "input_tokens", "output_tokens", "error", "text", "changes",
        "path", "exit_code", "status", "subtype", "is_error", "structured_output", "permission_denials", "tool_name",
        "total_cost_usd", "tool_use_id", "name", "input", "command", "model", "errors", "result", "api_error_status",
        "item.started", "item.completed", "turn.completed", "turn.failed", "thread.started", "assistant", "user",
        "kind", "data", "init", "update", "request_permission", "prompt_result", "failed", "agentInfo", "sessionUpdate",
        "tool_call", "tool_call_update", "agent_message_chunk", "usage_update", "messageId", "toolCallId", "title",
        "stopReason", "end_turn", "inputTokens", "outputTokens", "totalTokens", "cost", "currency", "USD", "amount",
        "allowed", "toolCall", "system", "api_retry", "command_execution", "file_change", "agent_message", "tool_use", "success", "completed",
    ]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.guarantee("M8")
@given(events=st.lists(JSON.map(msgspec.json.encode) | st.binary(max_size=40), max_size=12))
def test_any_types_anywhere_are_survived(events: list[bytes]) -> None:
    for trace in TRACES:
        state = TraceState()
        for number, line in enumerate(events):
            after = trace.feed(state, line, float(number))
            assert after.lines >= state.lines
            assert after.calls_done <= after.calls
            state = after


@pytest.mark.guarantee("M8")
@EACH
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"\xff\xfe\x00",
        b"[1,2]",
        b"null",
        b"12",
        b"{",
        b'{"type":"item.completed","item":',
        b'{"type":"result","total_cost_usd":1e999,"usage":{"input_tokens":-5,"output_tokens":1e300}}',
        b'{"type":"turn.completed","usage":{"input_tokens":true,"output_tokens":"x"}}',
        b'{"type":"\\ud800"}',
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\\udfff"}]}}',
        b'{"type":"result","subtype":"success","structured_output":'
        + b'{"a":' * 400
        + b"1"
        + b"}" * 400
        + b"}",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"x" * (8 * 1024 * 1024),
    ],
    ids=range(16),
)
def test_hostile_line(trace: Trace, line: bytes) -> None:
    state = trace.feed(TraceState(), line, 1.0)
    assert state.ended is not Ending.FAILED or b"result" in line


@pytest.mark.guarantee("M8")
def test_unknown_events_are_activity_and_no_failure() -> None:
    for trace in TRACES[:3]:
        state = trace.feed(TraceState(), b'{"type":"quantum.leap","to":5}', 7.0)
        assert (state.unknown_events, state.last_activity_s, state.last_progress_s) == (1, 7.0, 7.0)
        assert state.ended is None


@pytest.mark.guarantee("M8", "M9")
def test_a_cut_line_takes_its_call_out_of_flight() -> None:
    trace = CodexTrace()
    begin = b'{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"make"}}'
    state = trace.feed(TraceState(), begin, 1.0)
    assert [item.title for item in state.in_flight] == ["make"]
    cut = (
        b'{"type":"item.completed","item":{"id":"item_2","type":"command_execution","aggregated_output":"'
        + b"x" * 9_000
    )
    state = trace.feed(state, cut, 2.0)
    assert state.in_flight == ()
    assert state.calls == 1


def test_what_is_kept_is_bounded() -> None:
    codex, state = CodexTrace(), TraceState()
    for number in range(3 * MAX_KEPT):
        begin = (
            f'{{"type":"item.started","item":{{"id":"{number}","type":"command_execution","command":"c"}}}}'
        )
        state = codex.feed(state, begin.encode(), 0.0)
        state = codex.feed(state, b'{"type":"error","message":"' + b"Reconnecting " * 500 + b'"}', 0.0)
    answer = msgspec.json.encode(
        {"type": "item.completed", "item": {"type": "agent_message", "text": "x" * 3_000_000}}
    )
    state = codex.feed(state, answer, 0.0)
    assert state.calls == 3 * MAX_KEPT
    assert len(state.in_flight) == len(state.provider_errors) == MAX_KEPT
    assert len(msgspec.json.encode(state)) < 2 * MAX_ANSWER_BYTES + 200_000
    assert state.answer is not None
    assert len(state.answer) == MAX_ANSWER_BYTES + 1


@pytest.mark.guarantee("M8")
def test_a_message_in_a_million_parts_is_one_action() -> None:
    trace, state = AcpTrace(), TraceState()
    part = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"text": "word " * 200}}
    line = msgspec.json.encode({"kind": "update", "data": part})
    for _ in range(1200):
        state = trace.feed(state, line, 1.0)
    assert state.actions == 1
    assert state.answer is not None
    assert len(state.answer) == MAX_ANSWER_BYTES + 1
