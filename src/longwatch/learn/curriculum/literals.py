"""Plain data as literals of a language. Pure.

Whatever a text holds, its literal is that text: quotes, backslashes, line breaks and what a language would put a value
in the place of (`#{}`, `$`) are escaped.
"""

import math
from collections.abc import Mapping

import msgspec

from longwatch.learn.tasks import Json


class NoLiteralError(ValueError):
    """A value that a language cannot hold as it is; the message says what it is."""


class Literals(msgspec.Struct, frozen=True, kw_only=True):
    """How one language writes plain data."""

    null: str
    true: str = "true"
    false: str = "false"
    list_in: tuple[str, str] = ("[", "]")
    dict_in: tuple[str, str] = ("{", "}")
    pair: str = "{}: {}"
    escapes: Mapping[str, str] = {}
    """What is escaped beside quotes, backslashes and line breaks."""
    character: str = "\\u{{{:x}}}"
    """Any other character that cannot be printed, by its number."""
    largest: float = 2**63 - 1
    """The largest whole number that it holds exactly."""
    bytewise: bool = False
    """Its texts are bytes: outside ASCII, lengths, cases and characters are not what a problem says."""
    holes: bool = True
    """A list can hold null."""
    lists_as_keys: bool = False
    """A dictionary with the keys 0, 1, 2 and so on is the same as a list."""
    unusual_keys: frozenset[str] = frozenset()
    """Keys that a dictionary of this language cannot have."""


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(value: Json, style: Literals) -> str:
    """Return the value as code.

    Raises:
        NoLiteralError: the language has no value that is the same.
    """
    if isinstance(value, str):
        return _text(value, style)
    if isinstance(value, list | tuple):
        return _list(value, style)
    if isinstance(value, dict):
        return _dict(value, style)
    if value is None:
        return style.null
    if isinstance(value, bool):
        return style.true if value else style.false
    return _number(value, style)


def _number(value: Json, style: Literals) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise NoLiteralError(f"{value} is no literal")
    if isinstance(value, int) and abs(value) > style.largest:
        raise NoLiteralError(f"{value} is too large")
    return repr(value)


def _list(value: list[Json] | tuple[Json, ...], style: Literals) -> str:
    if None in value and not style.holes:
        raise NoLiteralError("a list with null in it")
    opening, closing = style.list_in
    return opening + ", ".join(literal(part, style) for part in value) + closing


def _dict(value: dict[str, Json], style: Literals) -> str:
    if style.unusual_keys & value.keys():
        raise NoLiteralError(f"a dictionary with the key {min(style.unusual_keys & value.keys())}")
    if style.lists_as_keys and value and value.keys() == {str(number) for number in range(len(value))}:
        raise NoLiteralError("a dictionary with the keys of a list")
    if None in value.values() and not style.holes:
        raise NoLiteralError("a dictionary with null in it")
    opening, closing = style.dict_in
    pairs = (style.pair.format(_text(key, style), literal(part, style)) for key, part in value.items())
    return opening + ", ".join(pairs) + closing


def _text(value: str, style: Literals) -> str:
    if style.bytewise and not value.isascii():
        raise NoLiteralError("a text outside ASCII")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise NoLiteralError("a text with half a character")
    return '"' + "".join(_character(char, style) for char in value) + '"'


def _character(char: str, style: Literals) -> str:
    found = style.escapes.get(char) or _ESCAPES.get(char)
    if found is None:
        found = char if char.isprintable() else style.character.format(ord(char))
    return found
