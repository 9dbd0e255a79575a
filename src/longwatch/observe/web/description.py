"""The page's JSON, described for other programs (OpenAPI 3.1), from the very types that are encoded."""

from typing import Any

import msgspec

from longwatch import __version__
from longwatch.learn.board import LearnBoard
from longwatch.migrate.board import MigrateBoard, Patch
from longwatch.observe.asking import Asked
from longwatch.observe.timings import WatchTimings
from longwatch.observe.verifying import Verification
from longwatch.observe.web.answers import Card, Excerpt, Listing, Log, Page, Problem, Wish

_WATCH = "/api/watches/{watch}"
_READ: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "/api/watches": ("All watches, those that need somebody first.", Listing, ()),
    _WATCH: ("One watch as it is now.", Card, ()),
    f"{_WATCH}/board": ("Jobs or experiments with their standing.", MigrateBoard | LearnBoard, ()),
    f"{_WATCH}/patches/{{name}}": ("What a job changed.", Patch, ()),
    f"{_WATCH}/events": ("The event log, newest first.", Page, ("before", "kind", "text", "limit")),
    f"{_WATCH}/timings": ("Where the time went.", WatchTimings, ()),
    f"{_WATCH}/verification": ("Every receipt and the event log, checked now.", Verification, ()),
    f"{_WATCH}/logs": ("What programs printed; `of` is a part of the name.", tuple[Log, ...], ("of",)),
    f"{_WATCH}/log": ("The beginning and the end of one log.", Excerpt, ("name",)),
}


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = [*(answer for _, answer, _ in _READ.values()), Wish, Asked, Problem]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    *answers, wished, answered, _ = schemas
    # Its own description is a manual of the library that encodes it.
    components["Struct"] = {"type": "object", "description": _DETAILS}
    paths = {
        path: {"get": _operation(path, told, schema, query)}
        for (path, (told, _, query)), schema in zip(_READ.items(), answers, strict=True)
    }
    paths[f"{_WATCH}/stream"] = {"get": _operation(f"{_WATCH}/stream", _STREAM, None, ("after",))}
    wish = {"content": {"application/json": {"schema": wished}}, "required": True}
    asked = _operation(f"{_WATCH}/requests", _REQUESTS, answered, ())
    paths[f"{_WATCH}/requests"] = {"post": {**asked, "requestBody": wish}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Longwatch", "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


_DETAILS = "What only this kind of watch has, as values. Read them by name, and expect more names later."
_ABOUT = "What `longwatch web` answers. The key is the token in the address that it prints."
_PROBLEM = {
    "description": "Why there is no answer: 404 where there is no such watch, 409 where it cannot be read or done now.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_STREAM = "Server-sent events: `card` when the status changed, `event` for each new event, `trouble`."
_REQUESTS = "Ask for pause, resume or stop. Needs the header X-Longwatch, with any value."


def _operation(path: str, told: str, schema: dict[str, Any] | None, query: tuple[str, ...]) -> dict[str, Any]:
    named = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    inside = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named]
    asked = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in query]
    kind = "text/event-stream" if schema is None else "application/json"
    content = {kind: {"schema": schema or {"type": "string"}}}
    return {
        "summary": told,
        "parameters": [*inside, *asked],
        "responses": {"200": {"description": told, "content": content}, "4XX": _PROBLEM},
    }
