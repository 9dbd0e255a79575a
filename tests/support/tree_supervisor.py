"""Runs a runaway program as a step program would, and is there to be killed. Arguments: folder, cookie, way, token."""

import os
import sys
from pathlib import Path

from longwatch.kernel.child import Command
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import run

if __name__ == "__main__":
    folder, cookie, way, token = sys.argv[1:5]
    program = Path(__file__).with_name("tree_runaway.py")
    starter = f"{sys.executable} {program} {way} {token}; echo started; exec sleep 600"
    run(
        Command(
            argv=("/bin/sh", "-c", starter),
            cwd=Path(folder),
            environment={"PATH": os.environ["PATH"]},
            log=Path(folder, "log"),
            limits=Limits(wall_s=600),
            phase="test",
        ),
        cookie=cookie,
    )
