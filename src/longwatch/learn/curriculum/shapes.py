"""What kind of values a parameter takes, and a function returns: inferred from all of them, for languages with types. Pure."""

from collections.abc import Iterable

import msgspec

from longwatch.learn.tasks import Json

NOTHING, NULL, BOOL, INT, FLOAT, TEXT, LIST, DICT, MIXED = (
    "nothing",
    "null",
    "bool",
    "int",
    "float",
    "text",
    "list",
    "dict",
    "mixed",
)
_SCALARS = {bool: BOOL, int: INT, float: FLOAT, str: TEXT, type(None): NULL}


class Shape(msgspec.Struct, frozen=True):
    """A kind of values. `nothing` is what an empty list holds; `mixed` has no name in most languages."""

    kind: str
    of: "Shape | None" = None
    """What a list holds, or the values of a dictionary, whose keys are strings."""


def shape_of(values: Iterable[Json]) -> Shape:
    """Return the narrowest shape that all these values have."""
    found = Shape(NOTHING)
    for value in values:
        found = _both(found, _one(value))
    return found


def _one(value: Json) -> Shape:
    if isinstance(value, list | tuple):
        return Shape(LIST, shape_of(value))
    if isinstance(value, dict):
        return Shape(DICT, shape_of(value.values()))
    return Shape(_SCALARS[type(value)])


def _both(left: Shape, right: Shape) -> Shape:
    if left == right or right.kind == NOTHING:
        return left
    if left.kind == NOTHING:
        return right
    if left.kind == right.kind and left.of is not None and right.of is not None:
        return Shape(left.kind, _both(left.of, right.of))
    return Shape(FLOAT) if {left.kind, right.kind} == {INT, FLOAT} else Shape(MIXED)
