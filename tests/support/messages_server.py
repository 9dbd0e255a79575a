"""A scripted model behind Anthropic's Messages API, as far as Claude Code needs it.

Steps of a script: `{"words": ...}`, `{"tool": name, "arguments": {...}}`.
Modes: `ok`, the names of `failures`, `hang` (no headers), `hang-later` (from the second request on), `hang-mid`
(after the first event), `truncate` (no end).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.support.model_server import Answer, Failures, Handler, ModelServer, Step, answer_for

Event = tuple[str, dict[str, object]]


def _error(status: int, kind: str, message: str, **headers: str) -> tuple[int, object, Mapping[str, str]]:
    shown = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"type": "error", "error": {"type": kind, "message": message}}, shown


def _limit(claim: str, lifts_s: int) -> tuple[int, object, Mapping[str, str]]:
    return _error(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit. Please try again later.",
        anthropic_ratelimit_unified_status="rejected",
        anthropic_ratelimit_unified_representative_claim=claim,
        anthropic_ratelimit_unified_reset=str(int(time.time()) + lifts_s),
    )


_TOO_MANY = (429, "rate_limit_error", "Number of requests has exceeded your rate limit")


def failures() -> Failures:
    """Made anew for each answer: a usage limit lifts so long after it was said."""
    return {
        "401": _error(401, "authentication_error", "invalid x-api-key"),
        "400": _error(400, "invalid_request_error", "bad request"),
        "404": _error(404, "not_found_error", "model: unknown"),
        "429": _error(*_TOO_MANY),
        "429-soon": _error(*_TOO_MANY, retry_after="1"),
        "429-late": _error(*_TOO_MANY, retry_after="3600"),
        "usage": _limit("five_hour", 7200),
        "usage-week": _limit("seven_day", 3 * 86_400),
        "503": _error(503, "api_error", "Service unavailable"),
        "529": _error(529, "overloaded_error", "Overloaded"),
        "quota": _error(
            400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
        ),
    }


def messages_server(script: Sequence[Answer], mode: str = "ok") -> ModelServer:
    return ModelServer(Messages, script, mode)


class Messages(Handler):
    failures = staticmethod(failures)

    def respond(self, request: dict[str, object], number: int) -> None:
        if not self.path.split("?")[0].endswith("/v1/messages"):
            self.reply(*_error(404, "not_found_error", "no such address"))
            return
        results = _results(request.get("messages"))
        if self.server.mode == "hang-later" and results:
            self.hang()
            return
        answer = answer_for(self.server.script, results)
        blocks = [_block(step, f"{number}_{index}") for index, step in enumerate(answer)]
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": request.get("model"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1000, "output_tokens": 1},
        }  # fmt: skip
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        if request.get("stream"):
            self.stream(self._events(message, blocks, stop))
        else:
            self.reply(200, {**message, "content": blocks, "stop_reason": stop})

    def _events(
        self, message: dict[str, object], blocks: list[dict[str, object]], stop: str
    ) -> Iterator[Event]:
        yield "message_start", {"message": message}
        if self.server.mode == "hang-mid":
            self.hang()
            return
        for index, block in enumerate(blocks):
            yield from _block_events(index, block)
        if self.server.mode == "truncate":
            return
        end = {"stop_reason": stop, "stop_sequence": None}
        yield "message_delta", {"delta": end, "usage": {"output_tokens": 20}}
        yield "message_stop", {}


def _results(messages: object) -> int:
    """Tool results after the last words of the user."""
    results = 0
    for message in messages if isinstance(messages, list) else []:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        found = sum(block.get("type") == "tool_result" for block in blocks)
        results = results + found if found else 0
    return results


def _block(step: Step, name: str) -> dict[str, object]:
    if "words" in step:
        return {"type": "text", "text": step["words"]}
    return {"type": "tool_use", "id": f"toolu_{name}", "name": step["tool"], "input": step["arguments"]}


def _block_events(index: int, block: dict[str, object]) -> Iterator[Event]:
    words = block["type"] == "text"
    empty = {**block, "text": ""} if words else {**block, "input": {}}
    delta = (
        {"type": "text_delta", "text": block["text"]}
        if words
        else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    )
    yield "content_block_start", {"index": index, "content_block": empty}
    yield "content_block_delta", {"index": index, "delta": delta}
    yield "content_block_stop", {"index": index}
