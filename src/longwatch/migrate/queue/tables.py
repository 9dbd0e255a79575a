"""Tables in Markdown texts, as GitHub reads them; what stands in a fence is no table. Pure."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.kernel.config import Problem, refuse

_RULE = re.compile(r":?-+:?")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_ESCAPED = "\\|"
"""A bar that belongs to a cell."""
_BAR = re.compile(r"(?<!\\)\|")


class Row(msgspec.Struct, frozen=True):
    """One line of a table."""

    line: int
    """Counted from 1."""
    cells: tuple[str, ...]


def decoded(raw: bytes, name: str) -> str:
    """Return the text of a Markdown file.

    Raises:
        ConfigError: it is none; the message names file, line and mend.
    """
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        refuse(name, [Problem(f"line {line}", "is not UTF-8 text: save it with the encoding UTF-8")])
        raise
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        refuse(name, [Problem(f"line {line}", "has a NUL character: remove it")])
    return text


def tables(text: str) -> Iterator[list[Row]]:
    """Yield each table, its heading first."""
    table: list[Row] = []
    fence = ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        mark = _FENCE.match(line)
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        if not fence and line.strip().startswith("|"):
            table.append(Row(number, _cells(line)))
            continue
        if len(table) > 1 and all(_RULE.fullmatch(cell) for cell in table[1].cells):
            yield [table[0], *table[2:]]
        table = []


def plain(cell: str) -> str:
    """Return what a cell says without the backticks around it."""
    return cell[1:-1].strip() if len(cell) > 1 and cell[0] == cell[-1] == "`" else cell


def form_problems(table: list[Row], columns: Sequence[str]) -> Iterator[Problem]:
    """Yield each column that stands twice, and each row that has not as many cells as the heading.

    `columns` are the headings that are looked for, as they stand in the table or as they are understood.
    """
    head, *rows = table
    for column in dict.fromkeys(columns):
        if max(head.cells.count(column), columns.count(column)) > 1:
            yield Problem(f"line {head.line}: column {column!r}", "stands twice: keep one")
    for row in rows:
        if len(row.cells) != len(head.cells):
            how = f"has {len(row.cells)} cells where the heading has {len(head.cells)}"
            yield Problem(
                f"line {row.line}", f"{how}: write one for each column; a bar in a cell is `{_ESCAPED}`"
            )


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith(_ESCAPED):
        inner = inner[:-1]
    return tuple(cell.strip().replace(_ESCAPED, "|") for cell in _BAR.split(inner))
