"""The queue's pointer: a Markdown file whose one table with the configured headings names the current task. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from longwatch.kernel.config import Problem, at, refuse
from longwatch.migrate.names import bad_id
from longwatch.migrate.profiles import QueueSettings
from longwatch.migrate.queue.forms import bad_file
from longwatch.migrate.queue.tables import Row, decoded, form_problems, plain, tables

NONE = "none"
"""In place of a task and its card: the queue is at its end."""


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


def parse(raw: bytes, queue: QueueSettings) -> Pointer:
    """Return what the pointer file says.

    Raises:
        ConfigError: it is damaged; the message names file, line, value and mend.
    """
    text = decoded(raw, queue.pointer)
    columns = (queue.task_column, queue.card_column, queue.parent_column)
    found = [table for table in tables(text) if set(columns) <= set(table[0].cells)]
    if len(found) != 1:
        named = ", ".join(repr(column) for column in columns)
        how = (
            "no table"
            if not found
            else f"{len(found)} tables (lines {', '.join(str(t[0].line) for t in found)})"
        )
        refuse(
            queue.pointer,
            [Problem(f"{how} with the columns {named}", "exactly one must name the current task")],
        )
    head, *rows = found[0]
    refuse(queue.pointer, (*form_problems(found[0], columns), *_row_problems(head, rows)))
    row = rows[0]
    values = [plain(row.cells[head.cells.index(column)]) for column in columns]
    refuse(queue.pointer, _value_problems(row.line, columns, values))
    task, card, parent = ("" if value == NONE else value for value in values)
    return Pointer(task=task, card=card, parent=parent, line=row.line)


def _row_problems(head: Row, rows: Sequence[Row]) -> Iterator[Problem]:
    if not rows:
        yield Problem(
            f"line {head.line}", f"the table has no row: name the current task, or `{NONE}` at the end"
        )
    for row in rows[1:]:
        yield Problem(f"line {row.line}", "is a second row: there is one current task; keep one row")


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
