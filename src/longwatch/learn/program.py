"""The program of a learn watch's steps: `python -I -m longwatch.learn.program FOLDER`."""

import os
import sys
from pathlib import Path

from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work, main
from longwatch.kernel.redact import Redactor
from longwatch.kernel.watch import Watch
from longwatch.learn import adopting, auditing, comparing, experiment, preparing, pruning
from longwatch.learn.generations import binding, entering
from longwatch.learn.place import Place
from longwatch.learn.readiness.guard import guarded
from longwatch.learn.steps import (
    ACCELERATOR,
    Adopt,
    Anchor,
    Audit,
    Bind,
    Confirm,
    LearnStep,
    Prepare,
    Prune,
    Train,
)


def perform(work: Work[LearnStep]) -> Outcome:
    """Perform one step in the watch that its folder belongs to, while the machine is ready for it."""
    place = entering.enter(work, Watch(work.folder.parents[2]))
    named = place.settings.secrets
    work.redactor = Redactor(tuple(os.environ[name] for name in named if os.environ.get(name)))
    if work.step.exclusive & ACCELERATOR:
        return guarded(work, place.watch, place.settings, lambda: _perform(work, place))
    return _perform(work, place)


def _perform(work: Work[LearnStep], place: Place) -> Outcome:  # noqa: PLR0911 - one return for each kind of step
    match work.step:
        case Prepare():
            return preparing.perform(work, work.step, place)
        case Prune():
            return pruning.perform(work, work.step, place)
        case Bind():
            return binding.perform(work, work.step, place)
        case Train():
            return experiment.perform(work, work.step, place.within(work.step.number))
        case Confirm():
            return comparing.confirmation(work, work.step, place.within(work.step.number))
        case Anchor():
            return comparing.comparison(work, work.step, place)
        case Adopt():
            return adopting.perform(work, work.step, place)
        case Audit():
            return auditing.perform(work, work.step, place)


if __name__ == "__main__":
    left = main(Path(sys.argv[-1]), LearnStep, perform)
    sys.stdout.flush()
    # The report is on the disk. Taking torch apart in good order would hold the student's memory for another second.
    os._exit(left)
