"""A learn watch among enemies: killed, paused, stopped dead and lied to, it ends at what it would have ended at."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.support import tiny_watch
from tests.support.tiny_watch import call, configure, events, kinds, running, wait_for
from tests.support.watching import kinds_of, nothing_lives, open_steps, until

from longwatch.kernel.identity import alive
from longwatch.kernel.program import LOG, PROGRESS, REPORT
from longwatch.kernel.watch import Watch
from longwatch.learn.experiment import meter

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

WORDS = "IntegrityError: digest mismatch, evidence is wrong"
"""Only what a type says blocks a watch, whatever stands in its name, its logs and its events."""


@pytest.fixture
def watch(tmp_path, tmp_path_factory):
    """A watch whose tasks are chosen. It goes on from there, under a name that means nothing."""
    (tmp_path / WORDS).mkdir()
    copied = tiny_watch.copy(tiny_watch.prepared(tmp_path_factory), tmp_path / WORDS / "watch")
    call(copied.root, "resume", check=True)
    return copied


def step_of(watch: Watch) -> Path | None:
    """The folder of the step that runs."""
    for step in open_steps(watch):
        if step.identity is not None and alive(step.identity):
            return watch.step(step.id)
    return None


def progress_of(watch: Watch) -> dict:
    step = step_of(watch)
    if step is None or not (step / PROGRESS).exists():
        return {"phase": "", "done": None}
    return msgspec.json.decode((step / PROGRESS).read_bytes())


def trains(watch: Watch) -> bool:
    progress = progress_of(watch)
    return progress["phase"] == "train" and (progress["done"] or 0) >= 5


def program_of(watch: Watch) -> int:
    (pid,) = [step.identity.pid for step in open_steps(watch) if step.identity is not None]
    return pid


def active_s(watch: Watch) -> float:
    return meter.read(tiny_watch.experiment(watch.root)).total_s


@pytest.mark.guarantee("L10", "L12", "L14", "L32", "K6", "K12", "K23", "K26", "K35")
def test_a_hard_night(watch, tmp_path_factory):
    """Killed in mid-training, bereft of its supervisor, stopped dead: it decides the same, and nothing twice."""
    began_s = time.monotonic()
    with running(watch.root, "--max-cycles", "1") as supervisor:
        wait_for(lambda: trains(watch), supervisor)
        print_in(watch, WORDS)
        os.kill(program_of(watch), signal.SIGKILL)
        supervisor.kill()
    until(lambda: step_of(watch) is None)
    with running(watch.root, "--max-cycles", "1") as supervisor:
        wait_for(lambda: trains(watch), supervisor)
        # From here on it hears no TERM.
        program = program_of(watch)
        os.kill(program, signal.SIGSTOP)
    second_worker(watch)
    print_in(watch, WORDS)
    with running(watch.root, "--max-cycles", "1") as supervisor:
        wait_for(lambda: "step.adopted" in kinds_of(watch), supervisor)
        assert program_of(watch) == program, "it outlived its supervisor and is waited for, not doubled"
        call(watch.root, "pause", check=True)
        assert supervisor.wait(60) == 0, "it has its grace, and not more"
    nothing_lives(watch)
    tiny_watch.finish(watch.root)
    assert tiny_watch.result_of(watch.root) == tiny_watch.result_of(tiny_watch.finished(tmp_path_factory))
    told = kinds(watch.root)
    for kind in ("window.prepared", "challenger.nominated", "champion.accepted", "experiment.decided"):
        assert told.count(kind) == 1
    assert told.count("experiment.lost") == 2
    assert [event["kind"] for event in events(watch.root) if f"\n{WORDS}" in event["text"]] == 2 * [
        "experiment.lost"
    ]
    assert "watch.blocked" not in told
    assert 0 < active_s(watch) < time.monotonic() - began_s


def print_in(watch: Watch, text: str) -> None:
    """Do what a library does that prints."""
    with (step_of(watch) / LOG).open("a") as log:
        log.write(f"{text}\n")


def second_worker(watch: Watch) -> None:
    """Somebody starts the same step once more: it ends at once, and has touched nothing."""
    step = step_of(watch)
    again = watch.root / ".longwatch" / "steps" / "again"
    again.mkdir()
    (again / "step.json").write_bytes((step / "step.json").read_bytes())
    subprocess.run(
        [sys.executable, "-I", "-m", "longwatch.learn.program", str(again)], check=True, timeout=60
    )
    report = msgspec.json.decode((again / REPORT).read_bytes())
    assert report["outcome"]["type"] == "failed", report
    assert re.search(r"process \d+ on", report["outcome"]["failure"]["message"]), "it names who works there"


@pytest.mark.guarantee("L7", "K26", "K15")
def test_a_registry_that_was_changed_blocks_until_a_person_has_mended_it(watch):
    path = watch.hidden / "windows" / "1" / "train.jsonl"
    right = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(right.replace(b"plus", b"minus", 1))
    for _ in range(2):
        run = call(watch.root, "run")
        assert run.returncode == 2, run.stdout + run.stderr
        assert str(path) in run.stdout
        assert "restore it" in run.stdout
    assert call(watch.root, "resume").returncode == 2
    told = events(watch.root)
    assert [event["kind"] for event in told].count("step.failed") == 1, "it is not tried again"
    path.write_bytes(right)
    call(watch.root, "resume", "--accept", check=True)
    with running(watch.root) as supervisor:
        wait_for(lambda: progress_of(watch)["phase"] == "load", supervisor)
        call(watch.root, "stop", check=True)
        assert supervisor.wait(60) == 0
    nothing_lives(watch)


@pytest.mark.guarantee("L33", "K17")
def test_code_in_the_folder_of_a_model_is_never_run(watch, tmp_path, tmp_path_factory):
    model, mark = tmp_path / "model", tmp_path / "ran"
    subprocess.run(["cp", "-a", str(tiny_watch.student(tmp_path_factory)), str(model)], check=True)
    config = msgspec.json.decode((model / "config.json").read_bytes())
    kind = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnModel"}
    (model / "config.json").write_bytes(
        msgspec.json.encode({**config, "model_type": "own", "architectures": ["OwnModel"], "auto_map": kind})
    )
    (model / "modeling_own.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    configure(watch.root, student={"model": str(model)}, backoff={"max_faults": 1})
    run = call(watch.root, "run")
    assert run.returncode == 2, run.stdout + run.stderr
    assert f"[student] model {model} cannot be loaded" in run.stdout
    assert not mark.exists()
