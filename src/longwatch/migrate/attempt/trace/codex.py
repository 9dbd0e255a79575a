"""Events of `codex exec --json`, measured with codex 0.171.0. Pure."""

from collections.abc import Mapping

from msgspec.structs import replace

from longwatch.migrate.attempt.trace import reading
from longwatch.migrate.attempt.trace.model import Ending, Item, ProviderError, Tokens, TraceState

_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call"})
_WORDS = frozenset({"agent_message", "reasoning", "todo_list", "web_search"})
_NO_SANDBOX = "bwrap: "
"""What a command prints instead of running, where the sandbox of codex cannot be made."""
_QUIET = frozenset({"thread.started", "turn.started", "item.updated"})


class CodexTrace:
    """The parser. It carries nothing from line to line but the state."""

    def feed(self, state: TraceState, line: bytes, elapsed_s: float) -> TraceState:
        """Pure: the state after one more line. Survives any bytes; never raises."""
        return reading.fed(state, line, elapsed_s, _event)


def _event(
    state: TraceState, before: TraceState, event: Mapping[str, object], elapsed_s: float
) -> TraceState:
    match reading.text(event, "type"):
        case "item.started":
            return _started(state, reading.fields(event, "item"), elapsed_s)
        case "item.completed":
            return _completed(state, reading.fields(event, "item"), elapsed_s)
        case "error":
            return reading.erred(state, before, _error(reading.text(event, "message")))
        case "turn.completed":
            return _succeeded(state, event, elapsed_s)
        case "turn.failed":
            error = _error(reading.text(event, "error", "message"))
            return reading.finished(state, elapsed_s, Ending.FAILED, error)
        case kind:
            return state if kind in _QUIET else reading.unknown(state)


def _started(state: TraceState, item: Mapping[str, object], elapsed_s: float) -> TraceState:
    kind = reading.text(item, "type")
    if kind in _CALLS:
        return reading.began(state, elapsed_s, Item(reading.text(item, "id"), _title(item)))
    return state if kind in _WORDS else reading.unknown(state)


def _completed(state: TraceState, item: Mapping[str, object], elapsed_s: float) -> TraceState:
    kind = reading.text(item, "type")
    if kind in _CALLS:
        return _call_ended(state, item, elapsed_s)
    if kind in _WORDS:
        words = reading.text(item, "text")
        after = reading.acted(state, elapsed_s, words)
        return reading.answered(after, _bytes(words)) if kind == "agent_message" else after
    # An item of type `error` is a remark ("Model metadata ... not found"), not the end of anything.
    return state if kind == "error" else reading.unknown(state)


def _call_ended(state: TraceState, item: Mapping[str, object], elapsed_s: float) -> TraceState:
    """A command that ran and returned 3 is a done call: the tool worked. One without an exit code never ran."""
    name = reading.text(item, "id")
    if all(other.id != name for other in state.in_flight):
        state = reading.began(state, elapsed_s, Item(name, _title(item)))
    printed = reading.text(item, "aggregated_output")
    if printed.startswith(_NO_SANDBOX):
        return reading.erred(reading.settled(state, name, done=False), state, _error(printed))
    ran = type(item.get("exit_code")) is int or reading.text(item, "status") == "completed"
    return reading.settled(state, name, done=ran)


def _succeeded(state: TraceState, event: Mapping[str, object], elapsed_s: float) -> TraceState:
    after = reading.finished(state, elapsed_s, Ending.SUCCEEDED)
    usage = reading.fields(event, "usage")
    if "input_tokens" not in usage or "output_tokens" not in usage:
        return replace(after, tokens=None)
    return reading.used(
        after,
        Tokens(
            input=reading.count(usage, "input_tokens"),
            cached=reading.count(usage, "cached_input_tokens"),
            output=reading.count(usage, "output_tokens"),
        ),
    )


def _title(item: Mapping[str, object]) -> str:
    if command := reading.text(item, "command"):
        return command
    paths = [reading.text(change, "path") for change in reading.items(item, "changes")]
    return "edit " + ", ".join(path for path in paths if path) if paths else reading.text(item, "tool")


def _error(message: str) -> ProviderError:
    return ProviderError(text=reading.short(message))


def _bytes(words: str) -> bytes:
    return words.encode("utf-8", "replace")
