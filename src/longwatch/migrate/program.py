"""The program of a migrate watch's steps: `python -I -m longwatch.migrate.program [confirm] FOLDER`."""

import os
import sys
from pathlib import Path

from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work, main
from longwatch.kernel.redact import Redactor
from longwatch.kernel.watch import Watch
from longwatch.migrate import settings
from longwatch.migrate.place import Place
from longwatch.migrate.steps import Attempt, Commit, Handoff, Merge, MigrateStep, Push, Survey, Verify


def perform(work: Work[MigrateStep], *, confirm: bool) -> Outcome:
    """Perform one step in the watch that its folder belongs to."""
    watch = Watch(work.folder.parents[2])
    place = Place(watch, settings.load(watch.root))
    named = (*place.settings.observe.secrets, *place.settings.worker.environment)
    work.redactor = Redactor(tuple(os.environ[name] for name in named if os.environ.get(name)))
    return _perform(work, place, confirm=confirm)


def _perform(  # noqa: PLR0911 - a table, one row for each kind of step
    work: Work[MigrateStep], place: Place, *, confirm: bool
) -> Outcome:
    """Load what one kind of step needs and no more: a start is paid for at every step."""
    match work.step:
        case Survey():
            from longwatch.migrate.queue import survey  # noqa: PLC0415 - see above

            return survey.perform(work, work.step, place)
        case Attempt():
            from longwatch.migrate.attempt import conduct  # noqa: PLC0415 - see above

            return conduct.perform(work, work.step, place)
        case Handoff():
            from longwatch.migrate.attempt import handoff  # noqa: PLC0415 - see above

            return handoff.perform(work, work.step, place)
        case Verify():
            from longwatch.migrate.checks import verification  # noqa: PLC0415 - see above

            return verification.perform(work, work.step, place)
        case Merge():
            from longwatch.migrate.repository import merging  # noqa: PLC0415 - see above

            return merging.perform(work, work.step, place)
        case Commit():
            from longwatch.migrate.repository import publishing  # noqa: PLC0415 - see above

            return publishing.commit(work, work.step, place, confirm=confirm)
        case Push():
            from longwatch.migrate.repository import publishing  # noqa: PLC0415 - see above

            return publishing.push(work, work.step, place)


def entry() -> int:
    """Run the step in the folder that the command line ends with."""
    confirm = "confirm" in sys.argv[1:-1]

    def performed(work: Work[MigrateStep]) -> Outcome:
        return perform(work, confirm=confirm)

    return main(Path(sys.argv[-1]), MigrateStep, performed)


if __name__ == "__main__":
    sys.exit(entry())
