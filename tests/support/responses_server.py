"""A scripted model behind OpenAI's Responses API, as far as codex needs it.

Steps of a script: `{"words": ...}`, `{"tool": name, "arguments": {...}}`, `{"patch": text}`.
Modes: `ok`, the names of `failures`, `hang` (no headers), `hang-later` (from the second request on), `hang-mid`
(after the first event), `truncate` (no end).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.support.model_server import Answer, Failures, Handler, ModelServer, Step, answer_for

Event = tuple[str, dict[str, object]]


def _error(
    status: int, code: str, message: str, kind: str = "invalid_request_error", **headers: str
) -> tuple[int, object, Mapping[str, str]]:
    shown = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"error": {"message": message, "type": kind, "code": code}}, shown


def _limit(lifts_s: int) -> tuple[int, object, Mapping[str, str]]:
    error = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": int(time.time()) + lifts_s,
    }
    return 429, {"error": error}, {}


_TOO_MANY = (429, "rate_limit_exceeded", "Rate limit reached", "tokens")


def failures() -> Failures:
    """Made anew for each answer: a usage limit lifts so long after it was said."""
    return {
        "401": _error(401, "invalid_api_key", "Incorrect API key provided."),
        "400": _error(400, "invalid_value", "bad request"),
        "404": _error(404, "model_not_found", "The model does not exist or you do not have access to it."),
        "429": _error(*_TOO_MANY),
        "429-soon": _error(*_TOO_MANY, retry_after="1"),
        "429-late": _error(*_TOO_MANY, retry_after="3600"),
        "503": _error(503, "server_is_overloaded", "The server is overloaded", "server_error"),
        "quota": _error(429, "insufficient_quota", "You exceeded your current quota", "insufficient_quota"),
        "usage": _limit(7200),
        "usage-week": _limit(3 * 86_400),
    }


def responses_server(script: Sequence[Answer], mode: str = "ok") -> ModelServer:
    return ModelServer(Responses, script, mode)


class Responses(Handler):
    failures = staticmethod(failures)

    def do_GET(self) -> None:  # noqa: N802 - the name that the standard library calls
        self.reply(200, {"object": "list", "data": []})

    def respond(self, request: dict[str, object], number: int) -> None:
        results = _results(request.get("input"))
        if self.server.mode == "hang-later" and results:
            self.hang()
            return
        answer = answer_for(self.server.script, results)
        self.stream(self._events(answer, number))

    def _events(self, answer: Answer, number: int) -> Iterator[Event]:
        name = f"resp_{number}"
        yield "response.created", {"response": {"id": name}}
        if self.server.mode == "hang-mid":
            self.hang()
            return
        for index, step in enumerate(answer):
            item = _item(step, f"{number}_{index}")
            yield "response.output_item.added", {"output_index": index, "item": item}
            yield "response.output_item.done", {"output_index": index, "item": item}
        if self.server.mode == "truncate":
            return
        usage = {"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020}
        yield "response.completed", {"response": {"id": name, "usage": usage}}


def _results(items: object) -> int:
    """Tool results after the last words of the user."""
    results = 0
    for item in items if isinstance(items, list) else []:
        if item.get("type") == "message" and item.get("role") == "user":
            results = 0
        results += item.get("type") in ("function_call_output", "custom_tool_call_output")
    return results


def _item(step: Step, name: str) -> dict[str, object]:
    if "words" in step:
        content = [{"type": "output_text", "text": step["words"], "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{name}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    call = {"call_id": f"call_{name}"}
    if "patch" in step:
        return {
            "type": "custom_tool_call",
            "id": f"ctc_{name}",
            "name": "apply_patch",
            "input": step["patch"],
            **call,
        }
    arguments = json.dumps(step["arguments"])
    return {"type": "function_call", "id": f"fc_{name}", "name": step["tool"], "arguments": arguments, **call}
