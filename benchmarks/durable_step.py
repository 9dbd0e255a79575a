"""One durable move (state and the event that explains it, on the disk) against a bare commit and against DBOS.

The bare commit is one row into SQLite in WAL mode with synchronous=FULL: as cheap as a promise to survive a power loss
gets. DBOS is asked for one step of a trivial workflow on its default database, a SQLite file; only the steps are
timed, not the workflow around them.
"""

import importlib.util
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from _common import Figure, Result, per_call_s, show

from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle
from longwatch.kernel.store import Store

AT_MOST_OF_BARE = 1.66
TIMES_CHEAPER_THAN_DBOS = 15.0
DBOS_STEPS = 200


def bare(path: Path) -> Callable[[], object]:
    """Return a commit of one row of 200 bytes."""
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("PRAGMA journal_mode = WAL")
    sql.execute("PRAGMA synchronous = FULL")
    sql.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    body = b"x" * 200

    def commit() -> None:
        sql.execute("BEGIN IMMEDIATE")
        sql.execute("INSERT INTO rows (body) VALUES (?)", (body,))
        sql.execute("COMMIT")

    return commit


def ours(path: Path) -> Callable[[], object]:
    """Return a move: a new state of the kernel and of the line, and one event in the chain."""
    store = Store.create(path, b"{}")
    generation = store.begin_generation(Note("supervisor.began", "A benchmark supervises."))
    note = Note("step.done", "A step of the benchmark is done.", {"step": "bench"})
    state = b'{"done":["' + b"x" * 150 + b'"]}'
    return lambda: store.commit(generation, notes=(note,), lifecycle=Lifecycle(), line=state)


DBOS_PROGRAM = """
import sys, time
from dbos import DBOS
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{sys.argv[1]}/dbos.sqlite", "log_level": "ERROR"})

@DBOS.step()
def step(number):
    return number

@DBOS.workflow()
def workflow(count):
    began = time.perf_counter()
    for number in range(count):
        step(number)
    return (time.perf_counter() - began) / count

DBOS.launch()
workflow(20)
print(workflow(int(sys.argv[2])))
DBOS.destroy()
"""


def dbos_step_s(folder: Path) -> float:
    """Return the mean seconds of one step, measured in a process of its own."""
    argv = (sys.executable, "-c", DBOS_PROGRAM, str(folder), str(DBOS_STEPS))
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def measure(folder: Path) -> Result:
    """Measure all three on the same disk."""
    bare_s, ours_s = per_call_s((bare(folder / "bare.db"), ours(folder / "ours.db")), rounds=40, block=25)
    against_bare = Figure(
        what="one durable move",
        ours=ours_s * 1e6,
        unit="us",
        peer="a bare SQLite commit (WAL, FULL)",
        theirs=bare_s * 1e6,
        goal=f"at most {AT_MOST_OF_BARE} x",
        met=ours_s <= AT_MOST_OF_BARE * bare_s,
    )
    if importlib.util.find_spec("dbos") is None:
        return Result(
            (against_bare,), ("  DBOS is not installed here, so it was not measured: pip install '.[bench]'",)
        )
    dbos_s = dbos_step_s(folder)
    against_dbos = Figure(
        what="one durable move",
        ours=ours_s * 1e6,
        unit="us",
        peer="one durable step of DBOS (SQLite, its default)",
        theirs=dbos_s * 1e6,
        goal=f"{TIMES_CHEAPER_THAN_DBOS:g} x cheaper",
        met=ours_s * TIMES_CHEAPER_THAN_DBOS <= dbos_s,
    )
    return Result((against_bare, against_dbos), (f"  DBOS / ours: {dbos_s / ours_s:.1f}",))


if __name__ == "__main__":
    show("A durable step", measure)
