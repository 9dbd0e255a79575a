"""A whole learn watch on a tiny real student: collect, train, confirm, accept or refuse, also after kill -9."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit

from longwatch.kernel import files
from longwatch.kernel.digest import of_bytes
from longwatch.kernel.watch import Watch
from longwatch.learn import registry
from longwatch.learn.experiment import replay
from longwatch.learn.experiment.examples import Author
from longwatch.learn.experiment.meter import read
from longwatch.learn.student.tiny import make_tiny, tiny_tasks
from longwatch.learn.tasks import Split

LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")
COUNTS = {Split.TRAIN: 96, Split.DEV: 24, Split.CONFIRM: 80, Split.SEALED: 20}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny") / "student")


def tasks(*, taught: bool = True):
    """Rows in which every side comes early, as in a real source."""
    every = [task for split, count in COUNTS.items() for task in tiny_tasks(count, seed=1, split=split)]
    random.Random(3).shuffle(every)
    return every if taught else [mistaught(task) for task in every]


def mistaught(task):
    """A task whose reference is right and whose prompt asks for something else: nothing can be learned from it."""
    return msgspec.structs.replace(task, prompt=f"Say nothing about {task.id}.")


def watch_of(root: Path, student: Path, *, taught: bool = True, **training) -> Watch:
    root.mkdir()
    call(root, "init", "learn", check=True)
    files.replace(root / "tasks.jsonl", registry.encode(tasks(taught=taught)))
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text())
    config["student"].update({"model": str(student), "batch": 16, "max_new_tokens": 32})
    config["curriculum"].update(
        {"source": "tasks.jsonl", "train_tasks": 96, "dev_tasks": 24, "confirm_tasks": 80}
    )
    config["training"].update(
        {
            "samples": 4,
            "temperature": 0.8,
            "tasks_per_round": 48,
            "batch": 1,
            "rank": 16,
            "max_steps": 500,
            **training,
        }
    )
    config["experiment"]["rounds"] = 2
    config["acceptance"]["sealed_tasks"] = 20
    config["backoff"] = {"first_s": 0.2, "max_s": 1.0}
    path.write_text(tomlkit.dumps(config))
    return Watch(root)


def call(root: Path, *arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*LONGWATCH, *arguments], cwd=root, env=environment, check=check, capture_output=True, text=True
    )


def events(root: Path) -> list[dict]:
    return [json.loads(line) for line in call(root, "events", "--json", check=True).stdout.splitlines()]


def kinds(root: Path) -> list[str]:
    return [event["kind"] for event in events(root)]


@pytest.mark.guarantee("L6", "L7", "L8", "L9", "L13", "L17", "L26", "L33", "L35", "K31", "K32")
def test_a_student_that_learns_is_accepted_on_fresh_problems(tmp_path, student):
    root = tmp_path / "watch"
    watch_of(root, student)
    run = call(root, "run", "--max-cycles", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    happened = kinds(root)
    for earlier, later in (
        ("window.prepared", "round.finished"),
        ("round.finished", "challenger.nominated"),
        ("challenger.nominated", "block.confirmed"),
        ("block.confirmed", "anchor.compared"),
        ("anchor.compared", "champion.accepted"),
    ):
        assert happened.index(earlier) < happened.index(later)
    assert len(list((root / ".longwatch" / "adapters").iterdir())) == 1
    verified = call(root, "verify")
    assert verified.returncode == 0, verified.stdout
    assert "experiment-1: decision PASSED" in verified.stdout
    status = json.loads(call(root, "status", "--json", check=True).stdout)
    assert dict(status["summary"])["champion"] != "base"
    assert_it_will_be_replayed(root)


def assert_it_will_be_replayed(root: Path) -> None:
    """What taught the champion is in the replay, and its lineage is bound to that."""
    (path,) = (root / ".longwatch" / "replay").iterdir()
    examples = replay.load(path.parent, path.stem)
    assert {example.author for example in examples} <= set(Author)
    assert len({(example.task, example.answer) for example in examples}) == len(examples) > 0
    (adapter,) = (root / ".longwatch" / "adapters").iterdir()
    manifest = of_bytes((root / ".longwatch" / "windows" / "1" / "manifest.json").read_bytes())
    lineage = json.loads((adapter / "lineage.json").read_bytes())
    assert lineage["data"] == of_bytes(msgspec.json.encode((manifest, path.stem)))


@pytest.mark.guarantee("L26", "K32")
def test_an_accepted_adapter_that_is_changed_is_found(tmp_path, student):
    root = tmp_path / "watch"
    watch_of(root, student)
    assert call(root, "run", "--max-cycles", "1").returncode == 0
    (adapter,) = (root / ".longwatch" / "adapters").iterdir()
    weights = adapter / "adapter_model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.chmod(0o600)
    weights.write_bytes(content)
    verified = call(root, "verify")
    assert verified.returncode == 1
    assert "subject_mismatch" in verified.stdout


@pytest.mark.guarantee("L13", "L17", "L19")
def test_a_student_that_cannot_improve_is_never_accepted(tmp_path, student):
    root = tmp_path / "watch"
    watch_of(root, student, taught=False, teacher="none")
    assert call(root, "run", "--max-cycles", "1").returncode == 0
    assert "champion.accepted" not in kinds(root)
    assert not (root / ".longwatch" / "adapters").exists()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, student):
    """The adapters of a watch that nobody kills or pauses."""
    root = tmp_path_factory.mktemp("undisturbed") / "watch"
    watch_of(root, student)
    assert call(root, "run", "--max-cycles", "1").returncode == 0
    return adapters_of(root)


@pytest.mark.guarantee("L12", "L14", "L32", "K6", "K23")
def test_killed_in_mid_training_it_ends_at_the_same_adapter(tmp_path, student, undisturbed):
    killed = tmp_path / "killed"
    watch_of(killed, student)
    kill_in_training(killed)
    assert call(killed, "run", "--max-cycles", "1").returncode == 0
    assert "experiment.lost" in kinds(killed)
    assert adapters_of(killed) == undisturbed
    assert len([kind for kind in kinds(killed) if kind == "challenger.nominated"]) == 1


@pytest.mark.guarantee("L12", "L14", "K12")
def test_paused_in_every_phase_it_ends_at_the_same_adapter(tmp_path, student, undisturbed):
    root = tmp_path / "watch"
    watch_of(root, student)
    spent_s = [0.0]
    for phase in ("load", "generate", "grade", "train"):
        with started(root) as supervisor:
            wait_for(root, supervisor, lambda progress, phase=phase: progress["phase"] == phase)
            call(root, "pause", check=True)
            assert supervisor.wait() == 0
        assert kinds(root)[-2:] == ["watch.drained", "supervisor.ended"]
        assert list(living(root / ".longwatch" / "steps")) == [], "its memory is free"
        spent_s.append(active_s(root))
        assert spent_s[-1] >= spent_s[-2]
        call(root, "resume", check=True)
    assert call(root, "run", "--max-cycles", "1").returncode == 0
    assert adapters_of(root) == undisturbed
    assert active_s(root) > spent_s[-1]


def active_s(root: Path) -> float:
    return read(root / ".longwatch" / "experiments" / "1").total_s


def adapters_of(root: Path) -> list[str]:
    """The adapters that the rounds trained, by digest."""
    fitted = sorted((root / ".longwatch" / "experiments" / "1").glob("round-*/fitted.json"))
    return [json.loads(path.read_bytes())["adapter"] for path in fitted]


def kill_in_training(root: Path) -> None:
    with started(root) as supervisor:
        step = wait_for(
            root, supervisor, lambda progress: progress["phase"] == "train" and (progress["done"] or 0) >= 5
        )
    for process in living(step):
        os.kill(process, signal.SIGKILL)


@contextmanager
def started(root: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A supervisor, killed at the end if it still lives."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    supervisor = subprocess.Popen(
        [*LONGWATCH, "run", "--max-cycles", "1"], cwd=root, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        yield supervisor
    finally:
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()


def living(folder: Path) -> Iterator[int]:
    """Other processes that work in a step's folder, or in one below it."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and process.name != str(os.getpid()):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.startswith(str(folder).encode()) for word in words):
                yield int(process.name)


def wait_for(
    root: Path, supervisor: "subprocess.Popen[bytes]", holds: Callable[[dict[str, Any]], bool]
) -> Path:
    """The folder of an experiment's step whose sign of life is as wanted."""
    while supervisor.poll() is None:
        for path in (root / ".longwatch" / "steps").glob("train.*/progress.json"):
            if holds(json.loads(path.read_bytes())) and list(living(path.parent)):
                return path.parent
        time.sleep(0.02)
    pytest.fail("the watch ended before it came so far")


@pytest.mark.guarantee("L31")
def test_hours_change_only_in_an_idle_watch(tmp_path, student):
    root = tmp_path / "watch"
    watch_of(root, student)
    busy = call(root, "set-hours", "2")
    assert busy.returncode == 2
    assert "longwatch pause" in busy.stderr
    call(root, "pause", check=True)
    assert call(root, "run").returncode == 0
    for bad in ("0", "25", "nan"):
        assert call(root, "set-hours", bad).returncode == 2
    assert call(root, "set-hours", "2").returncode == 0
    assert tomlkit.parse((root / "longwatch.toml").read_text())["experiment"]["hours"] == 2
    assert "hours.changed" in kinds(root)
