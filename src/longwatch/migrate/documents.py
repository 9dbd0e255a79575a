"""Strict JSON documents that somebody else wrote: every fault of form at once, with its place. Pure.

What the standard library lets pass is refused: a key that stands twice, `NaN`, text that is not UTF-8.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn, TypeVar

import msgspec

from longwatch.kernel.config import Problem, at, conform

T = TypeVar("T", bound=msgspec.Struct)


class _FormError(ValueError):
    """Why it is refused although the standard library takes it; never leaves this module."""


def read(name: str, raw: bytes, wanted: type[T]) -> T | tuple[Problem, ...]:
    """Return the document as a `wanted`, or everything that is wrong with its form; `name` is the file's."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return (Problem(f"{name}: line {line}", "is not UTF-8 text: save it with the encoding UTF-8"),)
    except json.JSONDecodeError as error:
        return (Problem(f"{name}: line {error.lineno}, column {error.colno}", f"is no JSON: {error.msg}"),)
    except _FormError as error:
        return (Problem(name, str(error)),)
    except RecursionError:
        return (Problem(name, "is nested too deeply: a document of this kind is flat"),)
    found = tuple(conform(value, wanted))
    if found:
        return tuple(Problem(f"{name}: {one.where}", one.mend) for one in found)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        return (Problem(name, f"does not have the form that is asked for: {error}"),)


def repeated(where: str, names: Iterator[str]) -> Iterator[Problem]:
    """Yield a problem for each name that stands more than once."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(at(where, name), f"stands {count} times: keep one")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise _FormError(f"has the key {twice[0]!r} twice in one object: keep one")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise _FormError(f"holds {name}, which is no JSON: write a number")
