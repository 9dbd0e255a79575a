"""Strict JSON documents that somebody else wrote: every fault of form at once, with its place. Pure.

What the standard library lets pass is refused: a key that stands twice, `NaN`, text that is not UTF-8.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn, TypeVar

import msgspec

from longwatch.kernel.config import Problem, at, conform

_MARK = b"\xef\xbb\xbf"
T = TypeVar("T", bound=msgspec.Struct)


class _LaxError(Exception):
    """What the standard library takes and we do not; never leaves this module."""


class _FormError(Exception):
    """Why the bytes are no document; never leaves this module."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.mend)
        self.problem = problem


def read(name: str, raw: bytes, wanted: type[T]) -> T | tuple[Problem, ...]:
    """Return the document as a `wanted`, or everything that is wrong with its form; `name` is the file's."""
    try:
        value = _decoded(name, raw)
    except _FormError as error:
        return (error.problem,)
    found = tuple(conform(value, wanted))
    if found:
        return tuple(Problem(f"{name}: {one.where}", one.mend) for one in found)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        return (Problem(name, f"does not have the form that is asked for: {error}"),)


def _decoded(name: str, raw: bytes) -> object:
    if raw.startswith(_MARK):
        raise _FormError(Problem(f"{name}: line 1", "begins with a byte order mark: save it without"))
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        where = f"{name}: line {line}"
        raise _FormError(Problem(where, "is not UTF-8 text: save it with the encoding UTF-8")) from error
    except json.JSONDecodeError as error:
        where = f"{name}: line {error.lineno}, column {error.colno}"
        what = error.msg.removesuffix(" at").removesuffix(" starting")
        raise _FormError(Problem(where, f"is no JSON: {what}")) from error
    except ValueError as error:
        # The one thing that the standard library refuses besides: thousands of digits.
        raise _FormError(Problem(name, "holds a number with too many digits: shorten it")) from error
    except RecursionError as error:
        mend = "is nested too deeply: a document of this kind is flat"
        raise _FormError(Problem(name, mend)) from error
    except _LaxError as error:
        raise _FormError(Problem(name, str(error))) from error


def repeated(where: str, names: Iterator[str]) -> Iterator[Problem]:
    """Yield a problem for each name that stands more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(at(where, name), f"stands {count} times: keep one")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise _LaxError(f"has the key {twice[0]!r} twice in one object: keep one")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise _LaxError(f"holds {name}, which is no JSON: write a number")
