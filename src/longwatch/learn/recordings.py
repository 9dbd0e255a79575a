"""Answers that somebody recorded, in the forms that are in use, as tasks and answers that can be graded here. Pure.

- A file of details, as DeepSeek-Coder's evaluation and Qwen's write it: by task, whole programs and their verdicts.
- MultiPL-E's results: a problem, and whole programs with a status. One object, or one a line.
- Lines of `{"task", "answer"}` (what a chat model said) or `{"task", "completion"}` (what goes on where the prompt ends),
  with `"passed"` where there is a verdict.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from longwatch.kernel.errors import ConfigError
from longwatch.learn.grading import extract
from longwatch.learn.tasks import Evaluator, Language, OneFile, Program, Task

_AFTER_TESTS = re.compile(r"\s*(?:\?>|check\(\w+\))?\s*")
_BEFORE_PYTHONS_TESTS = re.compile(r"^(?:METADATA = \{|def check\(candidate\):)", re.MULTILINE)
_NUMBER = re.compile(r"HumanEval[._/](\d+)")


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, as it is graded here."""

    task: Task
    answer: str
    passed: bool | None
    """What was recorded."""


class _Detail(msgspec.Struct, frozen=True):
    task_id: str
    code: str
    passed: bool


class _Result(msgspec.Struct, frozen=True):
    program: str
    status: str


class _Problem(msgspec.Struct, frozen=True):
    name: str
    results: tuple[_Result, ...]


class _Line(msgspec.Struct, frozen=True):
    task: str
    answer: str | None = None
    completion: str | None = None
    passed: bool | None = None


def read(data: bytes, name: str, tasks: Sequence[Task]) -> tuple[Recorded, ...]:
    """Return the answers in a file, each with its task; `name` is the file, for messages, `tasks` the benchmark's.

    Raises:
        ConfigError: it has none of the forms, names an unknown task, or holds a program of other prompts or tests.
    """
    known = {_number(task.problem): task for task in tasks}
    found = tuple(_details(data, name, known))
    if not found:
        raise ConfigError(f"{name}: there is no answer in it")
    return found


def _details(data: bytes, name: str, known: Mapping[str, Task]) -> Iterator[Recorded]:
    try:
        details = msgspec.json.decode(data, type=dict[str, tuple[tuple[int, _Detail], ...]])
    except msgspec.DecodeError:
        yield from _lines(data, name, known)
        return
    for _, detail in (pair for pairs in details.values() for pair in pairs):
        task = _task(detail.task_id, name, known)
        yield _of_program(detail.code, task, name, Evaluator.DEEPSEEK, passed=detail.passed)


def _lines(data: bytes, name: str, known: Mapping[str, Task]) -> Iterator[Recorded]:
    try:
        lines = _decoded(data)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{name}: it is no recording that is known here ({error}); `longwatch grade --help` tells the forms"
        ) from error
    for line in lines:
        match line:
            case _Problem():
                task = _task(line.name, name, known)
                for one in line.results:
                    passed = one.status == "OK"
                    yield _of_program(one.program, task, name, Evaluator.MULTIPL_E, passed=passed)
            case _Line():
                yield _of_line(line, _task(line.task, name, known), name)


def _decoded(data: bytes) -> Sequence[_Problem | _Line]:
    """One problem on many lines, or one record a line."""
    try:
        return (msgspec.json.decode(data, type=_Problem),)
    except msgspec.DecodeError:
        rows = [line for line in data.splitlines() if line.strip()]
        if rows and b'"results"' in rows[0]:
            return [msgspec.json.decode(row, type=_Problem) for row in rows]
        return [msgspec.json.decode(row, type=_Line) for row in rows]


def _task(named: str, name: str, known: Mapping[str, Task]) -> Task:
    task = known.get(_number(named))
    if task is None:
        raise ConfigError(f"{name}: {named!r} is no task of the benchmark in this language")
    return task


def _number(named: str) -> str:
    found = _NUMBER.match(named)
    return found[1] if found else named


def _of_line(line: _Line, task: Task, name: str) -> Recorded:
    if (line.answer is None) == (line.completion is None):
        raise ConfigError(f'{name}, {line.task}: give either "answer" or "completion"')
    if line.answer is not None:
        return Recorded(task=task, answer=extract(line.answer, task.language), passed=line.passed)
    return Recorded(task=task, answer=_going_on(line.completion or "", task), passed=line.passed)


def _going_on(completion: str, task: Task) -> str:
    """A completion as an answer: where answer and tests are two programs, what was given belongs to it."""
    if isinstance(task.tests, OneFile):
        return completion
    return f"{extract(task.prompt, task.language)}{completion}"


def _of_program(program: str, task: Task, name: str, evaluator: Evaluator, *, passed: bool) -> Recorded:
    """Take a whole program apart: what was given, what the model wrote, and the tests."""
    where = f"{name}, {task.id}"
    at = _tests_begin(program, task, where)
    if not isinstance(task.tests, OneFile):
        return Recorded(task=task, answer=program[:at], passed=passed)
    given = task.tests.given.rstrip("\n")
    start = program.find(given, 0, at)
    if start < 0:
        raise ConfigError(f"{where}: its program has not the prompt of the published benchmark")
    end = start + len(given)
    tests = OneFile(given=program[:end], code=program[at:], literal=True, evaluator=evaluator)
    return Recorded(task=msgspec.structs.replace(task, tests=tests), answer=program[end:at], passed=passed)


def _tests_begin(program: str, task: Task, where: str) -> int:
    if task.language is Language.PYTHON:
        found = _BEFORE_PYTHONS_TESTS.search(program)
        if found:
            return found.start()
    elif isinstance(task.tests, OneFile | Program):
        tests = task.tests.code.strip()
        at = program.rfind(tests)
        if at >= 0 and _AFTER_TESTS.fullmatch(program, at + len(tests)):
            return at
    raise ConfigError(f"{where}: its program does not end with the tests of the published benchmark")
