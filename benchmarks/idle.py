"""What a supervisor costs that waits: CPU and memory of `longwatch run` over ten seconds, against a sleeping interpreter."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
from _common import Figure, Result, show, supervised, until, watch_of_a_repository

from longwatch.kernel.lifecycle import Phase
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

SECONDS = 10.0
CPU_GOAL_PERCENT = 0.5
MEMORY_GOAL_MB = 60.0
NO_ROOM = f"\n[host]\nfree_disk_bytes = {2**60}\n"
"""So much free space that no disk has it: the watch waits, and says why."""


def waits(watch: Watch) -> bool:
    """Return whether the watch is in the phase `waiting`."""
    store = Store.read(watch.database)
    try:
        return store.snapshot().lifecycle.phase is Phase.WAITING
    finally:
        store.close()


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds that a process used so far, as the scheduler counts them.

    Clock ticks will not do: a process that a timer wakes is on the processor at every tick it is charged for.
    """
    spent_ns, _, _ = Path(f"/proc/{process.pid}/schedstat").read_text(encoding="ascii").split()
    return int(spent_ns) / 1e9


def measure(folder: Path) -> Result:
    """Measure both processes over the same ten seconds."""
    watch = watch_of_a_repository(folder, "true", settings=NO_ROOM)
    sleeper = (sys.executable, "-c", f"import time; time.sleep({SECONDS * 10})")
    with supervised(watch) as ours, subprocess.Popen(sleeper) as theirs:
        until(lambda: waits(watch))
        time.sleep(1.0)
        seen = [psutil.Process(process.pid) for process in (ours, theirs)]
        before, began = [cpu_s(process) for process in seen], time.monotonic()
        time.sleep(SECONDS)
        lasted = time.monotonic() - began
        percents = [
            100 * (cpu_s(process) - used) / lasted for process, used in zip(seen, before, strict=True)
        ]
        megabytes = [process.memory_info().rss / 1e6 for process in seen]
        theirs.kill()
    figures = (
        ("CPU of a waiting supervisor", "% of a core", percents, CPU_GOAL_PERCENT),
        ("memory of a waiting supervisor", "MB", megabytes, MEMORY_GOAL_MB),
    )
    return Result(
        tuple(
            Figure(
                what=what,
                ours=values[0],
                unit=unit,
                peer="a sleeping interpreter",
                # The clock of the kernel ticks a hundred times a second: below one tick nothing can be seen.
                theirs=max(values[1], 0.1),
                goal=f"under {goal:g} {unit}",
                met=values[0] < goal,
            )
            for what, unit, values, goal in figures
        )
    )


if __name__ == "__main__":
    show("An idle supervisor", measure)
