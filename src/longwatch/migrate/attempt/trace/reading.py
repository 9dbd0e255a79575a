"""Reads foreign JSON whose every part may be missing or of the wrong type, and the moves that all parsers share. Pure."""

import math
from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from longwatch.migrate.attempt.trace.model import (
    MAX_ANSWER_BYTES,
    MAX_KEPT,
    MAX_TEXT,
    Ending,
    Item,
    ProviderError,
    Tokens,
    TraceState,
)

_HEAD_BYTES = 4096
_MOST = 2**53
"""Counts beyond this are no counts."""

Event = Callable[[TraceState, TraceState, Mapping[str, object], float], TraceState]
"""What one event changes: the state after its line was seen, the state before, the event, and when it came."""


def fed(state: TraceState, line: bytes, elapsed_s: float, event: Event) -> TraceState:
    """Return the state after one more line of a stream of JSON objects. Survives any bytes; never raises."""
    if not line.strip():
        return state
    after = seen(state, elapsed_s)
    found = decode(line)
    return broken(after, line) if found is None else event(after, state, found, elapsed_s)


def decode(line: bytes) -> dict[str, object] | None:
    """Return the JSON object on this line, or `None` if there is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def fields(value: object, *path: str) -> dict[str, object]:
    """Return the object at `path`, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, dict) else {}


def items(value: object, *path: str) -> list[object]:
    """Return the array at `path`, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, list) else []


def text(value: object, *path: str) -> str:
    """Return the string at `path`, or an empty one."""
    found = _at(value, path)
    return found if isinstance(found, str) else ""


def count(value: object, *path: str) -> int:
    """Return the whole number at `path` if it is none below 0, else 0."""
    found = _at(value, path)
    return found if type(found) is int and 0 <= found <= _MOST else 0


def amount(value: object, *path: str) -> float | None:
    """Return the number at `path` if it is finite and none below 0."""
    found = _at(value, path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= _MOST and math.isfinite(found) else None


def _at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def short(words: str) -> str:
    """One line of it, cut."""
    return " ".join(words[: 4 * MAX_TEXT].split())[:MAX_TEXT]


def seen(state: TraceState, elapsed_s: float) -> TraceState:
    """Return the state after a line that is a sign of life."""
    return replace(state, lines=state.lines + 1, last_activity_s=elapsed_s, last_progress_s=elapsed_s)


def unknown(state: TraceState) -> TraceState:
    """Return the state after a line that nobody can read."""
    return replace(state, unknown_events=state.unknown_events + 1)


def acted(state: TraceState, elapsed_s: float, title: str) -> TraceState:
    """Return the state after the model did something."""
    first = elapsed_s if state.first_action_s is None else state.first_action_s
    return replace(
        state, actions=state.actions + 1, first_action_s=first, current=short(title) or state.current
    )


def began(state: TraceState, elapsed_s: float, item: Item) -> TraceState:
    """Return the state after a tool call began."""
    flying = (*(other for other in state.in_flight if other.id != item.id), item)
    return replace(acted(state, elapsed_s, item.title), calls=state.calls + 1, in_flight=flying[-MAX_KEPT:])


def settled(state: TraceState, name: str, *, done: bool) -> TraceState:
    """Return the state after a tool call ended; `done` means: without an error."""
    flying = tuple(item for item in state.in_flight if item.id != name)
    return replace(state, in_flight=flying, calls_done=state.calls_done + done)


def erred(state: TraceState, before: TraceState, error: ProviderError) -> TraceState:
    """Return the state after a provider error, which is activity but no progress."""
    kept = (*state.provider_errors, error)[-MAX_KEPT:]
    return replace(state, provider_errors=kept, last_progress_s=before.last_progress_s)


def finished(
    state: TraceState, elapsed_s: float, ending: Ending, error: ProviderError | None = None
) -> TraceState:
    """Return the state after a terminal event; a later one overrules an earlier one."""
    return replace(state, ended=ending, ended_s=elapsed_s, error=error)


def answered(state: TraceState, answer: bytes | None) -> TraceState:
    """Return the state with the worker's latest answer."""
    return replace(state, answer=None if answer is None else answer[: MAX_ANSWER_BYTES + 1])


def used(state: TraceState, tokens: Tokens) -> TraceState:
    """Return the state with what the whole run used."""
    return replace(state, tokens=tokens, live_tokens=max(state.live_tokens, tokens.total))


def broken(state: TraceState, line: bytes) -> TraceState:
    """Return the state after a line that is no JSON: perhaps the cut end of a tool call with a huge output.

    A call whose id stands near the beginning is taken out of flight, so that a stall is still seen later.
    """
    head = line[:_HEAD_BYTES].decode("utf-8", "replace")
    flying = tuple(item for item in state.in_flight if f'"{item.id}"' not in head)
    return replace(unknown(state), in_flight=flying)
