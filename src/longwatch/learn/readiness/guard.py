"""Holds the machine while a step uses the student, and lets go of it when it stops being ready.

Then the step is paused as a person would pause it: it saves itself and ends, in seconds, and the accelerator's memory is
free. The watch is not paused: the next step waits at the gate, and goes on where this one stopped.
"""

import contextlib
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from longwatch.kernel.clock import now
from longwatch.kernel.line import Outcome, Stopped
from longwatch.kernel.program import Work
from longwatch.kernel.watch import Watch
from longwatch.learn.readiness import turns
from longwatch.learn.readiness.judging import NotReady, Ready, Verdict, judge
from longwatch.learn.readiness.machine import Machine
from longwatch.learn.readiness.readings import Probe
from longwatch.learn.settings import LearnSettings
from longwatch.learn.steps import LearnStep

LOOK_S = 5.0
PATIENCE = 2
"""So many looks in a row find it not ready before a step that runs is paused."""


class Guard:
    """Looks at the machine beside the work, and pauses it once."""

    def __init__(self, probe: Probe, settings: LearnSettings) -> None:
        self._probe, self._settings = probe, settings
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="readiness", daemon=True)
        self.why: NotReady | None = None
        """Why the work was paused."""

    def look(self, before: Verdict | None) -> Verdict:
        """Look once."""
        return judge(self._probe.read(), self._settings, before, now())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        bad = 0
        while not self._ended.wait(LOOK_S):
            verdict = self.look(Ready())
            bad = bad + 1 if isinstance(verdict, NotReady) else 0
            if isinstance(verdict, NotReady) and bad == PATIENCE:
                self.why = verdict
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
                return


def guarded(
    work: Work[LearnStep], watch: Watch, settings: LearnSettings, perform: Callable[[], Outcome]
) -> Outcome:
    """Perform a step while the machine is ready for it.

    Raises:
        TransientError: another watch has its turn.
    """
    with contextlib.ExitStack() as stack:
        if settings.readiness.one_watch:
            stack.enter_context(turns.turn(turns.path(settings.student.device), watch.root))
        guard = Guard(Machine(watch, settings), settings)
        # The supervisor asked before it began this step, unless it took up one that had died.
        first = guard.look(None)
        if isinstance(first, NotReady):
            return _paused(work, first)
        with guard:
            outcome = perform()
        return _paused(work, guard.why) if guard.why and isinstance(outcome, Stopped) else outcome


def _paused(work: Work[LearnStep], why: NotReady) -> Outcome:
    text = f"{work.step.title}: paused, because {'; '.join(why.reasons)}. It goes on where it stopped."
    work.note("machine.needed", text, step=work.step.id)
    return Stopped(text)
