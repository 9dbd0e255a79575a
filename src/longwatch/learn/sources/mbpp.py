"""MBPP: 974 short Python problems. Ids 1 to 10 and 511 to 974 may be curriculum; the rest is for evaluation."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.learn import splits
from longwatch.learn.normalised import parse
from longwatch.learn.sources import asking, pinned
from longwatch.learn.sources.source import LeftOut, Row
from longwatch.learn.tasks import Language, Program, Split, Task

_EVALUATION = range(11, 511)
HELD_BACK = "kept for evaluation (ids 11 to 510)"
PROVENANCE = "a public set, published under CC-BY-4.0 and pinned by digest; no person's prompts, files or conversations are read"
_LEVEL = 2


class _Record(msgspec.Struct, frozen=True):
    text: str
    code: str
    task_id: int
    test_setup_code: str
    test_list: tuple[str, ...]


class Mbpp:
    """MBPP as a curriculum: row `i` is id `i` + 1."""

    name = "mbpp"
    revision = pinned.MBPP.revision
    digest = pinned.MBPP.sha256
    provenance = PROVENANCE

    def __init__(self, folder: Path) -> None:
        """Read a copy below `folder`.

        Raises:
            NotReadyError, IntegrityError: as `pinned.read`.
        """
        self._records = _records(folder)

    @property
    def length(self) -> int:
        """How many problems there are, those for evaluation included."""
        return len(self._records)

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """The rows from `start` up to, not including, `end`."""
        for number, record in enumerate(self._records[start:end], start):
            if may_teach(record.task_id):
                yield Row(number=number, tasks=(_task(record, splits.side_of(origin(record.task_id))),))
            else:
                yield Row(number=number, left_out=(LeftOut(f"{origin(record.task_id)}.python", HELD_BACK),))


def evaluation(folder: Path) -> tuple[Task, ...]:
    """The 500 tasks that never are curriculum, as an audit.

    Raises:
        NotReadyError, IntegrityError: as `pinned.read`.
    """
    return tuple(_task(record, Split.AUDIT) for record in _records(folder) if not may_teach(record.task_id))


def may_teach(number: int) -> bool:
    """True if the problem with this id may be curriculum, in any language."""
    return number not in _EVALUATION


def origin(number: int) -> str:
    """The problem's name, the same in all its translations. Each problem is a repository of its own."""
    return f"mbpp.{number}"


def _records(folder: Path) -> tuple[_Record, ...]:
    records = msgspec.json.Decoder(_Record).decode_lines(pinned.read(pinned.MBPP, folder))
    return tuple(sorted(records, key=lambda record: record.task_id))


def _task(record: _Record, split: Split) -> Task:
    code = record.code.replace("\r\n", "\n").replace("\r", "\n") + "\n"
    name, signature = _entry(code, record.test_list)
    return Task(
        id=f"{origin(record.task_id)}.python",
        problem=origin(record.task_id),
        repository=origin(record.task_id),
        family="mbpp",
        language=Language.PYTHON,
        level=_LEVEL,
        split=split,
        prompt=asking.ask(Language.PYTHON, signature, sentence(record.text), _examples(record.test_list)),
        entry_point=name,
        tests=Program(code="\n".join((record.test_setup_code, *record.test_list)).strip() + "\n"),
        reference=code,
    )


def sentence(text: str) -> str:
    """A description without line breaks, with a full stop."""
    joined = re.sub(r"\s+", " ", text).strip()
    return joined if joined.endswith((".", "?", "!")) else f"{joined}."


def _examples(tests: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"this holds: `{test.removeprefix('assert ')}`" for test in tests[:1])


def _entry(code: str, tests: tuple[str, ...]) -> tuple[str, str]:
    """The function that the tests call, and its signature."""
    defined = {
        node.name: f"{node.name}({ast.unparse(node.args)})"
        for node in ast.walk(parse(code))
        if isinstance(node, ast.FunctionDef)
    }
    called = [
        node.func.id
        for test in tests
        for node in ast.walk(parse(test))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    name = next(name for name in called if name in defined)
    return name, defined[name]
