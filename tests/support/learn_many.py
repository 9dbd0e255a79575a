"""Lives many short experiments of the tiny student in one watch, and prints how full disk and state were after each, as JSON.

Again and again somebody kills its supervisor, its steps, or all of them.

python -m tests.support.learn_many STUDENT FOLDER EXPERIMENTS SECONDS
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.identity import alive
from longwatch.kernel.request import Verb
from longwatch.kernel.watch import Watch
from longwatch.learn import registry
from longwatch.learn.student.tiny import tiny_tasks
from longwatch.learn.tasks import Split, Task
from tests.support import learn_forks, tiny_watch
from tests.support.learn_forks import Nursery, supervised
from tests.support.learn_misfortunes import HOOKS
from tests.support.watching import ask, nothing_lives, open_steps, reading

WINDOW = {Split.TRAIN: 16, Split.DEV: 16, Split.CONFIRM: 20}
SEALED = 8
KILLS = 0.01
"""The chance of one, ten times a second."""


def made(root: Path, model: Path, experiments: int) -> Watch:
    """Return a watch with tasks for so many experiments, and for the one after them."""
    watch = tiny_watch.make(
        root,
        model,
        {**WINDOW, Split.SEALED: SEALED},
        training={"tasks_per_round": 16, "samples": 1, "max_steps": 40, "checkpoint_steps": 20},
        experiment={"rounds": 1},
        # It asks little time for each, and accepts often as long as there is something to learn.
        acceptance={"rule": "strict"},
    )
    files.replace(root / "tasks.jsonl", registry.encode(_tasks(experiments + 1)))
    return watch


def _tasks(windows: int) -> Iterator[Task]:
    sides = {split: tiny_tasks(count, seed=1, split=split) for split, count in WINDOW.items()}
    yield from tiny_tasks(SEALED, seed=1, split=Split.SEALED)
    for number in range(windows):
        for one in (task for some in sides.values() for task in some):
            # The same again under another name: what it costs to live with it is the same.
            yield msgspec.structs.replace(one, id=f"{one.id}-{number}", problem=f"{one.problem}-{number}")


def lived(watch: Watch, experiments: int, most_s: float) -> Iterator[dict]:
    """Supervise until so many are decided or the time is over, and yield how full it was after each."""
    nursery, began_s, told, draw = Nursery(HOOKS), time.monotonic(), 0, random.Random(1)
    try:
        pid = supervised(watch.root, nursery, "nothing", cycles=None)
        runs = True
        while runs:
            runs = os.waitpid(pid, os.WNOHANG) == (0, 0)
            number = tiny_watch.state(watch.root).experiment.number - 1
            if number > told:
                told = number
                yield {"experiment": number, "at_s": round(time.monotonic() - began_s, 1), **_full(watch)}
            if not runs:
                return
            if told >= experiments or time.monotonic() - began_s > most_s:
                ask(watch, Verb.STOP)
                learn_forks.ended(pid)
                return
            time.sleep(0.1)
            if draw.random() < KILLS:
                pid = _killed(watch, pid, draw, nursery)
    finally:
        nursery.close()


def _killed(watch: Watch, pid: int, draw: random.Random, nursery: Nursery) -> int:
    """Kill somebody, and return the supervisor that there is then."""
    victims = draw.choice(("supervisor", "steps", "all"))
    steps = open_steps(watch) if victims != "supervisor" else ()
    for identity in (step.identity for step in steps):
        if identity is not None and alive(identity):
            os.kill(identity.pid, signal.SIGKILL)
    if victims == "steps":
        return pid
    os.kill(pid, signal.SIGKILL)
    learn_forks.ended(pid)
    return supervised(watch.root, nursery, "nothing", cycles=None)


def _full(watch: Watch) -> dict:
    with reading(watch) as store:
        line = len(store.snapshot().line)
    accepted = sum(bool(one.adapter) for one in tiny_watch.state(watch.root).history)
    sizes = {path.name: _size_bytes(path) for path in watch.hidden.iterdir()}
    database = sum(size for name, size in sizes.items() if name.startswith(watch.database.name))
    adapters = sizes.get("adapters", 0)
    counted = {
        "accepted": accepted,
        "line": line,
        "database": database,
        "adapters": adapters,
        "receipts": sizes.get("receipts", 0),
    }
    return {**counted, "rest": sum(sizes.values()) - database - adapters - counted["receipts"]}


def _size_bytes(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for parent, _, names in os.walk(path):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:
                continue  # a step works there
    return total


def main(model: Path, folder: Path, experiments: int, most_s: float) -> dict:
    """Return what was seen."""
    watch = made(folder, model, experiments)
    full = list(lived(watch, experiments, most_s))
    # Training and the preparation beside it have both obeyed the stop.
    nothing_lives(watch)
    return {"full": full}


if __name__ == "__main__":
    learn_forks.begin()
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
