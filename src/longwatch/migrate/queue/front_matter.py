"""The head of a task card: YAML as far as it is data. Pure.

Mappings, lists and plain text only. Anchors, aliases and tags are refused by name, nesting and size are bounded, and
a key that stands twice is refused instead of the last one winning. Every scalar comes out as text: what it means is
decided by the key that it belongs to, so an unquoted `007`, `1.10` or `no` stays what a person wrote.
"""

from collections.abc import Iterator
from typing import NoReturn, Protocol

import yaml

HEAD_BYTES = 64 * 1024
_DEPTH = 6
_FENCE = "---"

Tree = str | list["Tree"] | dict[str, "Tree"]


class _Place(Protocol):
    """What YAML calls a mark; both of its implementations have one."""

    @property
    def line(self) -> int: ...


class FrontMatterError(Exception):
    """Why a head cannot be read, with its line in the card; never leaves `cards`."""

    def __init__(self, line: int, mend: str) -> None:
        """`line` counts from 1 at the top of the card."""
        super().__init__(mend)
        self.line = line


def split(text: str) -> tuple[str, str]:
    """Return the head between the two `---` lines, and the body below them.

    Raises:
        FrontMatterError: one of the two lines is missing, or the head is too long.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise FrontMatterError(1, "the first line must be `---`: a card begins with its front matter")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise FrontMatterError(len(lines), "the front matter has no end: close it with a line `---`")
    head = "\n".join(lines[1:end])
    if len(head.encode()) > HEAD_BYTES:
        raise FrontMatterError(1, f"the front matter is longer than {HEAD_BYTES} bytes: move text below it")
    return head, "\n".join(lines[end + 1 :]).strip("\n")


def decode(head: str) -> dict[str, Tree]:
    """Return the head as nested mappings, lists and text.

    Raises:
        FrontMatterError: it is no YAML, no mapping, or uses what is refused here.
    """
    try:
        tree = _document(yaml.parse(head, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        hint = "; a value that begins with `*` needs quotes" if "alias" in (error.context or "") else ""
        line = _line(error.problem_mark or error.context_mark)
        raise FrontMatterError(line, f"is no valid YAML: {error.problem}{hint}") from error
    except yaml.YAMLError as error:
        raise FrontMatterError(1, "the front matter has a character that YAML does not allow") from error
    if not isinstance(tree, dict):
        raise FrontMatterError(2, "the front matter must be lines of the form `key: value`")
    return tree


def _document(events: Iterator[yaml.Event]) -> Tree:
    # Always: stream start, document start or stream end.
    next(events)
    if isinstance(next(events), yaml.StreamEndEvent):
        return {}
    tree = _node(next(events), events, 0)
    next(events)
    last = next(events)
    if not isinstance(last, yaml.StreamEndEvent):
        _stop(last, "a second document begins here: one card has one front matter")
    return tree


def _node(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Tree:
    _refuse_references(event)
    if depth > _DEPTH:
        _stop(event, f"is nested deeper than {_DEPTH} levels: a card is flat")
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, depth)
    if isinstance(event, yaml.SequenceStartEvent):
        return _sequence(events, depth)
    if not isinstance(event, yaml.ScalarEvent):
        _stop(event, "cannot be read here")
    return str(event.value)


def _mapping(events: Iterator[yaml.Event], depth: int) -> Tree:
    tree: dict[str, Tree] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _node(event, events, depth + 1)
        if not isinstance(key, str):
            _stop(event, "a key must be a word")
        if key in tree:
            _stop(event, f"the key `{key}` stands twice: keep one")
        tree[key] = _node(next(events), events, depth + 1)
    return tree


def _sequence(events: Iterator[yaml.Event], depth: int) -> Tree:
    tree: list[Tree] = []
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        tree.append(_node(event, events, depth + 1))
    return tree


def _refuse_references(event: yaml.Event) -> None:
    if isinstance(event, yaml.AliasEvent):
        _stop(event, "aliases (`*name`) are refused: write the value out, in quotes if it begins with `*`")
    if getattr(event, "anchor", None):
        _stop(event, "anchors (`&name`) are refused: write the value out, in quotes if it begins with `&`")
    if getattr(event, "tag", None):
        _stop(event, "tags (`!name`) are refused: write the value in quotes if it begins with `!`")


def _stop(event: yaml.Event, mend: str) -> NoReturn:
    raise FrontMatterError(_line(event.start_mark), mend)


def _line(mark: _Place | None) -> int:
    """Return the line in the card: the head's first line, YAML's line 0, is the card's line 2."""
    return mark.line + 2 if mark else 2
