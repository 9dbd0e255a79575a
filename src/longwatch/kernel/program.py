"""The frame of a step's program: the child process in which an application performs one step.

Both applications use it the same way: read the step from the folder, work, show progress, obey TERM, and as the last
act leave one `Report`, atomically. A program that dies before that leaves none, and the supervisor knows.
"""

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Generic, NamedTuple

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import ProcessRecord
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import FailureClass, LongwatchError, TransientError
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Failed, Failure, Outcome, Progress, Report, T
from longwatch.kernel.redact import Redactor
from longwatch.kernel.timing import Span

STEP, PROGRESS, REPORT, LOG = "step.json", "progress.json", "report.json", "log.txt"
COOKIE = "LONGWATCH_COOKIE"


class Pace(NamedTuple):
    """Since when a phase is counted, and from which count on."""

    phase: str
    total: int | None
    first: int
    began_s: float

    def left_s(self, done: int | None, at_s: float) -> float | None:
        """How long the rest takes at the speed so far; `None` while nothing can be said."""
        if done is None or self.total is None or done <= self.first:
            return None
        return (at_s - self.began_s) / (done - self.first) * max(0, self.total - done)


class Work(Generic[T]):
    """What a step's program works with."""

    def __init__(self, folder: Path, step: T) -> None:
        self.folder = folder
        self.step = step
        self.stop_requested = False
        """A pause or stop of a person has reached this step."""
        self.over: Callable[[], bool] = lambda: False
        """A bound that the application sets: beyond it the step ends as if it were asked to."""
        self.redactor = Redactor(())
        self._interrupt: type[BaseException] | None = None
        self._spans: list[Span] = []
        self._processes: list[ProcessRecord] = []
        self._notes: list[Note] = []
        self._pace = Pace("", None, 0, 0.0)

    @property
    def cookie(self) -> str:
        """Return the owner mark of this step's processes."""
        return os.environ.get(COOKIE, "")

    @property
    def phase(self) -> str:
        """Return what is being done."""
        return self._pace.phase

    def should_stop(self) -> bool:
        """Return whether a pause or stop has reached this step, or it is beyond its own bound."""
        return self.stop_requested or self.over()

    def ask_to_stop(self) -> None:
        """Let a pause or stop reach this step; the handler of its signals."""
        self.stop_requested = True
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    @contextlib.contextmanager
    def interruptible(self, interrupt: type[BaseException]) -> Iterator[None]:
        """Raise `interrupt` at once when a pause or stop comes in this stretch, which cannot ask `should_stop` itself.

        It is raised at whatever line runs, also inside libraries, so the stretch must leave nothing half-done behind.
        Whatever swallows it, `should_stop` holds after it.
        """
        self._interrupt = interrupt
        try:
            if self.stop_requested:
                raise interrupt
            yield
        finally:
            self._interrupt = None

    @contextlib.contextmanager
    def span(self, phase: str, label: str = "") -> Iterator[None]:
        """Measure a stretch of work, and show it as the current phase."""
        self.progress(phase, label)
        started, began_s = now(), time.monotonic()
        try:
            yield
        finally:
            self._spans.append(
                Span(
                    phase=phase,
                    label=label,
                    started_at=stamp(started.wall_s),
                    duration_s=time.monotonic() - began_s,
                )
            )

    def progress(
        self,
        phase: str,
        text: str = "",
        *,
        done: int | None = None,
        total: int | None = None,
        idle_s: float = 0.0,
    ) -> None:
        """Show a sign of life. It may be lost; it is never evidence."""
        at_s = time.monotonic()
        if (phase, total) != (self._pace.phase, self._pace.total):
            self._pace = Pace(phase, total, done or 0, at_s)
        shown = Progress(
            phase=phase,
            text=self.redactor.text(text),
            done=done,
            total=total,
            idle_s=idle_s,
            left_s=self._pace.left_s(done, at_s),
        )
        files.show(self.folder / PROGRESS, msgspec.json.encode(shown))

    def note(self, kind: str, text: str, **data: str | float | bool | None) -> None:
        """Write a line for the event log; it is committed with the outcome."""
        masked = {
            key: self.redactor.text(value) if isinstance(value, str) else value for key, value in data.items()
        }
        self._notes.append(Note(kind, self.redactor.text(text), masked))

    def record(self, record: ProcessRecord) -> None:
        """Keep a finished process's record (specification K22)."""
        self._processes.append(record)

    def report(self, step_id: str, outcome: Outcome) -> None:
        """Leave the outcome: the last act."""
        report = Report(
            step=step_id,
            outcome=outcome,
            spans=tuple(self._spans),
            processes=tuple(self._processes),
            notes=tuple(self._notes),
        )
        files.replace_json(self.folder / REPORT, report)


def main(folder: Path, step_type: object, perform: Callable[[Work[T]], Outcome]) -> int:
    """Run the program of the step in `folder`. Returns 0 if a report was left, whatever it says."""
    step: T = msgspec.json.decode((folder / STEP).read_bytes(), type=step_type)
    work: Work[T] = Work(folder, step)

    def ask(_number: int, _frame: FrameType | None) -> None:
        work.ask_to_stop()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    work.report(step.id, _outcome(work, perform))
    return 0


def _outcome(work: Work[T], perform: Callable[[Work[T]], Outcome]) -> Outcome:
    try:
        return perform(work)
    except LongwatchError as error:
        return Failed(failure_of(error, work.redactor))
    except Exception as error:  # noqa: BLE001 - the edge of the program: whatever it is becomes a typed failure
        text = work.redactor.text(traceback.format_exc())
        sys.stderr.write(text)
        what = work.redactor.text(f"{type(error).__name__}: {error}")
        message = f"The step's program failed: {what}. The trace stands in {work.folder / LOG}."
        return Failed(Failure(kind=FailureClass.FAULT, message=message, log=str(work.folder / LOG)))


def failure_of(error: LongwatchError, redactor: Redactor) -> Failure:
    """Turn one of our exceptions into the value that travels: the class stands on the type."""
    after_s = error.retry_after_s if isinstance(error, TransientError) else None
    return Failure(kind=error.failure_class, message=redactor.text(str(error)), retry_after_s=after_s)
