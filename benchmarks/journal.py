"""A watch with a million events: how long `status` takes, a search on the page, `timings`, and how fast the chain is checked."""

import sqlite3
import time
from pathlib import Path

from _common import LONGWATCH, Figure, Result, per_call_s, ran, show, watch_of_a_repository

from longwatch.kernel.journal import Note
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import timings
from longwatch.observe.web import answers

EVENTS = 1_000_000
PER_COMMIT = 10_000
STATUS_GOAL_S = 0.2
VERIFY_GOAL = 200_000
SEARCH_GOAL_S = 1.0
TIMINGS_GOAL_S = 5.0


def fill(watch: Watch) -> None:
    """Write the events by the ordinary way, many to a transaction."""
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "A benchmark supervises."))
    note = Note(
        "step.started", "greeting: attempt 1 begins.", {"step": "greeting.1.attempt.1", "job": "greeting"}
    )
    for _ in range(EVENTS // PER_COMMIT):
        store.commit(generation, notes=(note,) * PER_COMMIT)
    store.close()


def verify_s(watch: Watch) -> float:
    """Return the seconds that checking the whole chain takes."""
    store = Store.read(watch.database)
    began = time.perf_counter()
    wrong = store.chain()
    taken = time.perf_counter() - began
    store.close()
    if wrong is not None:
        raise SystemExit(wrong)
    return taken


def search_s(watch: Watch) -> float:
    """Return the seconds of a search for words that are nowhere, in the stretches in which the page asks."""
    began, before = time.perf_counter(), 2**62
    while before > 1:
        found = answers.page(watch, before=before, kind="", text="words that are nowhere", limit=100)
        if found.events:
            raise SystemExit("the words are somewhere")
        before = found.reached
    return time.perf_counter() - began


def timings_s(watch: Watch) -> float:
    """Return the seconds of `timings`; here every event says something about time, which is the worst that can be."""
    began = time.perf_counter()
    timings.read(watch)
    return time.perf_counter() - began


def read_s(watch: Watch) -> float:
    """Return the seconds that only reading the same rows takes."""
    sql = sqlite3.connect(watch.database)
    began = time.perf_counter()
    for _ in sql.execute("SELECT seq, at, generation, kind, body, hash FROM events ORDER BY seq"):
        pass
    taken = time.perf_counter() - began
    sql.close()
    return taken


def measure(folder: Path) -> Result:
    """Measure both on one watch; the peer of `status` is the same watch when it was new."""
    watch = watch_of_a_repository(folder, "true")
    status = (*LONGWATCH, "status")
    (new_s,) = per_call_s((lambda: ran(status, watch.root),), rounds=11, block=1)
    fill(watch)
    (full_s,) = per_call_s((lambda: ran(status, watch.root),), rounds=11, block=1)
    verified, taken = EVENTS / verify_s(watch), read_s(watch)
    read, searched, timed = EVENTS / taken, search_s(watch), timings_s(watch)
    return Result((
        Figure(
            what="longwatch status with a million events",
            ours=full_s * 1000,
            unit="ms",
            peer="the same watch when it was new",
            theirs=new_s * 1000,
            goal=f"under {STATUS_GOAL_S * 1000:g} ms",
            met=full_s < STATUS_GOAL_S,
        ),
        Figure(
            what="events verified",
            ours=verified,
            unit="/s",
            peer="only read from SQLite",
            theirs=read,
            goal=f"over {VERIFY_GOAL:,}/s",
            met=verified > VERIFY_GOAL,
        ),
        *(_beside_reading(*row, read_s=taken) for row in (
            ("a search for words that are nowhere", searched, SEARCH_GOAL_S),
            ("longwatch timings", timed, TIMINGS_GOAL_S),
        )),
    ))  # fmt: skip


def _beside_reading(what: str, ours_s: float, goal_s: float, *, read_s: float) -> Figure:
    return Figure(
        what=what,
        ours=ours_s,
        unit="s",
        peer="only read from SQLite",
        theirs=read_s,
        goal=f"under {goal_s:g} s",
        met=ours_s < goal_s,
    )


if __name__ == "__main__":
    show("A million events", measure)
