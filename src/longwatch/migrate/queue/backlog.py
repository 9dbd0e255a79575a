"""The backlog of a task: its jobs, as JSON or as a Markdown table, and what they cannot say (specification M3). Pure.

In a Markdown table the columns are the keys of a job, and one row is one job; lists are parted by commas, and an empty
cell is a key that is left out. A path that ends in `.md` is read as Markdown, any other as JSON.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import msgspec

from longwatch.kernel.config import Problem, at, conform, nearest
from longwatch.kernel.errors import ConfigError
from longwatch.migrate import documents
from longwatch.migrate.names import bad_id
from longwatch.migrate.queue.cards import bad_owned, bad_title
from longwatch.migrate.queue.forms import HANDOFF, Backlog, JobEntry, judged, priority_problems
from longwatch.migrate.queue.tables import Row, decoded, form_problems, plain, tables

_KEYS = {field.encode_name: field for field in msgspec.structs.fields(JobEntry)}
_REQUIRED = tuple(name for name, field in _KEYS.items() if field.required)
_LISTS = frozenset({"owned", "after", "units", "checks", "allow"})
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

Place = Callable[[int, str], str]
"""Where a key of the job with this number stands."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A backlog, and where its jobs stand in their file, for messages."""

    backlog: Backlog
    place: Place


def read(name: str, raw: bytes, task: str) -> Listed | tuple[Problem, ...]:
    """Return the backlog in `raw`, or everything that is wrong with its form; a table is that of the current task."""
    if PurePosixPath(name).suffix == ".md":
        return _table(name, raw, task)
    value = documents.read(name, raw, Backlog)
    if isinstance(value, tuple):
        return value
    return Listed(backlog=value, place=lambda number, key: f"{name}: jobs[{number}].{key}")


def problems(listed: Listed, priorities: tuple[str, ...]) -> Iterator[Problem]:
    """Yield what a backlog cannot say; `priorities` are the configured words."""
    jobs, place = listed.backlog.jobs, listed.place
    yield from _repeated(listed)
    known = {job.id for job in jobs}
    for number, job in enumerate(jobs):
        yield from judged(place(number, "id"), (job.id,), _bad_job)
        yield from judged(place(number, "title"), (job.title,), bad_title)
        if not job.owned:
            yield Problem(place(number, "owned"), "is empty: list the paths that this job may change")
        yield from judged(place(number, "owned"), job.owned, bad_owned)
        for other in job.after:
            if other not in known or other == job.id:
                yield Problem(at(place(number, "after"), other), "is no other job of this backlog: remove it")
        yield from priority_problems(place(number, "priority"), job.priority, priorities)


def _repeated(listed: Listed) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for number, job in enumerate(listed.backlog.jobs):
        where = listed.place(number, "id")
        first = seen.setdefault(job.id.lower(), where)
        if first != where:
            yield Problem(at(where, job.id), f"is the id of another job too ({first}): choose another")


def _bad_job(name: str) -> str:
    if name == HANDOFF:
        return "is the name of the job that finishes a task: choose another"
    return bad_id(name)


def _table(name: str, raw: bytes, task: str) -> Listed | tuple[Problem, ...]:
    try:
        text = decoded(raw, name)
    except ConfigError as error:
        return (Problem("backlog", str(error)),)
    found = [one for one in tables(text) if set(_REQUIRED) <= set(_columns(one[0]))]
    if len(found) != 1:
        return (_not_one(name, found),)
    head, *rows = found[0]
    columns = _columns(head)
    wrong = [*form_problems(found[0], columns), *_column_problems(head.line, columns)]
    jobs = () if wrong else tuple(_job(columns, row) for row in rows)
    for row, job in zip(rows, jobs, strict=False):
        wrong += [Problem(f"line {row.line}: {one.where}", one.mend) for one in conform(job, JobEntry)]
    if wrong:
        return tuple(Problem(f"{name}: {one.where}", one.mend) for one in wrong)
    entries = tuple(msgspec.convert(job, JobEntry) for job in jobs)
    return Listed(
        backlog=Backlog(task=task, jobs=entries),
        place=lambda number, key: f"{name}: line {rows[number].line}: {key}",
    )


def _columns(head: Row) -> tuple[str, ...]:
    return tuple(plain(cell).lower() for cell in head.cells)


def _not_one(name: str, found: list[list[Row]]) -> Problem:
    lines = ", ".join(str(one[0].line) for one in found)
    how = f"{len(found)} tables (lines {lines})" if found else "no table"
    named = ", ".join(repr(key) for key in _REQUIRED)
    return Problem(f"{name}: {how} with the columns {named}", "exactly one must list the jobs")


def _column_problems(line: int, columns: tuple[str, ...]) -> Iterator[Problem]:
    for column in columns:
        if column not in _KEYS:
            yield Problem(f"line {line}: column {column!r}", f"is no key of a job{nearest(column, _KEYS)}")


def _job(columns: tuple[str, ...], row: Row) -> dict[str, object]:
    cells = zip(columns, row.cells, strict=True)
    return {key: _value(key, cell) for key, cell in cells if cell or key in _REQUIRED}


def _value(key: str, cell: str) -> object:
    if key in _LISTS:
        return [plain(part.strip()) for part in cell.split(",") if part.strip()]
    text = plain(cell)
    return int(text) if key == "priority" and _WHOLE.fullmatch(text) else text
