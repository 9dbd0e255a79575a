"""Events of `claude -p --output-format stream-json`, measured with Claude Code 2.1.197. Pure."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from longwatch.migrate.attempt.trace import reading
from longwatch.migrate.attempt.trace.model import MAX_KEPT, Ending, Item, ProviderError, Tokens, TraceState

_ANSWER_TOOL = "StructuredOutput"
"""Claude's own way to hand the answer over; it touches nothing."""
_SYNTHETIC = "<synthetic>"
"""The model name of words that the program itself wrote: an error, not an action."""


class ClaudeTrace:
    """The parser. It carries nothing from line to line but the state."""

    def feed(self, state: TraceState, line: bytes, elapsed_s: float) -> TraceState:
        """Pure: the state after one more line. Survives any bytes; never raises."""
        return reading.fed(state, line, elapsed_s, _event)


def _event(
    state: TraceState, before: TraceState, event: Mapping[str, object], elapsed_s: float
) -> TraceState:
    match event.get("type"):
        case "assistant":
            return _assistant(state, before, event, elapsed_s)
        case "user":
            return _results(state, event)
        case "result":
            return _result(state, event, elapsed_s)
        case "system" | "rate_limit_event":
            return _told(state, before, event)
        case _:
            return reading.unknown(state)


def _told(state: TraceState, before: TraceState, event: Mapping[str, object]) -> TraceState:
    """What the program says of itself and of the provider."""
    if event.get("subtype") == "api_retry":
        return reading.erred(state, before, _retry(event))
    limit = reading.fields(event, "rate_limit_info")
    if reading.text(limit, "status") == "rejected":
        return replace(state, limit_resets_at=reading.amount(limit, "resetsAt"))
    return state


def _retry(event: Mapping[str, object]) -> ProviderError:
    return ProviderError(
        text=reading.short(reading.text(event, "error")),
        status=_status(event, "error_status"),
        retry_after_s=_retry_after_s(event),
    )


def _retry_after_s(event: Mapping[str, object]) -> float | None:
    """Claude's own delays have a random part; one in whole seconds is what the provider asked for."""
    delay_ms = reading.amount(event, "retry_delay_ms")
    return delay_ms / 1000 if delay_ms and delay_ms % 1000 == 0 else None


def _assistant(
    state: TraceState, before: TraceState, event: Mapping[str, object], elapsed_s: float
) -> TraceState:
    message = reading.fields(event, "message")
    blocks = reading.items(message, "content")
    if "error" in event or reading.text(message, "model") == _SYNTHETIC:
        words = " ".join([reading.text(event, "error"), *(reading.text(block, "text") for block in blocks)])
        return reading.erred(state, before, ProviderError(text=reading.short(words)))
    state = _count_tokens(state, message)
    for block in blocks:
        state = _block(state, block, elapsed_s)
    return state


def _block(state: TraceState, block: object, elapsed_s: float) -> TraceState:
    match reading.text(block, "type"):
        case "tool_use" if reading.text(block, "name") == _ANSWER_TOOL:
            return reading.acted(state, elapsed_s, "answer")
        case "tool_use":
            return reading.began(state, elapsed_s, Item(reading.text(block, "id"), _title(block)))
        case "text" | "thinking" | "redacted_thinking":
            return reading.acted(state, elapsed_s, reading.text(block, "text"))
        case _:
            return reading.unknown(state)


def _title(block: object) -> str:
    detail = next(
        (
            found
            for key in ("command", "file_path", "pattern")
            if (found := reading.text(block, "input", key))
        ),
        "",
    )
    return f"{reading.text(block, 'name')} {detail}".strip()


def _results(state: TraceState, event: Mapping[str, object]) -> TraceState:
    for block in reading.items(event, "message", "content"):
        name = reading.text(block, "tool_use_id")
        if any(item.id == name for item in state.in_flight):
            failed = reading.fields(block).get("is_error") is True
            state = reading.settled(state, name, done=not failed or _ran(block))
    return state


def _ran(block: object) -> bool:
    """A command that ran and returned something else than 0 worked as a tool."""
    return reading.text(block, "content").startswith("Exit code ")


def _count_tokens(state: TraceState, message: Mapping[str, object]) -> TraceState:
    """Count each message once: its blocks come as events of their own, each with the same usage."""
    name = reading.text(message, "id")
    if not name or name == state.message:
        return state
    return replace(state, message=name, live_tokens=state.live_tokens + _tokens(message).total)


def _result(state: TraceState, event: Mapping[str, object], elapsed_s: float) -> TraceState:
    state = reading.answered(replace(state, denied=_denied(event)), _answer(event))
    state = _cost(state, event)
    if event.get("subtype") == "success" and event.get("is_error") is not True:
        return reading.finished(state, elapsed_s, Ending.SUCCEEDED)
    return reading.finished(state, elapsed_s, Ending.FAILED, _failure(state, event))


def _cost(state: TraceState, event: Mapping[str, object]) -> TraceState:
    if not _usage_is_known(event):
        return replace(state, tokens=None, cost_usd=None)
    return reading.used(replace(state, cost_usd=reading.amount(event, "total_cost_usd")), _tokens(event))


def _failure(state: TraceState, event: Mapping[str, object]) -> ProviderError:
    """The error of the last provider message says more than the result: `billing_error` stands only there."""
    words = [reading.text(event, "result")]
    words += [error for error in reading.items(event, "errors") if isinstance(error, str)]
    if event.get("subtype") != "success":
        words.append(reading.text(event, "subtype"))
    words += [error.text for error in state.provider_errors[-1:]]
    status = _status(event, "api_error_status")
    asked_s = [error.retry_after_s for error in state.provider_errors if error.status == status]
    return ProviderError(
        text=reading.short(" ".join(words)), status=status, retry_after_s=asked_s[-1] if asked_s else None
    )


def _answer(event: Mapping[str, object]) -> bytes | None:
    """Only `structured_output` is an answer: words are what a model says that refuses to give one."""
    answer = event.get("structured_output")
    return msgspec.json.encode(answer) if isinstance(answer, dict) else None


def _denied(event: Mapping[str, object]) -> tuple[str, ...]:
    denials = reading.items(event, "permission_denials")
    return tuple(reading.short(reading.text(denial, "tool_name")) for denial in denials[:MAX_KEPT])


def _usage_is_known(event: Mapping[str, object]) -> bool:
    """A stream that was cut counts nothing and says 0: that is not known, it is missing."""
    usage = reading.fields(event, "usage")
    answered = event.get("is_error") is not True
    return "output_tokens" in usage and not (answered and _tokens(event).total == 0)


def _tokens(holder: Mapping[str, object]) -> Tokens:
    """Claude counts cached tokens beside the input; ours are part of it."""
    usage = reading.fields(holder, "usage")
    cached = reading.count(usage, "cache_read_input_tokens")
    written = reading.count(usage, "cache_creation_input_tokens")
    return Tokens(
        input=reading.count(usage, "input_tokens") + cached + written,
        cached=cached,
        output=reading.count(usage, "output_tokens"),
    )


def _status(event: Mapping[str, object], key: str) -> int | None:
    return reading.count(event, key) or None
