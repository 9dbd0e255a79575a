"""MBXP: MBPP's problems in six languages. An id that is for evaluation there is so here too.

In Python its tests are assertions, in JavaScript they become plain data. In the others they are one program with the answer:
what passes has said the nonce, and what is taught from is checked no better than that (docs/adr/0008).
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError
from longwatch.learn import splits
from longwatch.learn.grading import joining
from longwatch.learn.grading.languages import SCRIPTS
from longwatch.learn.sources import asking, mbpp, pinned
from longwatch.learn.sources.pinned import Pinned
from longwatch.learn.sources.source import LeftOut, Row
from longwatch.learn.tasks import Case, Cases, Json, Language, OneFile, Program, Task

FILES: Mapping[Language, Pinned] = {
    Language.PYTHON: pinned.MBXP_PYTHON,
    Language.JAVASCRIPT: pinned.MBXP_JAVASCRIPT,
    Language.JAVA: pinned.MBXP_JAVA,
    Language.CPP: pinned.MBXP_CPP,
    Language.RUBY: pinned.MBXP_RUBY,
    Language.PHP: pinned.MBXP_PHP,
}
_LEVEL = 2
_TOLERANCE = 1e-9
_HEAD = {
    Language.PYTHON: re.compile(r"^def (\w+ *\(.*\)) *:", re.MULTILINE),
    Language.JAVASCRIPT: re.compile(r"^function (\w+\(.*\)) \{", re.MULTILINE),
}
_PROMPT = re.compile(r"(?:irb|php ?)?>(?:>>)? ")
_VALUE = re.compile(r"^var (\w+) = (.*);$", re.MULTILINE)
_CALL = re.compile(r"^var x(\d+) = \w+\((.*)\);$", re.MULTILINE)


class _Record(msgspec.Struct, frozen=True):
    task_id: str
    prompt: str
    entry_point: str
    test: str
    description: str
    canonical_solution: str | None = None


class Mbxp:
    """MBXP as a curriculum: row `i` is id `i` + 1 in each of the languages."""

    name = "mbxp"
    revision = pinned.MBXP_PYTHON.revision
    length = 974
    provenance = mbpp.PROVENANCE

    def __init__(self, folder: Path, languages: tuple[Language, ...]) -> None:
        """Read copies below `folder`, one for each language and Python's, whose solutions are held against the benchmarks'.

        Raises:
            ConfigError: it has no such language.
            NotReadyError, IntegrityError: as `pinned.read`.
        """
        for language in languages:
            if language not in FILES:
                raise ConfigError(
                    f"[curriculum] languages: MBXP is used in {', '.join(FILES)}, not in {language}"
                )
        self.digest: Digest = digest.of_bytes(":".join(FILES[one].sha256 for one in languages).encode())
        self._records = {language: _records(language, folder) for language in languages}
        self._unasked = {one: _records(one, folder) for one in {Language.PYTHON} - {*languages}}

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """The rows from `start` up to, not including, `end`."""
        for number in range(start, min(end, self.length)):
            yield self._row(number)

    def _row(self, row: int) -> Row:
        found = _versions(self._records, row + 1)
        return Row(
            number=row,
            tasks=tuple(one for one in found if isinstance(one, Task)),
            left_out=tuple(one for one in found if isinstance(one, LeftOut)),
            kin=tuple(one for one in _versions(self._unasked, row + 1) if isinstance(one, Task)),
        )


def _versions(languages: Mapping[Language, Mapping[int, _Record]], number: int) -> list[Task | LeftOut]:
    return [
        _task(language, number, records[number])
        for language, records in languages.items()
        if number in records
    ]


def _records(language: Language, folder: Path) -> dict[int, _Record]:
    records = msgspec.json.Decoder(_Record).decode_lines(pinned.read(FILES[language], folder))
    return {int(record.task_id.rpartition("/")[2]): record for record in records}


def _task(language: Language, number: int, record: _Record) -> Task | LeftOut:
    origin = mbpp.origin(number)
    name = f"{origin}.mbxp.{language}"
    if not mbpp.may_teach(number):
        return LeftOut(name, mbpp.HELD_BACK)
    if not record.canonical_solution:
        return LeftOut(name, "no reference")
    if language in SCRIPTS:
        return _in_one_file(language, name, origin, record)
    tests = _tests(language, record.test)
    head = _HEAD[language].findall(record.prompt)
    if not head:
        return LeftOut(name, "its head cannot be read")
    if tests is None:
        return LeftOut(name, "its tests are not plain data")
    return _asked(
        language,
        name,
        origin,
        record,
        signature=head[-1],
        tests=tests,
        reference=record.prompt + record.canonical_solution,
    )


def _in_one_file(language: Language, name: str, origin: str, record: _Record) -> Task | LeftOut:
    given = record.prompt.rstrip("\n") + "\n"
    head = joining.head_in(given, record.entry_point.rpartition(".")[2], SCRIPTS[language])
    if not head:
        return LeftOut(name, "its head cannot be read")
    return _asked(
        language,
        name,
        origin,
        record,
        signature=head.strip().removesuffix("{").rstrip(),
        tests=OneFile(given=given, code=_code(language, record.test)),
        # In Java a class would be closed behind it.
        reference=joining.definition(f"{head}{record.canonical_solution}", SCRIPTS[language].closer) + "\n",
    )


def _code(language: Language, test: str) -> str:
    """The tests, built as those of MultiPL-E: they close what was given open, and end where a nonce can be said."""
    if language is Language.JAVA:
        return "    }\n}\n" + test.replace("class Main {", "class Problem {")
    if language is Language.CPP:
        return "}\n" + re.sub(r"return 0;\s*\}\s*\Z", "}\n", test)
    return f"require 'test/unit'\n{test}" if language is Language.RUBY else test


def _asked(
    language: Language,
    name: str,
    origin: str,
    record: _Record,
    *,
    signature: str,
    tests: Cases | Program | OneFile,
    reference: str,
) -> Task:
    return Task(
        id=name,
        problem=origin,
        repository=origin,
        family="mbxp",
        language=language,
        level=_LEVEL,
        split=splits.side_of(origin),
        prompt=asking.ask(language, signature, mbpp.sentence(record.description), _examples(record.prompt)),
        entry_point=record.entry_point.rpartition(".")[2],
        tests=tests,
        reference=reference,
    )


def _tests(language: Language, test: str) -> Cases | Program | None:
    return Program(code=test) if language is Language.PYTHON else _cases(test)


def _cases(test: str) -> Cases | None:
    """The calls of a JavaScript test as plain data (it wants a library that compares); `None` if they are not that."""
    values = dict(_VALUE.findall(test))
    calls = _CALL.findall(test)
    try:
        cases = tuple(
            Case(tuple(_literal(values[name]) for name in _names(arguments)), _literal(values[f"v{number}"]))
            for number, arguments in calls
        )
    except (KeyError, json.JSONDecodeError):
        return None
    return Cases(cases=cases, tolerance=_TOLERANCE) if cases else None


def _names(arguments: str) -> list[str]:
    return [name.strip() for name in arguments.split(",") if name.strip()]


def _literal(text: str) -> Json:
    value: Any = json.loads(text)
    return value


def _examples(prompt: str) -> tuple[str, ...]:
    """The first example of the comment."""
    lines = [line.strip().lstrip("*#").strip() for line in prompt.splitlines()]
    for line, result in pairwise(lines):
        call = _PROMPT.match(line)
        if call:
            return (f"`{line[call.end() :]}` returns `{result.removeprefix('=> ')}`",)
    return ()
