"""The person's own commands before each attempt (specification M34): if one fails, the watch waits and tries again."""

import os
from pathlib import Path

from longwatch.kernel.child import Command
from longwatch.kernel.errors import TransientError
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import run, tail
from longwatch.kernel.program import Work
from longwatch.migrate.place import Place
from longwatch.migrate.steps import MigrateStep

_WALL_S = 600.0


def pass_gate(work: Work[MigrateStep], place: Place, kept: Path) -> None:
    """Run `repository.preflight`; raise `TransientError` with the last lines of the first that fails."""
    for number, argv in enumerate(place.settings.repository.preflight, 1):
        command = Command(
            argv=argv,
            cwd=place.repository,
            environment=dict(os.environ),
            log=kept / f"preflight-{number}.log",
            limits=Limits(wall_s=_WALL_S),
            phase="preflight",
        )
        with work.span("preflight", argv[0]):
            record = run(command, should_stop=work.should_stop)
        work.record(record)
        if not record.ok:
            raise TransientError(f"preflight `{' '.join(argv)}` failed:\n{tail(command.log, 10)}")
