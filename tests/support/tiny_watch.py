"""Learn watches on the tiny student, and what can be seen of them from outside.

What many tests need is made once for all of them, also where they run in several processes: `student`, `stubborn` (one
that takes longer to teach), `prepared` (its tasks are chosen, nothing is trained) and `finished` (one experiment,
accepted). Tests copy a watch before they change it.
"""

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import tomlkit

from longwatch.kernel import files
from longwatch.kernel.watch import Watch
from longwatch.learn import registry
from longwatch.learn.state import LearnState
from longwatch.learn.student.tiny import make_tiny, tiny_tasks
from longwatch.learn.tasks import Split, Task
from tests.support.watching import reading

LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "400"}
COUNTS = {Split.TRAIN: 64, Split.DEV: 16, Split.CONFIRM: 40, Split.SEALED: 12}
SETTINGS = {
    "student": {"batch": 16, "max_new_tokens": 32},
    "curriculum": {"source": "tasks.jsonl"},
    "training": {
        "samples": 2,
        "temperature": 0.8,
        "tasks_per_round": 32,
        "batch": 1,
        "rank": 16,
        "max_steps": 500,
        "checkpoint_steps": 20,
    },
    "experiment": {"rounds": 2},
    "backoff": {"first_s": 0.2, "max_s": 1.0},
    "host": {"free_disk_bytes": 0},
}

# -- making watches


def tasks(counts: dict[Split, int]) -> list[Task]:
    """Rows in which every side comes early, as in a real source."""
    every = [task for split, count in counts.items() for task in tiny_tasks(count, seed=1, split=split)]
    random.Random(3).shuffle(every)
    return every


def make(
    root: Path,
    model: Path,
    counts: dict[Split, int] = COUNTS,
    *,
    change: Callable[[Task], Task] = lambda task: task,
    **tables: dict[str, object],
) -> Watch:
    """Make a new learn watch; `tables` change its settings."""
    root.mkdir()
    call(root, "init", "learn", check=True)
    files.replace(root / "tasks.jsonl", registry.encode(map(change, tasks(counts))))
    sides = {f"{name}_tasks": counts[split] for name, split in _SIDES.items()}
    configure(root, **SETTINGS)
    configure(root, student={"model": str(model)}, curriculum=sides)
    configure(root, acceptance={"sealed_tasks": counts[Split.SEALED]})
    configure(root, **tables)
    return Watch(root)


_SIDES = {"train": Split.TRAIN, "dev": Split.DEV, "confirm": Split.CONFIRM}


def configure(root: Path, **tables: dict[str, object]) -> None:
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text())
    for name, table in tables.items():
        config.setdefault(name, tomlkit.table()).update(table)
    path.write_text(tomlkit.dumps(config))


def copy(source: Path, target: Path) -> Watch:
    """Copy a watch that nobody supervises, with its links, modes and times."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
    return Watch(target)


# -- made once


def once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return a folder that `build` made; the first process of this run that asks makes it, the others wait."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = base / f"once-{name}", base / f"once-{name}.done"
    with (base / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            done.touch()
    return folder


def student(factory: pytest.TempPathFactory) -> Path:
    return once(factory, "student", lambda folder: make_tiny(folder, seed=2, confused=0.55))


def stubborn(factory: pytest.TempPathFactory) -> Path:
    return once(factory, "stubborn", lambda folder: make_tiny(folder, seed=2))


def prepared(factory: pytest.TempPathFactory) -> Path:
    """A paused watch with a window of tasks, in which nothing was trained yet."""

    def build(root: Path) -> None:
        prepare(make(root, student(factory)))

    return once(factory, "prepared", build)


def prepare(watch: Watch) -> None:
    """Run until the tasks are chosen, and pause there."""
    with running(watch.root) as supervisor:
        wait_for(lambda: any(watch.steps.glob("prepare.*/step.json")), supervisor)
        call(watch.root, "pause", "--after-step", check=True)
        assert supervisor.wait(300) == 0
    assert "window.prepared" in kinds(watch.root)


def finished(factory: pytest.TempPathFactory) -> Path:
    """The prepared watch after one undisturbed experiment."""

    def build(root: Path) -> None:
        copy(prepared(factory), root)
        finish(root)

    return once(factory, "finished", build)


def finish(root: Path) -> subprocess.CompletedProcess[str]:
    """Let a paused watch go on to the end of its experiment."""
    call(root, "resume", check=True)
    run = call(root, "run", "--max-cycles", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    return run


# -- running them


def call(
    root: Path, *arguments: str, check: bool = False, **variables: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*LONGWATCH, *arguments],
        cwd=root,
        env={**ENVIRONMENT, "LONGWATCH_LOCKS": str(root), **variables},
        check=check,
        capture_output=True,
        text=True,
        timeout=500,
    )


@contextmanager
def running(root: Path, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Supervise beside the test. A supervisor that is left running is killed."""
    argv = [*LONGWATCH, "run", *arguments]
    own = {**ENVIRONMENT, "LONGWATCH_LOCKS": str(root)}
    supervisor = subprocess.Popen(argv, cwd=root, env=own, stdout=subprocess.DEVNULL)
    try:
        yield supervisor
    finally:
        supervisor.kill()
        supervisor.wait()


def wait_for(
    condition: Callable[[], object], supervisor: "subprocess.Popen[bytes]", within_s: float = 240
) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert supervisor.poll() is None, "the watch ended before it came so far"
        assert time.monotonic() < deadline_s, "it did not come in time"
        time.sleep(0.02)


# -- what can be seen


def events(root: Path) -> list[dict]:
    return [json.loads(line) for line in call(root, "events", "--json", check=True).stdout.splitlines()]


def kinds(root: Path) -> list[str]:
    return [event["kind"] for event in events(root)]


def state(root: Path) -> LearnState:
    with reading(Watch(root)) as store:
        return msgspec.json.decode(store.snapshot().line, type=LearnState)


def experiment(root: Path) -> Path:
    return root / ".longwatch" / "experiments" / "1"


def adapters_of(root: Path) -> list[str]:
    """The adapters that the rounds trained, by digest."""
    fitted = sorted(experiment(root).glob("round-*/fitted.json"))
    return [json.loads(path.read_bytes())["adapter"] for path in fitted]


def result_of(root: Path) -> dict:
    """All that an experiment decided, and what it rests on."""
    found = state(root)
    return {
        "adapters": adapters_of(root),
        "pairs": {path.name: path.read_text() for path in (experiment(root) / "pairs").glob("*.json")},
        "decided": [[one.decision, *one.sentences] for one in found.history],
        "champion": found.champion,
        "store": sorted(path.name for path in (root / ".longwatch" / "adapters").glob("*")),
    }


def told_once(root: Path, *more: str) -> None:
    """Each window, experiment, nomination and acceptance stands in the journal once."""
    told = kinds(root)
    for kind in ("window.prepared", "experiment.decided", *more):
        assert told.count(kind) == 1, (kind, told)
