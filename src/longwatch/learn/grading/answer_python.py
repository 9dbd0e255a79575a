"""The process in which an answer runs: it holds no test, no expected value and no solution.

Its text follows `plain` and `pipes`. What it says is only ever taken for the answer's own words.
"""

import sys

from longwatch.learn.grading.pipes import Wire, confine
from longwatch.learn.grading.plain import NotPlainError, decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than a cell's start
    from typing import Any


def main() -> None:
    """Load the answer, then serve calls until our process closes the pipe."""
    confine()
    wire = Wire()
    wire.send('["ready"]')
    source, entry_point = wire.receive()
    text, function = _load(decode(source), entry_point)
    wire.send(text)
    while True:
        arguments, named = map(decode, wire.receive())
        wire.send(_call(function, arguments, named))


def _load(source: str, entry_point: str) -> "Any":
    module = type(sys)("answer")
    sys.modules["answer"] = module
    try:
        exec(compile(source, "answer.py", "exec"), module.__dict__)  # noqa: S102 - that is its purpose
    except BaseException as error:  # noqa: BLE001 - whatever foreign code raises
        return _told("broken", error), None
    function = module.__dict__.get(entry_point)
    if not callable(function):
        return f'["broken","NameError",{encode(f"it defines no function {entry_point}")}]', None
    return '["loaded"]', function


def _call(function: "Any", arguments: "Any", named: "Any") -> str:
    try:
        return f'["value",{encode(function(*arguments, **named))}]'
    except NotPlainError as error:
        return f'["unplain",{encode(str(error))}]'
    except Exception as error:  # noqa: BLE001 - as above
        return _told("raised", error)
    except BaseException as error:  # noqa: BLE001 - exits and interrupts are no results
        return _told("left", error)


def _told(what: str, error: BaseException) -> str:
    try:
        text = str(error)[:500]
    except BaseException:  # noqa: BLE001 - the text of an exception is foreign code too
        text = ""
    return f'["{what}",{encode(type(error).__name__)},{encode(text)}]'
