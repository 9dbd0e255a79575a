"""The process in which the tests of an answer run: `candidate` here is a function that asks the answer's process.

Its text follows `plain` and `pipes`. The nonce reaches only this process, and its report counts only with it.
"""

import builtins
import sys

from longwatch.learn.grading.pipes import Wire, confine
from longwatch.learn.grading.plain import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` costs more than a cell's start
    from typing import Any

# Raised inside `map` or a generator they would end the test's loop early, and silently: a cheat, not a result.
_ENDS_LOOPS = (StopIteration, StopAsyncIteration)


def main() -> None:
    """Run the tests and report."""
    confine()
    wire = Wire()
    wire.send('["ready"]')
    nonce, code, entry_point = wire.receive()
    why = _run(decode(code), entry_point, _candidate(wire))
    wire.send(f'["verdict",{encode(nonce)},{"false" if why else "true"},{encode(why)}]')
    wire.receive()


def _candidate(wire: Wire) -> "Any":
    def candidate(*arguments: "Any", **named: "Any") -> "Any":
        wire.send(f'["call",{encode(list(arguments))},{encode(named)}]')
        reply = wire.receive()
        if reply[0] == "value":
            return decode(reply[1])
        raise _exception(decode(reply[1]), decode(reply[2]))

    return candidate


def _exception(name: str, text: str) -> "Any":
    kind: Any = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = type(name, (Exception,), {})
    if issubclass(kind, _ENDS_LOOPS):
        return RuntimeError(f"the answer raised {name}")
    for base in kind.__mro__:
        try:
            return base(text)
        except TypeError:  # some of Python's own, such as UnicodeDecodeError, want more than a text
            continue
    return RuntimeError(text)


def _run(code: str, entry_point: str, candidate: "Any") -> str:
    module = type(sys)("tests")
    sys.modules["tests"] = module
    names = module.__dict__
    try:
        names[entry_point] = names["candidate"] = candidate
        exec(compile(code, "tests.py", "exec"), names)  # noqa: S102 - that is its purpose
        # The code may define the bare signature of the task, beside helpers that its tests need.
        names[entry_point] = candidate
        if "check" in names and entry_point != "check":
            names["check"](candidate)
    except BaseException as error:  # noqa: BLE001 - whatever the tests raise is their verdict
        return _told(error)
    return ""


def _told(error: BaseException) -> str:
    line = error.__traceback__
    place = 0
    while line is not None:
        place = line.tb_lineno if line.tb_frame.f_code.co_filename == "tests.py" else place
        line = line.tb_next
    return f"line {place} of the tests: {type(error).__name__}: {str(error)[:300]}".strip()
