"""How long a child that does nothing is left alone after its idle limit, against coreutils' `timeout` at the same time."""

import os
import statistics
import subprocess
import time
from pathlib import Path

from _common import Figure, Result, show

from longwatch.kernel.child import Command
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import run

LIMIT_S = 3.0
GOAL_S = 1.0
RUNS = 3
STALLS = ("sh", "-c", "echo working; exec sleep 600")


def ours_s(folder: Path, number: int) -> float:
    """Return the seconds from the start of a stalled child to the end of all that it was."""
    command = Command(
        argv=STALLS,
        cwd=folder,
        environment={"PATH": os.environ["PATH"]},
        log=folder / f"log-{number}",
        limits=Limits(wall_s=600.0, idle_s=LIMIT_S, grace_s=5.0),
        phase="benchmark",
    )
    began = time.monotonic()
    record = run(command)
    if record.limit is not LimitHit.IDLE:
        raise SystemExit(f"it was ended by {record.limit}, not for being idle")
    return time.monotonic() - began


def theirs_s(folder: Path) -> float:
    """Return the seconds that `timeout` lets the same program run."""
    began = time.monotonic()
    subprocess.run(("timeout", f"{LIMIT_S:g}", *STALLS), cwd=folder, stdout=subprocess.DEVNULL, check=False)
    return time.monotonic() - began


def measure(folder: Path) -> Result:
    """Measure both in turns."""
    pairs = [(ours_s(folder, number), theirs_s(folder)) for number in range(RUNS)]
    ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    late_s = ours - LIMIT_S
    figure = Figure(
        what=f"a stalled child with an idle limit of {LIMIT_S:g} s is gone",
        ours=ours,
        unit="s",
        peer=f"timeout {LIMIT_S:g} (it cannot see idleness)",
        theirs=theirs,
        goal=f"within {GOAL_S:g} s of the limit",
        met=late_s <= GOAL_S,
    )
    return Result((figure,), (f"  found and ended {late_s:.2f} s after the limit",))


if __name__ == "__main__":
    show("A stalled child", measure)
