import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from longwatch.kernel.identity import snapshot
from longwatch.learn.grading import Bounds, extract, grade, grade_all, relay, runtimes
from longwatch.learn.grading.cell import Ended
from longwatch.learn.grading.comparison import equal, tree_of
from longwatch.learn.grading.solitude import Solitude
from longwatch.learn.tasks import Case, Cases, Json, Language, Program, Split, Task, Verdict

MARK = 8 * 1024 * 1024 + 512 * (uuid.uuid4().int % 20_000)
BOUNDS = Bounds(tmp_bytes=MARK)
FOR_EVER = "def f(value):\n    while True:\n        pass\n"
DOUBLE = "def f(value):\n    return 2 * value\n"


def task(tests: Cases | Program, *, name: str = "task", language: Language = Language.PYTHON) -> Task:
    return Task(
        id=name,
        problem=name,
        repository="test",
        family="test",
        language=language,
        split=Split.DEV,
        prompt="Write f.",
        entry_point="f",
        tests=tests,
    )


def cases(*pairs: tuple[tuple[Json, ...], Json], tolerance: float = 0.0) -> Cases:
    return Cases(cases=tuple(Case(arguments, expected) for arguments, expected in pairs), tolerance=tolerance)


def passes(answer: str, tests: Cases | Program, language: Language = Language.PYTHON) -> bool:
    seen = grade(answer, task(tests, language=language), bounds=BOUNDS)
    assert seen.verdict is not Verdict.INFRA, seen
    return seen.verdict is Verdict.PASS


def marked(pid: int) -> bool:
    try:
        return f"\0{MARK}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def living() -> frozenset[int]:
    return frozenset(stat.pid for stat in snapshot() if not stat.dead and marked(stat.pid))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# What passes and what does not.


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (DOUBLE, True),
        ("def f(value):\n    return value\n", False),
        ("print('PASS')\n" + DOUBLE, True),
        ("class Own(int):\n    pass\ndef f(value):\n    return Own(2 * value)\n", True),
        ("import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: 'int'\n" + DOUBLE, True),
        ("def f(value):\n    return 2.0 * value\n", True),
        ("def f(value):\n    return str(2 * value)\n", False),
    ],
)
def test_cases_are_compared_here(answer: str, right: bool) -> None:
    assert passes(answer, cases(((21,), 42), ((0,), 0))) is right


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "right"),
    [
        (1, True, 0.0, False),
        (True, 1, 0.0, False),
        (None, False, 0.0, False),
        (["u"], None, 0.0, False),
        (0.1 + 0.2, 0.3, 0.0, False),
        (0.1 + 0.2, 0.3, 1e-9, True),
        (["f", "nan"], 0.5, 1.0, False),
        (["f", "inf"], 1e308, 0.5, False),
        (3, 2, 0.5, False),
        (["i", "1" + "0" * 400], 1.5, 0.1, False),
        (["i", f"{10**30:x}"], 10**30, 0.0, True),
        (["n", f"{10**30:x}"], 10**30, 0.0, True),
        (["n", "2"], 2, 0.0, False),
        (["t", 1], [1], 0.0, False),
        (["l", 1, 2], [1], 0.0, False),
        (["l", 1.0], [1], 0.0, True),
        (["d", "a", 1, "b", 2], {"b": 2, "a": 1}, 0.0, True),
        (["d", "a", 1, "a", 1], {"b": 2, "a": 1}, 0.0, False),
        (["d", 1, 1], {"1": 1}, 0.0, False),
        (["S", 1], [1], 0.0, False),
        (-0.0, 0, 0.0, True),
        ("a", "a", 0.0, True),
        (["b", "61"], "a", 0.0, False),
    ],
)
def test_equality(found: Json, expected: Json, tolerance: float, right: bool) -> None:
    assert equal(found, expected, tolerance) is right


PROGRAMS = {
    "asserts": "assert f(1) == 2\nassert f(value=3) == 6",
    "check": "def helper(x):\n    return 2 * x\ndef f(value):\n    ...\ndef check(candidate):\n    assert candidate(4) == helper(4) and f(5) == 10",
    "data": "for v in (b'a', 'ä\\ud800', (1, 2), [None], 2**80, 1.5, 1j):\n    assert f(v) == 2 * v and type(f(v)) is type(2 * v)",
    "exceptions": "try:\n    f({})\nexcept TypeError as e:\n    assert 'unsupported' in str(e)\nelse:\n    assert False",
}


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_call_the_answer_through_plain_data(code: str) -> None:
    assert passes(DOUBLE, Program(code=code))
    assert not passes("def f(value):\n    return value\n", Program(code=code))


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        ("class Own(Exception): pass\nraise Own('x')", "Own: x"),
        ("raise UnicodeDecodeError('utf8', b'', 0, 0, 'x')", "UnicodeError"),
        ("raise StopIteration", "RuntimeError"),
        ("raise ExceptionGroup('x', [ValueError()])", "Exception"),
        ("raise KeyError(3)", "KeyError"),
    ],
)
def test_exceptions_cross_by_name_and_text(raised: str, caught: str) -> None:
    answer = "def f():\n" + "".join(f"    {line}\n" for line in raised.splitlines())
    test = f"try:\n    f()\nexcept Exception as e:\n    assert {caught!r} in type(e).__name__ + ': ' + str(e)\nelse:\n    assert 0"
    assert passes(answer, Program(code=test)), raised


@pytest.mark.guarantee("L10")
def test_arguments_that_the_answer_changes_stay_as_they_are_for_the_tests() -> None:
    spoil = "def f(values):\n    values.clear()\n    return values\n"
    assert passes(spoil, Program(code="given = [1, 2]\nassert f(given) == [] and given == [1, 2]"))


@pytest.mark.guarantee("L10")
@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [
        ("function f(v) { return v + v; }", 42, True),
        ("const f = (v) => 2 * v;", 42, True),
        ("class Helper {}\nlet f = function (v) { return 2 * v; }", 42, True),
        ("module.exports = { f: (v) => 2 * v };", 42, True),
        ("exports.f = (v) => 2 * v;", 42, True),
        ("module.exports = (v) => 2 * v;", 42, True),
        (
            "'use strict';\nfunction f(v) { return [v, { a: null, b: 'ä' }]; }",
            [21, {"a": None, "b": "ä"}],
            True,
        ),
        ("function f(v) { return -0; }", 0, True),
        ("function f(v) { return { a: undefined }; }", {}, False),
        ("function f(v) { return new Map(); }", {}, False),
        ("function f(v) { return 42n; }", 42, False),
        ("function f(v) { console.log('x'); return 10n ** 30n; }", 10**30, True),
        ("function f(v) { return [, 1]; }", [None, 1], False),
    ],
)
def test_javascript(answer: str, expected: Json, right: bool) -> None:
    assert passes(answer, cases(((21,), expected)), Language.JAVASCRIPT) is right


@pytest.mark.guarantee("L10")
def test_javascript_programs() -> None:
    tests = (
        "const a = require('assert');\na.deepStrictEqual(candidate([1]), [1, 1]);\na.throws(() => candidate(3), TypeError.name && /spread|iterable/);",
        "const t = () => { console.assert(f([2]).length === 2); };\nt();",
    )
    for code in tests:
        assert passes("const f = (v) => [...v, ...v];", Program(code=code), Language.JAVASCRIPT)
        assert not passes("const f = (v) => v;", Program(code=code), Language.JAVASCRIPT)


@pytest.mark.guarantee("L10", "L15")
def test_sets_have_the_same_order_every_time() -> None:
    answer = "def f(value):\n    return ''.join({'alpha', 'beta', 'gamma', 'delta'})\n"
    wanted = grade_words()
    assert all(passes(answer, cases(((1,), wanted))) for _ in range(3))


def grade_words() -> str:
    """The order that hash seed 0 gives, from the interpreter that grades."""
    code = "print(''.join({'alpha', 'beta', 'gamma', 'delta'}))"
    done = subprocess.run(
        [runtimes.PYTHON, "-S", "-c", code],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


# Many at once.


@pytest.mark.guarantee("L10")
def test_grades_come_in_the_order_of_the_items() -> None:
    slow = "import time\ntime.sleep(0.3)\n" + DOUBLE
    items = [
        (slow if number % 3 == 0 else DOUBLE, task(cases(((number,), 2 * number)), name=f"t{number}"))
        for number in range(10)
    ]
    heard: list[int] = []
    grades = list(grade_all(items, workers=3, bounds=BOUNDS, progress=heard.append))
    assert [one.task for one in grades] == [f"t{number}" for number in range(10)]
    assert {one.verdict for one in grades} == {Verdict.PASS}
    assert heard == list(range(1, 11))
    assert list(grade_all([], bounds=BOUNDS)) == []


@pytest.mark.guarantee("L10", "L14")
def test_a_stop_is_obeyed_and_nothing_is_left() -> None:
    items = [(FOR_EVER, task(cases(((1,), 2))))] * 4
    grades = grade_all(
        items,
        workers=2,
        bounds=Bounds(cpu_s=200, wall_s=400, tmp_bytes=MARK),
        should_stop=lambda: bool(living()),
    )
    assert list(grades) == []
    assert living() == frozenset()


@pytest.mark.guarantee("L10", "L14")
def test_a_caller_that_looks_away_leaves_nothing() -> None:
    items = [(DOUBLE, task(cases(((1,), 2)))), *[(FOR_EVER, task(cases(((1,), 2))))] * 2]
    grades = grade_all(items, workers=2, bounds=Bounds(cpu_s=200, wall_s=400, tmp_bytes=MARK))
    assert next(grades).verdict is Verdict.PASS
    grades.close()  # type: ignore[attr-defined]
    assert living() == frozenset()


@pytest.mark.guarantee("L10")
def test_a_killed_grader_takes_its_sandboxes_along() -> None:
    script = (
        "from tests.unit.learn import test_grading as t\n"
        "from longwatch.learn.grading import Bounds, grade\n"
        "import sys\n"
        "grade(t.FOR_EVER, t.task(t.cases(((1,), 2))), bounds=Bounds(cpu_s=200, wall_s=400, tmp_bytes=int(sys.argv[1])))"
    )
    root = Path(__file__).parents[3]
    grader = subprocess.Popen(
        [sys.executable, "-c", script, str(MARK)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'tests/support'}"},
    )
    # The launcher and what it launched; the grader's own command line ends with the number and does not count.
    wait_until(lambda: len(living() - {grader.pid}) >= 2 or grader.poll() is not None)
    grader.kill()
    grader.wait()
    wait_until(lambda: not living())


# Limits, load and our own trouble.


@pytest.mark.guarantee("L10")
def test_a_busy_machine_changes_no_verdict() -> None:
    busy = "def f(value):\n    import time\n    while time.process_time() < 0.3:\n        pass\n    return value\n"
    with burning(4 * len(os.sched_getaffinity(0))):
        seen = grade(busy, task(cases(((1,), 1))), bounds=Bounds(cpu_s=1, tmp_bytes=MARK))
    assert seen.verdict is Verdict.PASS
    assert 0.3 <= seen.cpu_s < 1


@contextmanager
def burning(count: int) -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


class Watching:
    """Stands in for `relay.run`: runs it, and notes who ran beside whom."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []
        self.now = 0
        self.lock = threading.Lock()
        self.real = relay.run

    def __call__(self, answer: str, of: Task, bounds: Bounds, **options: object) -> relay.Run:
        with self.lock:
            self.now += 1
            self.runs.append((of.id, self.now))
        try:
            return self.real(answer, of, bounds, **options)  # type: ignore[arg-type]
        finally:
            with self.lock:
                self.now -= 1


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Watching:
    watching = Watching()
    monkeypatch.setattr("longwatch.learn.grading.grader.run", watching)
    return watching


@pytest.mark.guarantee("L10")
def test_what_comes_near_a_limit_runs_again_alone(watching: Watching) -> None:
    near = "def f(value):\n    import time\n    while time.process_time() < 0.7:\n        pass\n    return 2 * value\n"
    items = [(DOUBLE, task(cases(((1,), 2)), name="quick"))] * 30
    items.insert(3, (near, task(cases(((1,), 2)), name="near")))
    grades = list(grade_all(items, workers=3, bounds=Bounds(cpu_s=1, tmp_bytes=MARK)))
    assert {one.verdict for one in grades} == {Verdict.PASS}
    again = [beside for name, beside in watching.runs if name == "near"]
    assert len(again) == 2
    assert again[1] == 1
    assert len(watching.runs) == len(items) + 1


@pytest.mark.guarantee("L10")
def test_nobody_joins_one_that_is_alone() -> None:
    solitude, entered, leave = Solitude(), threading.Event(), threading.Event()
    joined = threading.Event()

    def alone() -> None:
        with solitude.alone():
            entered.set()
            leave.wait()

    def beside() -> None:
        with solitude.beside_others():
            assert leave.is_set()
            joined.set()

    threads = [threading.Thread(target=alone)]
    threads[0].start()
    entered.wait()
    threads += [threading.Thread(target=beside) for _ in range(3)]
    for thread in threads[1:]:
        thread.start()
    leave.set()
    for thread in threads:
        thread.join()
    assert joined.is_set()


@pytest.mark.guarantee("L10")
def test_a_missing_sandbox_is_our_own_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    seen = grade(DOUBLE, task(cases(((1,), 2))), bounds=BOUNDS)
    assert seen.verdict is Verdict.INFRA
    assert "cannot be started" in seen.why


@pytest.mark.guarantee("L10")
def test_a_sandbox_that_refuses_is_our_own_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
    broken.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    seen = grade(DOUBLE, task(Program(code="assert f(1) == 2")), bounds=BOUNDS)
    assert seen.verdict is Verdict.INFRA
    assert "no namespaces here" in seen.why


@pytest.mark.guarantee("L10")
def test_a_missing_node_is_our_own_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runtimes, "NODE", str(tmp_path / "node"))
    seen = grade("const f = (v) => v;", task(cases(((1,), 1)), language=Language.JAVASCRIPT), bounds=BOUNDS)
    assert seen.verdict is Verdict.INFRA
    assert "install Node.js" in seen.why


@pytest.mark.guarantee("L10")
def test_a_sandbox_that_is_killed_from_outside_is_our_own_trouble() -> None:
    over = threading.Event()

    def kill_launchers() -> None:
        while not over.wait(0.02):
            for stat in snapshot():
                if stat.ppid == os.getpid() and marked(stat.pid):
                    os.kill(stat.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_launchers)
    killer.start()
    seen = grade(FOR_EVER, task(cases(((1,), 2))), bounds=Bounds(cpu_s=100, wall_s=5, tmp_bytes=MARK))
    over.set()
    killer.join()
    assert seen.verdict is Verdict.INFRA
    assert living() == frozenset()


@pytest.mark.guarantee("L10")
def test_only_what_died_by_the_kernel_can_have_died_for_want_of_memory() -> None:
    died = Ended(status=-9, cpu_s=0.1, from_outside=False, killed=True)
    left = Ended(status=137, cpu_s=0.1, from_outside=False, killed=False)
    assert relay._trouble([left, died], out_of_memory=True)
    assert not relay._trouble([left], out_of_memory=True)
    assert not relay._trouble([died], out_of_memory=False)


@pytest.mark.guarantee("L10")
def test_a_task_without_cases_judges_nothing() -> None:
    assert grade(DOUBLE, task(Cases(cases=())), bounds=BOUNDS).verdict is Verdict.INFRA


def test_a_tree_of_json_is_plain() -> None:
    assert tree_of({"a": [1, None, 2.5]}) == ["d", "a", ["l", 1, None, 2.5]]


# Text to answer.


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("def f(): pass", "def f(): pass"),
        ("Here:\n```python\nx = 1\n```\nDone ```", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```js\ny\n```\n```python\nx\n```\n```python\nz\n```", "x\n"),
        ("```js\ny\n```", "y\n"),
        ("```python\nx = 1\nand cut", "x = 1\nand cut"),
        ("```python\nx = '```'\n```\n", "x = '```'\n"),
        ("````python\n```\nx\n````", "```\nx\n"),
        ("~~~py\r\nx\r\n~~~", "x\n"),
        ("```python", ""),
        ("Use ```inline``` code", "Use ```inline``` code"),
        ("", ""),
        ("```Python title=a\nx\n```", "x\n"),
    ],
)
def test_extract(text: str, answer: str) -> None:
    assert extract(text, Language.PYTHON) == answer
