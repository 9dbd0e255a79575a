"""The steps that pipelines are composed of: what to keep, what to make of each item, and what to return.

A step says the same thing in English, in Python and in JavaScript. `$x` is the item, `$k` (keep) and `$m` (each)
are constants, `$g` and `$l` are the items as a Python generator and list, `$a` as a JavaScript array.
"""

import msgspec

from longwatch.learn.tasks import Json

_LETTERS = tuple("abdeilmnorst")


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """Which items stay."""

    name: str
    words: str
    """Follows the items: *the numbers* that are even."""
    python: str
    javascript: str
    constants: tuple[Json, ...] = ()


class Each(msgspec.Struct, frozen=True, kw_only=True):
    """What is made of each item that stayed."""

    name: str
    noun: str
    """*the squares of* the numbers."""
    verb: str
    """*square each of them*."""
    python: str
    javascript: str
    constants: tuple[Json, ...] = ()
    gives: str = "number"


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """What is returned of the results."""

    name: str
    noun: str
    """`$i` stands for the results: *the sum of $i*."""
    verb: str
    """*return their sum*."""
    python: str
    javascript: str
    plain: bool = False
    """It looks at no value: what was made of each item does not matter."""


NUMBER_KEEPS = (
    Keep(name="even", words="that are even", python="$x % 2 == 0", javascript="$x % 2 === 0"),
    Keep(name="odd", words="that are odd", python="$x % 2 != 0", javascript="$x % 2 !== 0"),
    Keep(name="positive", words="that are greater than zero", python="$x > 0", javascript="$x > 0"),
    Keep(name="negative", words="that are less than zero", python="$x < 0", javascript="$x < 0"),
    Keep(name="nonzero", words="that are not zero", python="$x != 0", javascript="$x !== 0"),
    Keep(
        name="above",
        words="that are greater than $k",
        python="$x > $k",
        javascript="$x > $k",
        constants=tuple(range(1, 16)),
    ),
    Keep(
        name="below",
        words="that are less than $k",
        python="$x < $k",
        javascript="$x < $k",
        constants=tuple(range(2, 17)),
    ),
    Keep(
        name="at_least",
        words="that are at least $k",
        python="$x >= $k",
        javascript="$x >= $k",
        constants=tuple(range(1, 16)),
    ),
    Keep(
        name="multiple",
        words="that are divisible by $k",
        python="$x % $k == 0",
        javascript="$x % $k === 0",
        constants=tuple(range(3, 10)),
    ),
    Keep(
        name="indivisible",
        words="that are not divisible by $k",
        python="$x % $k != 0",
        javascript="$x % $k !== 0",
        constants=tuple(range(3, 10)),
    ),
    Keep(
        name="other",
        words="that are not equal to $k",
        python="$x != $k",
        javascript="$x !== $k",
        constants=tuple(range(1, 10)),
    ),
)

NUMBER_EACHES = (
    Each(
        name="square",
        noun="the squares of",
        verb="square each of them",
        python="$x * $x",
        javascript="$x * $x",
    ),
    Each(
        name="cube",
        noun="the cubes of",
        verb="cube each of them",
        python="$x ** 3",
        javascript="$x ** 3",
    ),
    Each(
        name="negate",
        noun="the negatives of",
        verb="change the sign of each of them",
        python="-$x",
        javascript="-$x",
    ),
    Each(
        name="absolute",
        noun="the absolute values of",
        verb="take the absolute value of each of them",
        python="abs($x)",
        javascript="Math.abs($x)",
    ),
    Each(
        name="last_digit",
        noun="the last digits of",
        verb="take the last digit of each of them (never negative)",
        python="abs($x) % 10",
        javascript="Math.abs($x) % 10",
    ),
    Each(
        name="half",
        noun="the halves (rounded down) of",
        verb="halve each of them, rounded down",
        python="$x // 2",
        javascript="Math.floor($x / 2)",
    ),
    Each(
        name="times",
        noun="$m times each of",
        verb="multiply each of them by $m",
        python="$x * $m",
        javascript="$x * $m",
        constants=tuple(range(2, 10)),
    ),
    Each(
        name="plus",
        noun="$m plus each of",
        verb="add $m to each of them",
        python="$x + $m",
        javascript="$x + $m",
        constants=tuple(range(1, 13)),
    ),
    Each(
        name="minus",
        noun="each less $m of",
        verb="subtract $m from each of them",
        python="$x - $m",
        javascript="$x - $m",
        constants=tuple(range(1, 13)),
    ),
    Each(
        name="cap",
        noun="the smaller of $m and each of",
        verb="replace each of them that is greater than $m by $m",
        python="min($x, $m)",
        javascript="Math.min($x, $m)",
        constants=tuple(range(5, 15)),
    ),
)

NUMBER_FINISHES = (
    Finish(
        name="sum",
        noun="the sum of $i",
        verb="return their sum",
        python="return sum($g)",
        javascript="return $a.reduce((p, q) => p + q, 0);",
    ),
    Finish(
        name="count",
        noun="the number of $i",
        verb="return how many there are",
        python="return len($l)",
        javascript="return $a.length;",
        plain=True,
    ),
    Finish(
        name="list",
        noun="the list of $i in the same order",
        verb="return them as a list",
        python="return $l",
        javascript="return $a;",
    ),
    Finish(
        name="max",
        noun="the largest of $i, or 0 if there is none",
        verb="return the largest result, or 0 if there is none",
        python="return max($l, default=0)",
        javascript="const items = $a;\n  return items.length ? Math.max(...items) : 0;",
    ),
    Finish(
        name="min",
        noun="the smallest of $i, or 0 if there is none",
        verb="return the smallest result, or 0 if there is none",
        python="return min($l, default=0)",
        javascript="const items = $a;\n  return items.length ? Math.min(...items) : 0;",
    ),
    Finish(
        name="sorted",
        noun="the list of $i in ascending order",
        verb="return them as a list in ascending order",
        python="return sorted($g)",
        javascript="return [...$a].sort((p, q) => p - q);",
    ),
    Finish(
        name="reversed",
        noun="the list of $i in reverse order",
        verb="return them as a list in reverse order",
        python="return $l[::-1]",
        javascript="return [...$a].reverse();",
    ),
    Finish(
        name="distinct",
        noun="the number of different values among $i",
        verb="return how many different results there are",
        python="return len(set($g))",
        javascript="return new Set($a).size;",
    ),
    Finish(
        name="first",
        noun="the first of $i, or 0 if there is none",
        verb="return the first result, or 0 if there is none",
        python="items = $l\n    return items[0] if items else 0",
        javascript="const items = $a;\n  return items.length ? items[0] : 0;",
    ),
    Finish(
        name="last",
        noun="the last of $i, or 0 if there is none",
        verb="return the last result, or 0 if there is none",
        python="items = $l\n    return items[-1] if items else 0",
        javascript="const items = $a;\n  return items.length ? items[items.length - 1] : 0;",
    ),
)

WORD_KEEPS = (
    Keep(
        name="longer",
        words="that are longer than $k characters",
        python="len($x) > $k",
        javascript="$x.length > $k",
        constants=tuple(range(2, 8)),
    ),
    Keep(
        name="shorter",
        words="that are shorter than $k characters",
        python="len($x) < $k",
        javascript="$x.length < $k",
        constants=tuple(range(3, 9)),
    ),
    Keep(
        name="starting",
        words="that start with $k",
        python="$x.startswith($k)",
        javascript="$x.startsWith($k)",
        constants=_LETTERS,
    ),
    Keep(
        name="ending",
        words="that end with $k",
        python="$x.endswith($k)",
        javascript="$x.endsWith($k)",
        constants=_LETTERS,
    ),
    Keep(
        name="containing",
        words="that contain $k",
        python="$k in $x",
        javascript="$x.includes($k)",
        constants=_LETTERS,
    ),
    Keep(
        name="without",
        words="that do not contain $k",
        python="$k not in $x",
        javascript="!$x.includes($k)",
        constants=_LETTERS,
    ),
    Keep(
        name="even_length",
        words="whose length is even",
        python="len($x) % 2 == 0",
        javascript="$x.length % 2 === 0",
    ),
    Keep(
        name="capital",
        words="that start with a capital letter",
        python="$x[:1].isupper()",
        javascript="/^\\p{Lu}/u.test($x)",
    ),
)

WORD_EACHES = (
    Each(
        name="length",
        noun="the lengths of",
        verb="take the length of each of them",
        python="len($x)",
        javascript="$x.length",
    ),
    Each(
        name="upper",
        noun="the upper-case forms of",
        verb="turn each of them into upper case",
        python="$x.upper()",
        javascript="$x.toUpperCase()",
        gives="text",
    ),
    Each(
        name="lower",
        noun="the lower-case forms of",
        verb="turn each of them into lower case",
        python="$x.lower()",
        javascript="$x.toLowerCase()",
        gives="text",
    ),
    Each(
        name="backwards",
        noun="the reversed forms of",
        verb="reverse each of them",
        python="$x[::-1]",
        javascript="[...$x].reverse().join('')",
        gives="text",
    ),
    Each(
        name="initial",
        noun="the first characters of",
        verb="take the first character of each of them",
        python="$x[:1]",
        javascript="$x.slice(0, 1)",
        gives="text",
    ),
    Each(
        name="final",
        noun="the last characters of",
        verb="take the last character of each of them",
        python="$x[-1:]",
        javascript="$x.slice(-1)",
        gives="text",
    ),
    Each(
        name="suffix",
        noun="$m appended to each of",
        verb="append $m to each of them",
        python="$x + $m",
        javascript="$x + $m",
        constants=("!", "?", "-", "_", "s", "ing", ".txt"),
        gives="text",
    ),
)
