"""One run of one answer: starts the processes, carries plain data between them, and reads the verdict.

What the answer's process sends is only ever the value of a call. The verdict comes from our own comparison, or from the
tests' process, on a pipe that only that process holds and with a nonce that only it was told.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from longwatch.learn.grading import joining, scripts
from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.cell import Cell, Ended, InfraError
from longwatch.learn.grading.comparison import equal, tree_of
from longwatch.learn.grading.evaluators import script_of
from longwatch.learn.grading.languages import Script
from longwatch.learn.grading.place import HERE, START_S, contained
from longwatch.learn.grading.runtimes import ANSWER, PROGRAM, Launch, launch
from longwatch.learn.grading.wire import (
    AbandonedError,
    ClosedError,
    GarbageError,
    LateError,
    Patience,
    Tree,
    check,
)
from longwatch.learn.tasks import Cases, OneFile, Program, Task, Verdict
from longwatch.sandbox.choice import Sandboxing

_WHY_CHARACTERS = 400
_STANDARD = Bounds()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What one run showed."""

    verdict: Verdict
    why: str
    cpu_s: float
    """Of the process that used more of its limit."""
    wall_s: float
    near_limit: bool
    """It used so much of a limit, or ended so oddly, that it is judged only alone on the machine."""


class _Failed(Exception):  # noqa: N818 - it is a verdict
    """The answer does not pass; the text says why."""

    def __init__(self, why: str, *, near_limit: bool = False) -> None:
        super().__init__(why)
        self.near_limit = near_limit


def run(
    answer: str,
    task: Task,
    bounds: Bounds | None = None,
    *,
    seed: int = 0,
    abandoned: Callable[[], bool] = lambda: False,
    where: Sandboxing = HERE,
) -> Run:
    """Run the answer against its tests once, in the bounds of such tests or in given ones.

    Asked to stop, it raises `AbandonedError` and leaves nothing behind.
    """
    if bounds is None:
        bounds = scripts.BOUNDS if isinstance(task.tests, OneFile) else _STANDARD
    start_s = START_S if contained(where) else 0.0
    patience = Patience((bounds.wall_s + start_s) * _crowding(), abandoned)
    attempt = _Attempt(answer, task, bounds, seed=seed, patience=patience, where=where)
    kills = _out_of_memory_kills()
    verdict, why, near = Verdict.PASS, "", False
    try:
        attempt.judge()
    except _Failed as failed:
        verdict, why, near = Verdict.FAIL, str(failed), failed.near_limit
    except InfraError as error:
        verdict, why = Verdict.INFRA, str(error)
    cpu_s = max((end.cpu_s for end in attempt.ended), default=0.0)
    if verdict is Verdict.FAIL and cpu_s >= bounds.cpu_s:
        why = f"it used its {bounds.cpu_s} s of CPU time ({why})"
    elif verdict is Verdict.FAIL:
        trouble = _trouble(attempt.ended, out_of_memory=_out_of_memory_kills() != kills)
        verdict, why = (Verdict.INFRA, trouble) if trouble else (verdict, why)
    return Run(
        verdict=verdict,
        why=why[:_WHY_CHARACTERS],
        cpu_s=cpu_s,
        wall_s=patience.elapsed_s,
        near_limit=near or cpu_s > bounds.near_cpu_s,
    )


def _crowding() -> float:
    """How many times longer everything may take here because others compute too: the backstop must not notice load."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def _trouble(ended: list[Ended], *, out_of_memory: bool) -> str:
    if any(end.from_outside for end in ended):
        return "a sandbox was ended from outside"
    # The machine may have killed something else: only what died by KILL can be meant.
    if out_of_memory and any(end.killed for end in ended):
        return "the machine ran out of memory"
    return ""


def _out_of_memory_kills() -> int:
    """How often this machine ended something for want of memory (proc(5), vmstat)."""
    lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


class _Attempt:
    """One run on its way."""

    def __init__(
        self, answer: str, task: Task, bounds: Bounds, *, seed: int, patience: Patience, where: Sandboxing
    ) -> None:
        self._source = f"{task.preamble}\n{answer}" if task.preamble else answer
        self._task, self._bounds = task, bounds
        self._seed, self._patience, self._where = seed, patience, where
        self.ended: list[Ended] = []

    def judge(self) -> None:
        """Return if the answer passes; `_Failed` or `InfraError` else."""
        match self._task.tests:
            case Cases() as tests:
                with self._cell(self._role(ANSWER)) as cell:
                    self._compare(self._load(cell), tests)
            case Program() as tests:
                with self._cell(self._role(ANSWER)) as cell, self._cell(self._role(PROGRAM)) as judge:
                    self._program(cell, judge, tests)
            case OneFile() as tests:
                self._one_file(tests, script_of(self._task.language, tests.evaluator))

    def _role(self, role: str) -> Launch:
        return launch(self._task.language, role, self._bounds, self._where)

    @contextlib.contextmanager
    def _cell(self, wanted: Launch) -> Iterator[Cell]:
        cell = Cell(
            wanted.argv,
            self._bounds,
            seed=self._seed,
            patience=self._patience,
            script=wanted.script,
            where=self._where,
        )
        try:
            cell.boot(wanted.code)
            yield cell
        finally:
            self.ended.append(cell.end())

    def _load(self, cell: Cell) -> "_Subject":
        cell.await_ready()
        subject = _Subject(cell, self._bounds.depth)
        subject.load(tree_of(self._source), self._task.entry_point)
        return subject

    def _compare(self, subject: "_Subject", tests: Cases) -> None:
        if not tests.cases:
            raise InfraError(f"task {self._task.id} has no case; correct its source")
        for number, case in enumerate(tests.cases, 1):
            reply = subject.call(tree_of(case.arguments), ["d"])
            if reply[0] == "raised":
                raise _Failed(f"case {number}: it raised {_told(reply)}")
            if not equal(reply[1], case.expected, tests.tolerance):
                raise _Failed(f"case {number}: the result is not the expected one")

    def _program(self, cell: Cell, tests: Cell, program: Program) -> None:
        nonce = secrets.token_hex(16)
        tests.await_ready()
        tests.send([nonce, tree_of(program.code), self._task.entry_point])
        subject = self._load(cell)
        with _telling_tests_apart():
            message = tests.receive()
        while message[0] == "call":
            message = self._carry(subject, tests, message)
        match message:
            case ["verdict", told, bool(passed), why] if told == nonce:
                if not passed:
                    raise _Failed(str(why))
            case _:
                raise _Failed("the tests' process reported without its nonce")

    def _one_file(self, tests: OneFile, script: Script) -> None:
        nonce, name = secrets.token_hex(16), self._task.entry_point
        try:
            own = joining.own(self._source, tests, name, script)
            program = joining.join(self._source, joining.witnessed(tests, script, nonce), name, script)
        except joining.UnknownTestsError as error:
            raise InfraError(f"task {self._task.id}: {error}; correct its source") from error
        trick = joining.trick(own, tests.given, script)
        if trick:
            raise _Failed(f"it has what no honest answer has: {trick}")
        data = program.encode("utf-8", "replace")
        wanted = scripts.launch(self._task.language, script, len(data), nonce, self._bounds, self._where)
        with self._cell(msgspec.structs.replace(wanted, code=data)) as cell:
            output, words = _heard(cell)
        why = scripts.failure(self.ended[-1].status, output, words, nonce)
        if why:
            raise _Failed(why)
        if script.together and self.ended[-1].cpu_s > self._bounds.cpu_s:
            raise _Failed("all its processes together")

    def _carry(self, subject: "_Subject", tests: Cell, message: list[Tree]) -> list[Tree]:
        """Carry one call over and its result back; return what the tests say next."""
        with _telling_tests_apart():
            arguments, named = (check(part, self._bounds.depth + 1) for part in message[1:3])
        reply = subject.call(arguments, named)
        with _telling_tests_apart():
            tests.send(reply)
            return tests.receive()


def _heard(cell: Cell) -> tuple[bytes, str]:
    """What a program of answer and tests wrote to its end, and its last words."""
    try:
        return cell.output(), cell.last_words()
    except LateError as error:
        raise _Failed("it did not end in time", near_limit=True) from error
    except GarbageError as error:
        raise _Failed(f"it printed {error}") from error


@contextlib.contextmanager
def _telling_tests_apart() -> Iterator[None]:
    """Make trouble with the tests' process a failure: only what the answer gave them can have caused it."""
    try:
        yield
    except ClosedError as error:
        raise _Failed("the tests' process died", near_limit=True) from error
    except LateError as error:
        raise _Failed("the tests did not end in time", near_limit=True) from error
    except GarbageError as error:
        raise _Failed(f"the tests passed on what cannot cross: {error}") from error


class _Subject:
    """The answer's process, as something that is called."""

    def __init__(self, cell: Cell, depth: int) -> None:
        self._cell, self._depth = cell, depth

    def load(self, source: Tree, entry_point: str) -> None:
        """Hand the answer over and wait until it is defined."""
        reply = self._ask([source, entry_point])
        if reply != ["loaded"]:
            raise _Failed(f"the answer does not load: {_told(reply)}")

    def call(self, arguments: Tree, named: Tree) -> list[Tree]:
        """Return ["value", tree] or ["raised", type, text]; all else fails the answer."""
        reply = self._ask([arguments, named])
        match reply:
            case ["value", tree]:
                return ["value", self._plain(tree)]
            case ["raised", str(), _]:
                return ["raised", *map(self._plain, reply[1:])]
            case ["unplain", _]:
                raise _Failed(f"it returned {_told(reply)}")
            case ["left", _, _]:
                raise _Failed(f"it left by {_told(reply)}")
            case _:
                raise _Failed("the answer's process broke the protocol")

    def _plain(self, tree: Tree) -> Tree:
        try:
            return check(tree, self._depth)
        except GarbageError as error:
            raise _Failed(f"the answer's process sent {error}") from error

    def _ask(self, message: Tree) -> list[Tree]:
        try:
            self._cell.send(message)
            return self._cell.receive()
        except ClosedError as error:
            raise _Failed("the answer's process ended before it answered") from error
        except LateError as error:
            raise _Failed("the answer's process did not answer in time", near_limit=True) from error
        except GarbageError as error:
            raise _Failed(f"the answer's process sent {error}") from error


def _told(reply: list[Tree]) -> str:
    return ": ".join(str(part) for part in reply[1:] if part != "")


__all__ = ["AbandonedError", "Run", "run"]
