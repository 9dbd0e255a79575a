"""What `workers/acp_program` reports of a conversation in the Agent Client Protocol, version 1. Pure."""

from collections.abc import Mapping

from msgspec.structs import replace

from longwatch.migrate.attempt.trace import reading
from longwatch.migrate.attempt.trace.model import MAX_KEPT, Ending, Item, ProviderError, Tokens, TraceState

_WORDS = frozenset({"agent_message_chunk", "agent_thought_chunk"})
_QUIET = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "plan",
        "session_info_update",
        "user_message_chunk",
    }
)
_COUNTS_ITS_LAST_MESSAGE = ("OpenCode ",)
"""Agents whose usage leaves out all messages but the last (measured with 1.18.33): less than was used is not known."""


class AcpTrace:
    """The parser. It carries nothing from line to line but the state."""

    def feed(self, state: TraceState, line: bytes, elapsed_s: float) -> TraceState:
        """Pure: the state after one more line. Survives any bytes; never raises."""
        return reading.fed(state, line, elapsed_s, _event)


def _event(
    state: TraceState,
    before: TraceState,  # noqa: ARG001 - the same signature for all formats
    event: Mapping[str, object],
    elapsed_s: float,
) -> TraceState:
    data = reading.fields(event, "data")
    match reading.text(event, "kind"):
        case "init":
            words = (reading.text(data, "agentInfo", key) for key in ("name", "version"))
            state = replace(state, agent=reading.short(" ".join(words)))
        case "update":
            state = _update(state, data, elapsed_s)
        case "request_permission":
            state = _asked(state, data)
        case "prompt_result":
            state = _ended(state, data, elapsed_s)
        case "failed":
            state = reading.finished(state, elapsed_s, Ending.FAILED, _error(data))
        case "session":
            pass
        case _:
            state = reading.unknown(state)
    return state


def _update(state: TraceState, update: Mapping[str, object], elapsed_s: float) -> TraceState:
    match reading.text(update, "sessionUpdate"):
        case "tool_call":
            item = Item(reading.text(update, "toolCallId"), reading.text(update, "title"))
            return _call(replace(reading.began(state, elapsed_s, item), message=""), update)
        case "tool_call_update":
            return _call(state, update)
        case "usage_update":
            return _cost(state, update)
        case kind if kind in _WORDS:
            return _words(state, update, kind, elapsed_s)
        case kind:
            return state if kind in _QUIET else reading.unknown(state)


def _words(state: TraceState, update: Mapping[str, object], kind: str, elapsed_s: float) -> TraceState:
    """A message comes in parts: it is one action, and all of it is the answer."""
    name = f"{kind} {reading.text(update, 'messageId')}"
    part = reading.text(update, "content", "text")
    goes_on = name == state.message
    after = state if goes_on else replace(reading.acted(state, elapsed_s, part), message=name)
    if kind == "agent_thought_chunk":
        return after
    said = (state.answer or b"" if goes_on else b"") + part.encode("utf-8", "replace")
    shown = reading.short(said[:2000].decode("utf-8", "replace"))
    return reading.answered(replace(after, current=shown or after.current), said)


def _call(state: TraceState, update: Mapping[str, object]) -> TraceState:
    name, status = reading.text(update, "toolCallId"), reading.text(update, "status")
    if all(item.id != name for item in state.in_flight):
        return state
    state = replace(state, current=reading.short(reading.text(update, "title")) or state.current)
    if status in {"completed", "failed"}:
        return reading.settled(state, name, done=status == "completed")
    return state


def _asked(state: TraceState, request: Mapping[str, object]) -> TraceState:
    if request.get("allowed") is not False:
        return state
    title = reading.short(reading.text(request, "toolCall", "title"))
    return replace(state, denied=(*state.denied, title)[-MAX_KEPT:])


def _ended(state: TraceState, result: Mapping[str, object], elapsed_s: float) -> TraceState:
    state = _used(state, reading.fields(result, "usage"))
    reason = reading.text(result, "stopReason")
    if reason == "end_turn":
        return reading.finished(state, elapsed_s, Ending.SUCCEEDED)
    error = ProviderError(text=f"the turn ended with {reading.short(reason) or 'no reason'}")
    return reading.finished(state, elapsed_s, Ending.FAILED, error)


def _used(state: TraceState, usage: Mapping[str, object]) -> TraceState:
    """Some agents count cached tokens beside the input, some in it; the total always holds them."""
    partial = state.agent.startswith(_COUNTS_ITS_LAST_MESSAGE)
    if partial or "inputTokens" not in usage or "outputTokens" not in usage:
        return replace(state, tokens=None)
    output = reading.count(usage, "outputTokens")
    beside = reading.count(usage, "totalTokens") - output
    cached = reading.count(usage, "cachedReadTokens")
    whole = max(reading.count(usage, "inputTokens"), beside)
    return reading.used(state, Tokens(input=whole, cached=cached, output=output))


def _cost(state: TraceState, update: Mapping[str, object]) -> TraceState:
    """The whole session's so far, where the agent knows prices."""
    if reading.text(update, "cost", "currency") != "USD":
        return state
    return replace(state, cost_usd=reading.amount(update, "cost", "amount"))


def _error(error: Mapping[str, object]) -> ProviderError:
    words = (
        reading.text(error, "message"),
        *(reading.text(error, "data", key) for key in ("message", "details")),
    )
    return ProviderError(text=reading.short(" ".join(word for word in words if word)) or "no reason given")
