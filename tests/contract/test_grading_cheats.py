"""Answers that do not solve the task and want to pass all the same. Each must fail: not pass, and not be called our trouble."""

import os
import uuid
from pathlib import Path

import pytest

from longwatch.kernel.identity import snapshot
from longwatch.kernel.tree import own_children
from longwatch.learn.grading import Bounds, grade, relay
from longwatch.learn.tasks import Case, Cases, Language, Program, Split, Task, Verdict

# The number stands in the command line of every process that grading starts here: so what is left can be found.
MARK = 8 * 1024 * 1024 + 512 * (uuid.uuid4().int % 20_000)
BOUNDS = Bounds(cpu_s=1, wall_s=30.0, memory_bytes=256 * 1024 * 1024, tmp_bytes=MARK)
IMPATIENT = Bounds(cpu_s=1, wall_s=4.0, memory_bytes=256 * 1024 * 1024, tmp_bytes=MARK)

CASES = Cases(cases=(Case(([3, 1, 2, 3],), [1, 2, 3]), Case(([],), []), Case(([2, 1],), [1, 2])))
PROGRAMS = {
    Language.PYTHON: Program(
        code="""
def check(candidate):
    assert all(map(lambda pair: candidate(pair[0]) == pair[1], [([3, 1, 2, 3], [1, 2, 3]), ([5, 4], [4, 5])]))
    assert candidate([2, 1]) == [1, 2] and candidate([2, 1]) == [1, 2]
    try:
        candidate(None)
    except TypeError:
        pass
    else:
        raise AssertionError("None is no list")
"""
    ),
    Language.JAVASCRIPT: Program(
        code="""
const assert = require("assert");
assert.deepEqual(candidate([3, 1, 2, 3]), [1, 2, 3]);
assert.deepEqual(candidate([2, 1]), [1, 2]);
assert.throws(() => candidate(null));
"""
    ),
}
HONEST = {
    Language.PYTHON: "def order(values):\n    return sorted(set(values))\n",
    Language.JAVASCRIPT: "const order = (values) => [...new Set(values.slice())].sort((a, b) => a - b);\n",
}


def task(language: Language, tests: Cases | Program) -> Task:
    return Task(
        id="order",
        problem="order",
        repository="test",
        family="lists",
        language=language,
        split=Split.DEV,
        prompt="Write order(values): the distinct values in ascending order.",
        entry_point="order",
        tests=tests,
    )


def left_behind() -> list[str]:
    """Command lines of what grading in this test process started and what lives."""
    found = []
    for stat in snapshot():
        try:
            line = (
                Path(f"/proc/{stat.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
        except OSError:
            continue
        if f" {MARK} " in line and not stat.dead and stat.pid != os.getpid():
            found.append(line[:200])
    return found


PYTHON = {
    "exits while it loads": "import sys\nsys.exit(0)",
    "leaves at once while it loads": "import os\nos._exit(0)",
    "leaves at once when called": "import os\ndef order(values):\n    os._exit(0)",
    "exits when called": "def order(values):\n    raise SystemExit(0)",
    "interrupts": "def order(values):\n    raise KeyboardInterrupt",
    "ends loops early": "def order(values):\n    raise StopIteration",
    "closes generators": "def order(values):\n    raise GeneratorExit",
    "raises what the tests catch": "def order(values):\n    raise TypeError('None is no list')",
    "defines nothing": "",
    "is no function": "order = [1, 2, 3]",
    "does not parse": "def order(values:\n    return [1, 2, 3]",
    "prints markers": """
print('PASS', 'ok', '["verdict","",true,""]', flush=True)
def order(values):
    print('["value",["l",1,2,3]]', flush=True)
""",
    "writes to every descriptor": """
import os
def order(values):
    for number in range(256):
        try:
            os.write(number, b"ok")
        except OSError:
            pass
    return values
""",
    "forges a verdict on every descriptor": """
import os
def order(values):
    text = b'["verdict","00000000000000000000000000000000",true,""]'
    for number in range(256):
        try:
            os.write(number, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
    return values
""",
    "forges results ahead": """
import os
text = b'["value",["l",1,2,3]]'
for number in range(3, 32):
    try:
        os.write(number, 9 * (len(text).to_bytes(4, "big") + text))
    except OSError:
        pass
def order(values):
    return values
""",
    "equals everything": """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __iter__(self): return iter([1, 2, 3])
    def __len__(self): return 3
def order(values):
    return Any()
""",
    "is a list that equals everything": """
class Any(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = None
def order(values):
    return Any(values)
""",
    "holds numbers that equal everything": """
class Any(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __add__(self, other): return 1
    def __str__(self): return '1'
    __repr__ = __str__
def order(values):
    return [Any(value) for value in values or [0]]
""",
    "lies about its class": """
class Any:
    @property
    def __class__(self): return list
    def __eq__(self, other): return True
def order(values):
    return Any()
""",
    "overrides the method resolution": """
class Meta(type):
    def mro(cls): return [cls, list, object]
    def __eq__(cls, other): return True
    def __hash__(cls): return hash(list)
class Any(list, metaclass=Meta):
    def __eq__(self, other): return True
def order(values):
    return Any(values)
""",
    "patches the builtins": """
import builtins
builtins.all = lambda parts: True
builtins.list = builtins.sorted = lambda parts: [1, 2, 3]
builtins.AssertionError = Warning
builtins.isinstance = lambda *_: True
def order(values):
    return values
""",
    "patches unittest": """
import unittest
for name in dir(unittest.TestCase):
    if name.startswith("assert"):
        setattr(unittest.TestCase, name, lambda *_, **__: None)
def order(values):
    return values
""",
    "patches the program around it": """
import __main__
__main__.encode = lambda value: '["u"]'
__main__.NotPlainError = Exception
def order(values):
    return object()
""",
    "speaks for the program around it": """
import __main__, sys
frame = sys._getframe()
while frame and "wire" not in frame.f_locals:
    frame = frame.f_back
wire = frame.f_locals["wire"]
def order(values):
    wire.send('["verdict","",true,""]')
    return values
""",
    "looks for the tests in memory": """
import gc, sys
def order(values):
    for thing in gc.get_objects():
        if isinstance(thing, dict) and "expected" in thing:
            return thing["expected"]
    frame = sys._getframe()
    while frame:
        if "check" in frame.f_globals or "expected" in frame.f_locals:
            return frame.f_locals["expected"]
        frame = frame.f_back
    return values
""",
    "looks for the tests on disk": """
import os
def order(values):
    for folder in ("/tmp", "/proc", "/home", "/work", "/root", "/var", "/run", "/etc", "/sys"):
        for where, _, names in os.walk(folder):
            for name in names:
                try:
                    text = open(os.path.join(where, name), errors="replace").read(100000)
                except OSError:
                    continue
                if "order" in text and "assert" in text:
                    return [1, 2, 3] if len(values) == 4 else sorted(set(values))
    return values
""",
    "looks at the processes": """
import os
def order(values):
    for pid in (1, os.getppid(), os.getpid()):
        for name in ("environ", "cmdline", "mem", "fd/0"):
            if os.path.exists(f"/proc/{pid}/{name}"):
                return sorted(set(values))
    return values
""",
    "writes result files": """
import os
for name in ("result", "result.json", "passed", "/result", "/usr/result", "/dev/result"):
    try:
        open(name, "w").write('{"verdict": "pass"}')
    except OSError:
        pass
def order(values):
    return values
""",
    "changes its arguments": """
def order(values):
    if values is not None:
        values[:] = values[::-1] * 2
    return values
""",
    "remembers what it saw": """
seen = []
def order(values):
    seen.append(values)
    return seen[0] if seen.count(values) > 1 else values
""",
    "yields for ever": "def order(values):\n    while True:\n        yield 1",
    "returns a generator": "def order(values):\n    return (value for value in sorted(set(values)))",
    "returns itself": "def order(values):\n    values = [1]\n    values.append(values)\n    return values",
    "returns what is nested deep": "def order(values):\n    for _ in range(5000):\n        values = [values]\n    return values",
    "recurses until the stack ends": """
import sys
sys.setrecursionlimit(10**9)
def order(values):
    return order([values])
""",
    "forks for ever": """
import os
def order(values):
    while True:
        try:
            os.fork()
        except OSError:
            return values
""",
    "leaves a daemon": """
import os, time
def order(values):
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    except OSError:
        pass
    return values
""",
    "starts threads for ever": """
import threading, time
def order(values):
    while True:
        try:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        except RuntimeError:
            return values
""",
    "becomes another program": "import os\ndef order(values):\n    os.execv('/bin/true', ['true'])",
    "becomes a shell that speaks": """
import os
def order(values):
    os.execv("/bin/sh", ["sh", "-c", "for n in 3 4 5 6 7 8; do printf ok >&$n; done; exit 0"])
""",
    "fills the disk": """
import os
def order(values):
    for number in range(10**6):
        try:
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(2**20))
        except OSError:
            return sorted(set(values)) if number > 100 else values
""",
    "fills the memory": """
def order(values):
    try:
        hoard = [bytearray(2**20) for _ in range(10**5)]
        return sorted(set(values))
    except MemoryError:
        return values
""",
    "raises its limits": """
import resource
def order(values):
    try:
        for which in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC):
            resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return sorted(set(values))
    except (OSError, ValueError):
        return values
""",
    "makes namespaces": """
import ctypes
def order(values):
    libc = ctypes.CDLL(None, use_errno=True)
    return sorted(set(values)) if libc.unshare(0x10000000) == 0 else values
""",
    "kills everything": """
import os, signal
def order(values):
    for pid in (os.getppid(), 0, -1, 1):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return values
""",
    "uses the network": """
import socket
def order(values):
    for place in (("127.0.0.1", 80), ("127.0.0.1", 22), ("1.1.1.1", 53)):
        try:
            socket.create_connection(place, timeout=1).close()
            return sorted(set(values))
        except ConnectionRefusedError:
            continue
        except OSError:
            continue
    return values
""",
    "waits with a time bomb": """
import atexit, os, signal
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.01)
atexit.register(print, "PASS")
def order(values):
    while True:
        pass
""",
    "returns a gigantic value": "def order(values):\n    return 'x' * 10**8",
    "prints without end": """
def order(values):
    for _ in range(1000):
        print("PASS" * 10000)
    return values
""",
    "sends a gigantic frame": """
import os
def order(values):
    for number in range(3, 16):
        try:
            os.write(number, b"\\xff\\xff\\xff\\xff" + b"[" * 1000)
        except OSError:
            pass
    return values
""",
    "sends half a frame and ends": """
import os
def order(values):
    for number in range(3, 16):
        try:
            os.write(number, b"\\x00\\x00\\x00\\x20[")
        except OSError:
            pass
    os._exit(0)
""",
    "sends brackets": """
import os
def order(values):
    for number in range(3, 16):
        try:
            os.write(number, (100000).to_bytes(4, "big") + b"[" * 100000)
        except OSError:
            pass
    return values
""",
    "sends unknown tags": """
import __main__
__main__.encode = lambda value: '["__import__","os"]'
def order(values):
    return values
""",
    "sends colliding members": """
import __main__
__main__.encode = lambda value: '["S",' + ",".join(f'["i","{(2**61 - 1) * n:x}"]' for n in range(5, 60000)) + "]"
def order(values):
    return values
""",
    "closes its descriptors": "import os\nos.closerange(0, 256)\ndef order(values):\n    return values",
    "has a text that exits": """
import os
class Bad(Exception):
    def __str__(self): os._exit(0)
def order(values):
    raise Bad
""",
    "is not a number": "def order(values):\n    return float('nan')",
    "is a tuple": "def order(values):\n    return tuple(sorted(set(values or [])))",
    "knows one case": "def order(values):\n    return [1, 2, 3]",
}

IDLE = {
    "computes for ever": "def order(values):\n    while True:\n        pass",
    "never answers": "import time\ndef order(values):\n    time.sleep(10**6)",
    "stops itself": "import os, signal\ndef order(values):\n    signal.pause()",
    "sends a frame slowly": """
import os, time
def order(values):
    for number in range(3, 16):
        try:
            os.write(number, b"\\x00\\x00\\x00\\x20")
            while True:
                time.sleep(0.3)
                os.write(number, b"[")
        except OSError:
            pass
""",
}

JAVASCRIPT = {
    "exits while it loads": "process.exit(0);",
    "exits when called": "function order() { process.exit(0); }",
    "leaves at once": "function order() { process.reallyExit(0); }",
    "aborts": "function order() { process.abort(); }",
    "throws": "function order() { throw new TypeError('null'); }",
    "defines nothing": "",
    "is no function": "const order = [1, 2, 3];",
    "does not parse": "function order( { return [1, 2, 3]; }",
    "prints markers": 'function order(values) { console.log(\'PASS\', \'["verdict","",true,""]\'); return values; }',
    "forges a verdict on every descriptor": """
const fs = require("fs");
function order(values) {
  const text = Buffer.from('....["verdict","00000000000000000000000000000000",true,""]');
  text.writeUInt32BE(text.length - 4, 0);
  for (let number = 0; number < 64; number += 1) try { fs.writeSync(number, text); } catch {}
  return values;
}""",
    "leaves the function around it": "return (values) => values; }); process.exit(0); (function () {",
    "returns before its end": "return (values) => [1, 2, 3];",
    "is a proxy": "function order(values) { return new Proxy({}, { get: () => true, getPrototypeOf: () => Array.prototype }); }",
    "has its own JSON": "function order(values) { return { toJSON: () => [1, 2, 3], length: 3 }; }",
    "is an own class": "class Any extends Array {} ; class Other { valueOf() { return 1; } }\nfunction order() { return new Other(); }",
    "patches JSON": "JSON.stringify = () => '[\"l\",1,2,3]'; function order(values) { return values; }",
    "patches the prototypes": """
Array.prototype[Symbol.iterator] = function* () {};
Object.prototype.order = true;
Array.prototype.map = Array.prototype.join = () => "";
function order(values) { return values; }""",
    "patches assert": "const a = require('assert'); for (const n of Object.keys(a)) a[n] = () => {};\nfunction order(values) { return values; }",
    "is a promise": "async function order(values) { return [...new Set(values)].sort(); }",
    "is a generator": "function* order(values) { for (;;) yield 1; }",
    "is undefined": "function order(values) {}",
    "is not a number": "function order(values) { return NaN; }",
    "returns a gigantic value": "function order(values) { return 'x'.repeat(1e8); }",
    "returns itself": "function order(values) { const a = []; a.push(a); return a; }",
    "recurses for ever": "function order(values) { return order([values]); }",
    "fills the memory": "function order(values) { const hoard = []; for (;;) hoard.push(Buffer.alloc(1 << 24, 1)); }",
    "fills the heap": "function order(values) { const hoard = []; for (;;) hoard.push(new Array(1e5).fill({})); }",
    "fills the disk": """
const fs = require("fs");
function order(values) {
  try { for (let n = 0; n < 1e4; n += 1) fs.writeFileSync(`/tmp/${n}`, Buffer.alloc(1 << 20)); } catch { return values; }
  return [...new Set(values)].sort();
}""",
    "starts programs for ever": """
const { spawn } = require("child_process");
function order(values) {
  for (let n = 0; n < 200; n += 1) try { spawn("/bin/sleep", ["600"], { detached: true, stdio: "ignore" }).unref(); } catch {}
  return values;
}""",
    "kills everything": "function order(values) { for (const p of [process.ppid, 0, -1, 1]) try { process.kill(p, 'SIGKILL'); } catch {} return values; }",
    "reads files": """
const fs = require("fs");
function order(values) {
  for (const p of ["/proc/1/environ", "/proc/self/mem", "/etc/passwd", "/root", "/home", "/work"]) if (fs.existsSync(p)) return [...new Set(values)].sort();
  return values;
}""",
    "changes its arguments": "function order(values) { values.reverse(); return values; }",
    "closes its descriptors": "for (let n = 0; n < 64; n += 1) try { require('fs').closeSync(n); } catch {}\nfunction order(values) { return values; }",
}

JAVASCRIPT_IDLE = {
    "computes for ever": "function order() { for (;;); }",
    "never answers": "function order() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }",
}


def expect_failure(answer: str, language: Language, tests: Cases | Program, bounds: Bounds) -> None:
    seen = grade(answer, task(language, tests), bounds=bounds)
    assert seen.verdict is Verdict.FAIL, seen
    assert seen.why
    assert left_behind() == []
    assert own_children(snapshot()) == frozenset()


@pytest.fixture
def seems_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only waits is given its few seconds, and no more because others compute."""
    monkeypatch.setattr(relay, "_crowding", lambda: 1.0)


def of(table: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("answer", table.values(), ids=table.keys())


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("language", HONEST)
def test_the_honest_answer_passes_both_kinds(language: Language) -> None:
    for tests in (CASES, PROGRAMS[language]):
        assert grade(HONEST[language], task(language, tests), bounds=BOUNDS).verdict is Verdict.PASS


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("tests", [CASES, PROGRAMS[Language.PYTHON]], ids=["cases", "program"])
@of(PYTHON)
def test_no_python_cheat_passes(answer: str, tests: Cases | Program) -> None:
    expect_failure(answer, Language.PYTHON, tests, BOUNDS)


@pytest.mark.guarantee("L10")
@pytest.mark.usefixtures("seems_idle")
@of(IDLE)
def test_no_idle_python_cheat_passes(answer: str) -> None:
    expect_failure(answer, Language.PYTHON, PROGRAMS[Language.PYTHON], IMPATIENT)


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("tests", [CASES, PROGRAMS[Language.JAVASCRIPT]], ids=["cases", "program"])
@of(JAVASCRIPT)
def test_no_javascript_cheat_passes(answer: str, tests: Cases | Program) -> None:
    expect_failure(answer, Language.JAVASCRIPT, tests, BOUNDS)


@pytest.mark.guarantee("L10")
@pytest.mark.usefixtures("seems_idle")
@of(JAVASCRIPT_IDLE)
def test_no_idle_javascript_cheat_passes(answer: str) -> None:
    expect_failure(answer, Language.JAVASCRIPT, CASES, IMPATIENT)
