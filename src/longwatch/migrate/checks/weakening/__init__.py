"""What a change took from the tests that were there (M22): named findings, from the text of both versions. Pure.

Python is read by its syntax tree, other languages by the usual form of tests, assertions and markers. The rule errs on
the strict side: an assertion that says something else is a lost one, and a card may allow it. A renamed or moved test
is no deleted one as long as a new test proves the same.
"""

import re
from collections.abc import Iterator

from longwatch.migrate.checks.weakening import python, reaching, text_model
from longwatch.migrate.checks.weakening.finding import Finding, Kind, lost, shortened
from longwatch.migrate.checks.weakening.python_model import UNREADABLE, Module

__all__ = ["Finding", "Kind", "findings", "suspicious"]

MAX_CHARACTERS = 4_000_000
_PYTHON = (".py", ".pyi", ".pyw")
_SNAPSHOT = re.compile(r".*\.(?:snap|ambr|approved\.\w+|golden|expected|stdout|stderr)")
_ENDS_THE_RUN = re.compile(
    r"(?:os\.(?:_exit|abort|kill|killpg)|atexit\.|_exit|signal\.|sys\.(?:settrace|setprofile|modules)).*|.* at import"
    r"|def (?:pytest_\w+|load_tests)|pytest_plugins.*"
)
# Tests of programs that use signals are no exception; one that ends the process or patches the runner is.
_ENDS_ALL = re.compile(
    r"(?:os\.abort|(?:.*\.)?_exit|atexit\.|sys\.(?:settrace|setprofile)|gc\.get_).*|(?:pytest|_pytest|unittest)\..*=.*|.* at import"
    r"|def (?:pytest_\w+|load_tests)|pytest_plugins.*"
    r"|.*\bprocess\.(?:exit|reallyExit|abort)\b.*|.*\bprocess\.exitCode\s*=.*",
    re.DOTALL,
)


def findings(path: str, before: str | None, after: str | None) -> tuple[Finding, ...]:
    """Return how a test file proves less than before; a new file can only end the run of all others. `None` is no file."""
    if before is None:
        return _ending(path, after or "")
    if after is None:
        return (Finding(Kind.DELETED_FILE, path, "", "the file is gone"),)
    if before == after:
        return ()
    if len(after) > MAX_CHARACTERS:
        return (Finding(Kind.UNPARSABLE, path, "", f"more than {MAX_CHARACTERS} characters; split it"),)
    return tuple(dict.fromkeys(_compared(path, before, after)))


def _ending(path: str, text: str) -> tuple[Finding, ...]:
    ends = dict.fromkeys(found for found in _reaching(path, text) if _ENDS_ALL.fullmatch(found))
    return tuple(Finding(Kind.REACHES_INTO_TESTS, path, "", shortened(found)) for found in ends)


def suspicious(path: str, before: str | None, after: str) -> tuple[Finding, ...]:
    """Return where a file that is no test reaches into the test runner and did not before; `None` is a new file."""
    new = lost(_reaching(path, after), _reaching(path, before) if before is not None else ())
    return tuple(Finding(Kind.REACHES_INTO_TESTS, path, "", shortened(found)) for found in dict.fromkeys(new))


def _reaching(path: str, text: str) -> Iterator[str]:
    text = text[:MAX_CHARACTERS]
    return (
        reaching.python(text)
        if path.endswith(_PYTHON)
        else reaching.text(path.rpartition(".")[2].lower(), text)
    )


def _compared(path: str, before: str, after: str) -> Iterator[Finding]:
    language = text_model.language_of(path)
    if path.endswith(_PYTHON):
        yield from _python(path, before, after)
    elif _SNAPSHOT.fullmatch(path):
        for block in lost(before.split("\n\n"), after.split("\n\n")):
            yield Finding(Kind.LOST_ASSERTION, path, "", shortened(block))
    elif language is not None:
        yield from _text(path, before, after, language)


def _python(path: str, before: str, after: str) -> Iterator[Finding]:
    try:
        old = python.read(before)
    except UNREADABLE:
        return  # nothing is known about what it proved
    try:
        new = python.read(after)
        yield from python.compare(path, old, new)
    except UNREADABLE as error:
        yield Finding(Kind.UNPARSABLE, path, "", shortened(f"{type(error).__name__}: {error}"))
        return
    for found in lost(reaching.python(after), reaching.python(before)):
        if _ENDS_THE_RUN.fullmatch(found):
            yield Finding(Kind.REACHES_INTO_TESTS, path, "", shortened(found))


def _text(path: str, before: str, after: str, language: text_model.Language) -> Iterator[Finding]:
    old, new = text_model.read(before, language), text_model.read(after, language)
    yield from python.compare(path, _module(old), _module(new))
    for line in lost(new.markers, old.markers):
        yield Finding(Kind.SKIPPED_TEST, path, "", shortened(line))
    for row in lost(old.rows, new.rows):
        yield Finding(Kind.FEWER_CASES, path, "", shortened(row))


def _module(model: text_model.TextModel) -> Module:
    return Module(functions=model.functions, classes={}, hidden=())
