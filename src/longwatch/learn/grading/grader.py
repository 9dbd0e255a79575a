"""Grades answers: one, or many on all cores. Nothing but the answer and its task decides a verdict."""

import functools
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator

from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.place import HERE, tidy
from longwatch.learn.grading.relay import AbandonedError, Run, run
from longwatch.learn.grading.solitude import Solitude
from longwatch.learn.tasks import Grade, Task, Verdict
from longwatch.sandbox.choice import Sandboxing

Answered = tuple[str, Task]
"""An answer and what it answers."""

_ASK_S = 0.1


def grade(
    answer: str, task: Task, *, bounds: Bounds | None = None, seed: int = 0, where: Sandboxing = HERE
) -> Grade:
    """Grade one answer. `seed` orders the sets of a Python answer; it is 0 everywhere but where tasks are screened.

    While it runs, the calling process must not run a supervised child: that would be taken for one of these.
    """
    once = functools.partial(run, answer, task, bounds, seed=seed, where=where)
    return _grade(once, task, Solitude())


def _grade(once: Callable[[], Run], task: Task, solitude: Solitude) -> Grade:
    """Run it beside others; what came near a limit, or was our own trouble, runs once more and alone."""
    with solitude.beside_others():
        first = once()
    if not first.near_limit and first.verdict is not Verdict.INFRA:
        return _as_grade(task, first)
    with solitude.alone():
        return _as_grade(task, once())


def _as_grade(task: Task, seen: Run) -> Grade:
    return Grade(task=task.id, verdict=seen.verdict, why=seen.why, cpu_s=seen.cpu_s, wall_s=seen.wall_s)


def grade_all(
    items: Iterable[Answered],
    *,
    workers: int | None = None,
    bounds: Bounds | None = None,
    progress: Callable[[int], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
    where: Sandboxing = HERE,
) -> Iterator[Grade]:
    """Grade many answers at once and yield their grades in the order of the items, each as soon as it can be.

    Twice as many as there are cores run at once: each waits for the kernel half of its time. `progress` hears how many are done, `should_stop` is asked ten times a second: after it the grades end early. Both are
    called in the caller's thread. As with `grade`, no supervised child may run meanwhile.
    """
    tidy(where)
    crew = _Crew(tuple(items), bounds, where)
    crew.start(workers or 2 * len(os.sched_getaffinity(0)))
    try:
        yield from crew.grades(progress, should_stop)
    finally:
        crew.end()


class _Crew:
    """Threads that grade. Each waits for its sandboxes most of the time."""

    def __init__(self, items: tuple[Answered, ...], bounds: Bounds | None, where: Sandboxing) -> None:
        self._items, self._bounds, self._where = items, bounds, where
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, Grade | Exception]] = queue.SimpleQueue()
        self._solitude = Solitude()
        self._abandoned = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, workers: int) -> None:
        """Begin."""
        for number in range(len(self._items)):
            self._waiting.put(number)
        self._threads = [
            threading.Thread(target=self._work, daemon=True) for _ in range(min(workers, len(self._items)))
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while not self._abandoned.is_set():
            try:
                number = self._waiting.get_nowait()
            except queue.Empty:
                return
            try:
                self._done.put((number, self._grade(*self._items[number])))
            except AbandonedError:
                return
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                self._done.put((number, error))

    def _grade(self, answer: str, task: Task) -> Grade:
        abandoned = self._abandoned.is_set
        once = functools.partial(run, answer, task, self._bounds, abandoned=abandoned, where=self._where)
        return _grade(once, task, self._solitude)

    def grades(self, progress: Callable[[int], None], should_stop: Callable[[], bool]) -> Iterator[Grade]:
        """Yield in order; what comes early is kept."""
        early: dict[int, Grade] = {}
        for number in range(len(self._items)):
            while number not in early:
                if should_stop():
                    return
                if self._take(early):
                    progress(number + len(early))
            yield early.pop(number)

    def _take(self, early: dict[int, Grade]) -> bool:
        try:
            number, grade_or_error = self._done.get(timeout=_ASK_S)
        except queue.Empty:
            return False
        if isinstance(grade_or_error, Exception):
            raise grade_or_error
        early[number] = grade_or_error
        return True

    def end(self) -> None:
        """Stop what still runs, and wait for it."""
        self._abandoned.set()
        for thread in self._threads:
            thread.join()
