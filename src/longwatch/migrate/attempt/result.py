"""The worker's answer: its schema, and the pure rule that reads it. An answer is a claim and nothing more.

Everything that is wrong is said at once (specification M13): a worker that is told one fault at a time needs as many
attempts as there are faults.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from longwatch.migrate.declared import Declared
from longwatch.migrate.names import bad_path

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

MAX_RESULT_BYTES = 1024 * 1024
MAX_TEXT = 4000
MAX_PATHS = 10_000
_MAX_NAMED = 50
_MAX_MESSAGE = 300
_NEVER = frozenset({".git", ".longwatch"})


class Status(StrEnum):
    """What the worker says that it did."""

    DONE = "done"
    NO_CHANGE = "no_change"
    BLOCKED = "blocked"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A well-formed answer of this attempt."""

    status: Status
    summary: str
    changed: tuple[str, ...] = ()
    reason: str = ""
    declared: Declared | None = None


def _listed(description: str, items: object = None) -> dict[str, object]:
    return {"type": "array", "items": items or {"type": "string"}, "description": description}


def _closed(properties: dict[str, object]) -> dict[str, object]:
    """Providers that enforce a schema want every property to be required, and know few other keywords."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


_TEXT = {"type": "string"}
_DECLARED: dict[str, object] = {
    "units": _listed("Units of the inventory that this change ports."),
    "routes": _listed("Routes of the catalog that lead to them."),
    "references": _listed("Source files that decided what is right, relative to the source root."),
    "cases": _listed(
        "Every behaviour that the checks will show.",
        _closed(
            {"id": _TEXT, "kind": _TEXT, "runtime": _TEXT, "check": _TEXT, "units": _listed("Its units.")}
        ),
    ),
    "artifacts": _listed(
        "Products that the checks build or that the change brings, by kind.",
        _closed({"path": _TEXT, "kind": _TEXT}),
    ),
}
"""What is declared where the profile has cases."""
RESULT_SCHEMA = msgspec.json.encode(
    {
        # No "$schema": Claude Code 2.1.197 silently drops a schema that names draft 2020-12.
        "type": "object",
        "additionalProperties": False,
        # Providers that enforce a schema want every property to be required, and know few other keywords.
        "required": ["nonce", "status", "summary", "changed", "reason"],
        "properties": {
            "nonce": {"type": "string", "description": "The nonce of this attempt, copied from the prompt."},
            "status": {"type": "string", "enum": [status.value for status in Status]},
            "summary": {"type": "string", "description": "What was done, in one to three sentences."},
            "changed": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Every file that was added, changed or deleted, relative to the repository.",
            },
            "reason": {
                "type": "string",
                "description": "Why no change is needed, or what blocks the work; empty if it is done.",
            },
        },
    }
)
"""The JSON Schema, as the bytes that a worker is given."""
_PLAIN = msgspec.json.decode(RESULT_SCHEMA)
CASES_SCHEMA = msgspec.json.encode(
    {
        **_PLAIN,
        "required": [*_PLAIN["required"], *_DECLARED],
        "properties": {**_PLAIN["properties"], **_DECLARED},
    }
)
"""The same where the profile has cases."""


@functools.cache
def _validator(*, cases: bool) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to load, and most answers are right

    return Draft202012Validator(msgspec.json.decode(CASES_SCHEMA if cases else RESULT_SCHEMA))


def read_result(raw: bytes, nonce: str, *, cases: bool = False) -> Result | tuple[str, ...]:
    """Return the answer, or every reason why it is none; with `cases`, what it declares too. Pure; survives any bytes."""
    if len(raw) > MAX_RESULT_BYTES:
        return (f"the result is larger than {MAX_RESULT_BYTES} bytes: keep it short",)
    value, repeated = _parse(raw)
    if isinstance(value, _NoJson):
        return (value.reason,)
    wrong = (
        *(f"{key}: stands there twice" for key in repeated),
        *_schema_violations(value, cases=cases),
        *_rule_violations(value if isinstance(value, dict) else {}, nonce),
    )
    if wrong:
        more = (f"and {len(wrong) - _MAX_NAMED} more",) if len(wrong) > _MAX_NAMED else ()
        return (*wrong[:_MAX_NAMED], *more)
    read = msgspec.convert(value, Result)
    return msgspec.structs.replace(read, declared=msgspec.convert(value, Declared)) if cases else read


class _NoJson(msgspec.Struct, frozen=True):
    reason: str


def _parse(raw: bytes) -> tuple[object, tuple[str, ...]]:
    """Return the JSON value, and the keys that stand twice: the standard library takes the last one silently."""
    repeated: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        repeated.extend(_shown(key) for key in _repeated(key for key, _ in found))
        return dict(found)

    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=pairs), tuple(repeated)
    except UnicodeDecodeError as error:
        return _NoJson(f"the result is not UTF-8 (byte {error.start})"), ()
    except ValueError as error:
        return _NoJson(f"the result is not JSON: {error}"), ()
    except RecursionError:
        return _NoJson("the result is nested too deeply"), ()


def _schema_violations(value: object, *, cases: bool) -> Iterator[str]:
    if not cases and _fits(value):
        return
    # A megabyte of nonsense has half a million errors.
    for error in islice(_validator(cases=cases).iter_errors(value), 2 * _MAX_NAMED):
        place = ".".join(str(part) for part in error.absolute_path) or "the result"
        yield f"{place}: {_shown(error.message)}"


def _fits(value: object) -> bool:
    """True if the plain schema has nothing to say: it wants every property, no other, and the types of `Result`."""
    if not isinstance(value, dict) or value.keys() != _PLAIN["properties"].keys():
        return False
    try:
        msgspec.convert(value, Result)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return False
    return isinstance(value["nonce"], str)


def _rule_violations(value: dict[str, object], nonce: str) -> Iterator[str]:
    """What no schema says. Parts of the wrong type are left to the schema."""
    given = value.get("nonce")
    if isinstance(given, str) and given != nonce:
        yield "nonce: it is not this attempt's, so this is the result of an earlier attempt or an invented one"
    for key in ("summary", "reason"):
        yield from _text_violations(key, value.get(key))
    changed = value.get("changed")
    paths = [path for path in changed if isinstance(path, str)] if isinstance(changed, list) else []
    yield from _path_violations(paths)
    yield from _status_violations(value, paths)


def _text_violations(key: str, text: object) -> Iterator[str]:
    if not isinstance(text, str):
        return
    if len(text) > MAX_TEXT:
        yield f"{key}: {len(text)} characters; at most {MAX_TEXT} are allowed"
    if any(not (char.isprintable() or char in "\n\t") for char in text):
        yield f"{key}: it holds control characters; plain text only"
    if key == "summary" and not text.strip():
        yield "summary: it is empty; say what was done"


def _status_violations(value: dict[str, object], paths: list[str]) -> Iterator[str]:
    status, reason = value.get("status"), value.get("reason")
    if status in (Status.NO_CHANGE, Status.BLOCKED) and isinstance(reason, str) and not reason.strip():
        yield f"reason: status {status} needs one"
    if status == Status.NO_CHANGE and paths:
        yield "changed: status no_change goes with an empty list"
    if status == Status.DONE and value.get("changed") == []:
        yield "changed: status done needs at least one file; where nothing had to change, the status is no_change"


def _path_violations(paths: list[str]) -> Iterator[str]:
    if len(paths) > MAX_PATHS:
        yield f"changed: {len(paths)} paths; at most {MAX_PATHS} are allowed"
        return
    for path in paths:
        if wrong := _bad(path):
            yield f"changed: {_shown(repr(path))} {wrong}"
    yield from (f"changed: {_shown(repr(path))} stands there twice" for path in _repeated(paths))


def _bad(path: str) -> str:
    if wrong := bad_path(path):
        return wrong
    if any(not char.isprintable() for char in path):
        return "must not have control characters or broken text"
    if PurePosixPath(path).as_posix() != path or path == ".":
        return "must be written plainly: no `./`, no `//`, no `/` at the end"
    if any(part.lower() in _NEVER for part in path.split("/")):
        return "must not name .git or .longwatch: they are never the worker's"
    return ""


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _shown(text: str) -> str:
    """Printable and bounded: it goes into a log and into the next prompt."""
    plain = "".join(char if char.isprintable() else "?" for char in text[: 2 * _MAX_MESSAGE])
    return plain if len(plain) <= _MAX_MESSAGE else plain[:_MAX_MESSAGE] + "..."
