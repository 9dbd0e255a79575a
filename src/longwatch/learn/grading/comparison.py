"""Cases: our own values as trees, and whether a foreign tree equals an expected value. Pure."""

import math

from longwatch.learn.grading.wire import Tree
from longwatch.learn.tasks import Json

_LARGEST_EXACT = 2**53


def tree_of(value: Json) -> Tree:
    """Return JSON data as a tree."""
    if isinstance(value, list | tuple):
        return ["l", *map(tree_of, value)]
    if isinstance(value, dict):
        return ["d", *(tree_of(part) for pair in value.items() for part in pair)]
    if isinstance(value, float) and not math.isfinite(value):
        return ["f", repr(value)]
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        return ["i", f"{value:x}"]
    if isinstance(value, str) and not _is_unicode(value):
        return ["s", value.encode("utf-8", "surrogatepass").hex()]
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def equal(tree: Tree, expected: Json, tolerance: float) -> bool:
    """True if the checked tree is the expected JSON value.

    Truth values equal only truth values, lists only lists (never tuples). Whole and broken numbers are compared by value,
    broken ones within the tolerance, absolute and relative; nan equals nan. Undefined equals nothing.
    """
    if isinstance(expected, list | tuple):
        return (
            _tag(tree) == "l"
            and len(tree) == len(expected) + 1
            and all(equal(part, wanted, tolerance) for part, wanted in zip(tree[1:], expected, strict=True))
        )
    if isinstance(expected, dict):
        return _equal_objects(tree, expected, tolerance)
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return _equal_numbers(_number(tree), expected, tolerance)
    if isinstance(expected, str):
        return bool(tree == tree_of(expected))
    return tree is expected


def _tag(tree: Tree) -> str | None:
    return tree[0] if isinstance(tree, list) else None


def _equal_objects(tree: Tree, expected: dict[str, Json], tolerance: float) -> bool:
    if _tag(tree) != "d" or len(tree) != 2 * len(expected) + 1:
        return False
    keys, values = tree[1::2], tree[2::2]
    if not all(isinstance(key, str) for key in keys):
        return False
    found = dict(zip(keys, values, strict=True))
    return found.keys() == expected.keys() and all(
        equal(found[key], wanted, tolerance) for key, wanted in expected.items()
    )


def _number(tree: Tree) -> int | float | None:
    if isinstance(tree, int | float) and not isinstance(tree, bool):
        return tree
    tag = _tag(tree)
    if tag == "f":
        return float(tree[1])
    whole = int(tree[1], 16) if tag in {"i", "n"} else None
    # A BigInt is the right answer only where a number could not be exact.
    return None if whole is None or (tag == "n" and abs(whole) <= _LARGEST_EXACT) else whole


def _equal_numbers(found: float | None, expected: float, tolerance: float) -> bool:
    if found is None:
        return False
    if found == expected or (found != found and expected != expected):  # noqa: PLR0124 - nan
        return True
    if isinstance(found, int) and isinstance(expected, int):
        return False
    return _close(found, expected, tolerance)


def _close(found: float, expected: float, tolerance: float) -> bool:
    try:
        return tolerance > 0 and math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
    except OverflowError:  # a whole number beyond every float
        return False
