"""From `kill -9` of a supervisor in the middle of a step to the resumed step's beginning, against a bare interpreter.

A real watch with a real worker: `longwatch run` is killed, a new one is started at once, and the event log says when
the step began again, or was found alive and taken over. The proof that the sandbox holds is part of the time.
"""

import statistics
import time
from datetime import datetime
from pathlib import Path

from _common import BARE, Figure, Result, per_call_s, ran, show, supervised, until, watch_of_a_repository

from longwatch.kernel.identity import alive
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

GOAL_S = 0.5
RUNS = 5
BEGUN = frozenset({"step.again", "step.adopted", "step.started"})


def begun_at(watch: Watch, after: int) -> float | None:
    """Return when the first step began after an event, in seconds since the epoch."""
    store = Store.read(watch.database)
    try:
        found = (event for event in store.events(after=after) if event.kind in BEGUN)
        first = next(found, None)
        return None if first is None else datetime.fromisoformat(first.at).timestamp()
    finally:
        store.close()


def last_event(watch: Watch) -> int:
    """Return the number of the last event."""
    store = Store.read(watch.database)
    try:
        return store.snapshot().seq
    finally:
        store.close()


def working(watch: Watch) -> bool:
    """Return whether the program of an attempt runs and shows signs of life."""
    store = Store.read(watch.database)
    try:
        running = [
            step.id for step in store.open_steps() if step.identity is not None and alive(step.identity)
        ]
    finally:
        store.close()
    return any("attempt" in name and (watch.step(name) / "progress.json").exists() for name in running)


def resumed_s(watch: Watch) -> float:
    """Kill the running supervisor, start another one, and return how long the step stood still."""
    with supervised(watch) as first:
        until(lambda: working(watch))
        seen = last_event(watch)
        killed = time.time()
        first.kill()
        first.wait()
        with supervised(watch):
            until(lambda: begun_at(watch, seen) is not None)
    return (begun_at(watch, seen) or killed) - killed


def measure(folder: Path) -> Result:
    """Measure several resumes of one watch."""
    watch = watch_of_a_repository(folder, "sleep", "600")
    ours_s = statistics.median(resumed_s(watch) for _ in range(RUNS))
    (bare_s,) = per_call_s((lambda: ran(BARE, folder),), rounds=RUNS, block=1)
    figure = Figure(
        what="kill -9 to the step begun again",
        ours=ours_s * 1000,
        unit="ms",
        peer="a bare interpreter (python -c pass)",
        theirs=bare_s * 1000,
        goal=f"under {GOAL_S:g} s",
        met=ours_s < GOAL_S,
    )
    return Result((figure,))


if __name__ == "__main__":
    show("Resuming after kill -9", measure)
