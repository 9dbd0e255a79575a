"""The queue's pointer: a Markdown file whose one table with the configured headings names the current task. Pure."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.kernel.config import Problem, at, refuse
from longwatch.migrate.names import bad_id
from longwatch.migrate.profiles import QueueSettings
from longwatch.migrate.queue.forms import bad_file

POINTER_BYTES = 256 * 1024
NONE = "none"
"""In place of a task and its card: the queue is at its end."""
_RULE = re.compile(r":?-+:?")
_FENCE = re.compile(r" {0,3}(```|~~~)")


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """What the pointer says. At the end of the queue `task` and `card` are empty."""

    task: str
    card: str
    parent: str
    line: int
    """Of the row, counted from 1."""

    @property
    def ended(self) -> bool:
        """True if there is no current task."""
        return not self.task


class _Row(msgspec.Struct, frozen=True):
    line: int
    cells: tuple[str, ...]


def parse(raw: bytes, queue: QueueSettings) -> Pointer:
    """Return what the pointer file says.

    Raises:
        ConfigError: it is damaged; the message names file, line, value and mend.
    """
    text = _decoded(raw, queue.pointer)
    columns = (queue.task_column, queue.card_column, queue.parent_column)
    tables = [table for table in _tables(text) if set(columns) <= set(table[0].cells)]
    if len(tables) != 1:
        named = ", ".join(repr(column) for column in columns)
        how = (
            "no table"
            if not tables
            else f"{len(tables)} tables (lines {', '.join(str(t[0].line) for t in tables)})"
        )
        refuse(
            queue.pointer,
            [Problem(f"{how} with the columns {named}", "exactly one must name the current task")],
        )
    head, *rows = tables[0]
    refuse(queue.pointer, _row_problems(head, rows, columns))
    row = rows[0]
    values = [_plain(row.cells[head.cells.index(column)]) for column in columns]
    refuse(queue.pointer, _value_problems(row.line, columns, values))
    task, card, parent = ("" if value == NONE else value for value in values)
    return Pointer(task=task, card=card, parent=parent, line=row.line)


def _decoded(raw: bytes, name: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        refuse(name, [Problem(f"line {line}", "is not UTF-8 text: save it with the encoding UTF-8")])
        raise
    if "\0" in text:
        refuse(
            name,
            [
                Problem(
                    f"line {text.count(chr(10), 0, text.index(chr(0))) + 1}", "has a NUL character: remove it"
                )
            ],
        )
    return text


def _tables(text: str) -> Iterator[list[_Row]]:
    """Yield each table of a Markdown text, its heading first; what stands in a fence is no table."""
    table: list[_Row] = []
    fence = ""
    for number, line in enumerate([*text.splitlines(), ""], 1):
        mark = _FENCE.match(line)
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        if not fence and line.strip().startswith("|"):
            table.append(_Row(number, _cells(line)))
            continue
        if len(table) > 1 and all(_RULE.fullmatch(cell) for cell in table[1].cells):
            yield [table[0], *table[2:]]
        table = []


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))


def _plain(cell: str) -> str:
    return cell[1:-1].strip() if len(cell) > 1 and cell[0] == cell[-1] == "`" else cell


def _row_problems(head: _Row, rows: Sequence[_Row], columns: tuple[str, ...]) -> Iterator[Problem]:
    for column in columns:
        if head.cells.count(column) > 1:
            yield Problem(f"line {head.line}: column {column!r}", "stands twice: keep one")
    if not rows:
        yield Problem(
            f"line {head.line}", f"the table has no row: name the current task, or `{NONE}` at the end"
        )
    for row in rows[1:]:
        yield Problem(f"line {row.line}", "is a second row: there is one current task; keep one row")
    for row in rows:
        if len(row.cells) != len(head.cells):
            yield Problem(
                f"line {row.line}", f"has {len(row.cells)} cells where the heading has {len(head.cells)}"
            )


def _value_problems(line: int, columns: Sequence[str], values: Sequence[str]) -> Iterator[Problem]:
    task, card, parent = values
    for column, value, ended in ((columns[0], task, task == NONE), (columns[1], card, card == NONE)):
        if ended != (task == NONE):
            mend = f"must be `{NONE}` together with {columns[0]!r}, and only at the end of the queue"
            yield Problem(at(f"line {line}: {column}", value), mend)
    if task != NONE and bad_id(task):
        yield Problem(at(f"line {line}: {columns[0]}", task), bad_id(task))
    for column, path in ((columns[1], card), (columns[2], parent)):
        if not (path == NONE and column == columns[1]) and bad_file(path):
            yield Problem(at(f"line {line}: {column}", path), f"is no path of a file: {bad_file(path)}")
