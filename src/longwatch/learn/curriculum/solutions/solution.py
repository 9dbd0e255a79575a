"""What reference solutions in one language are made of, and how they are put together. Pure.

In a text `@x` is the item, `@k` and `@m` are constants, `@a` stands for all items.
"""

from collections.abc import Mapping

import msgspec

from longwatch.learn.curriculum.dialects import Filled

_ORDERED = frozenset({"list", "reversed", "first", "last", "joined", "dashed", "longest"})
"""What depends on the order in which items come."""
_RESULTS = "results"
"""What a loop gathers results in."""


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a language in which items are gone through one by one."""

    before: str
    keep: str
    """`@kept`: the condition; `@line`: what is done."""
    made: str
    """What is done with `@made`."""
    end: str


class Solutions(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of references in one language."""

    classics: str
    """The file of the functions that are written by hand."""
    items: Mapping[str, str]
    """By family and name: all items, or the first line of a loop over them. One that is missing cannot be had there."""
    helpers: Mapping[str, str] = {}
    """What stands before, by family and name."""
    keeps: Mapping[str, str]
    """By the kind of the items and the name."""
    eaches: Mapping[str, str]
    finishes: Mapping[str, str]
    """By what they get, `number` or `text`, and the name."""
    kept: str = ""
    """All items for which `@made` is true."""
    made: str = ""
    """What `@made` makes of all items."""
    loop: Loop | None = None
    """Instead of both."""
    unordered: frozenset[str] = frozenset()
    """Items that come in no order in this language: what depends on it has no answer there."""
    indent: str


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The names of what a composed problem is made of."""

    items: str
    """Family and name."""
    item: str
    """The variable's name, as it stands in code."""
    kind: str
    keep: str
    """Empty: all items stay."""
    each: str
    """Empty: they stay as they are."""
    gives: str
    finish: str


def body(solutions: Solutions, parts: Parts, constants: Mapping[str, str]) -> str | None:
    """Return the lines of a function; `None`: it cannot be had in this language."""
    source = solutions.items.get(parts.items)
    if source is None or (parts.items in solutions.unordered and parts.finish in _ORDERED):
        return None
    keep = solutions.keeps[f"{parts.kind}.{parts.keep}"] if parts.keep else ""
    each = solutions.eaches[f"{parts.kind}.{parts.each}"] if parts.each else ""
    if solutions.loop is None:
        lines, results = "", _chained(solutions, source, keep, each)
    else:
        lines, results = _looped(solutions.loop, source, keep, each, solutions.indent), _RESULTS
    finish = Filled(solutions.finishes[f"{parts.gives}.{parts.finish}"]).safe_substitute(a=results)
    helper = solutions.helpers.get(parts.items, "").lstrip("\n")
    return Filled(f"{helper}{lines}{finish}").substitute(constants, x=parts.item)


def _chained(solutions: Solutions, source: str, keep: str, each: str) -> str:
    for form, made in ((solutions.kept, keep), (solutions.made, each)):
        if made:
            source = Filled(form).safe_substitute(a=source, made=made)
    return source


def _looped(loop: Loop, source: str, keep: str, each: str, indent: str) -> str:
    """Lines that gather the results."""
    line = Filled(loop.made).safe_substitute(made=each or "@x")
    if keep:
        line = Filled(loop.keep).safe_substitute(kept=keep, line=indented(line, indent))
    return f"{loop.before}\n{source}\n{indented(line, indent)}\n{loop.end}\n"


def indented(text: str, indent: str) -> str:
    """Return the lines one step further in; empty ones stay empty."""
    return "\n".join(f"{indent}{line}" if line else line for line in text.split("\n"))
