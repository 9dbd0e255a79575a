"""Runs one prepared experiment again and again, each time with another misfortune, and prints what came of it as JSON.

python -m tests.support.learn_killer PREPARED FOLDER TRIAL...
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from longwatch.kernel import files
from longwatch.kernel.clock import now
from longwatch.kernel.crew import read_progress
from longwatch.kernel.identity import alive
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Start
from longwatch.kernel.request import Verb
from longwatch.kernel.store import Ended, Intended, Store
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, settings
from longwatch.learn.evidence import succeeded
from longwatch.learn.experiment import meter
from longwatch.learn.generations import binding
from longwatch.learn.line import LearnLine
from longwatch.learn.place import Place
from longwatch.learn.steps import Bind, Challenger, Trained
from tests.support import learn_forks, tiny_watch
from tests.support.learn_forks import Nursery, ended, supervised
from tests.support.learn_misfortunes import HOOKS
from tests.support.watching import ask, nothing_lives, open_steps, reading, until


class Trial:
    """A copy of the prepared watch, its supervisors, and what is told of it."""

    def __init__(self, prepared: Path, folder: Path, name: str, nursery: Nursery) -> None:
        self.root = tiny_watch.copy(prepared, folder / name).root
        self.ledger = folder / f"{name}.ledger"
        self.ledger.touch()
        self._nursery, self._began_s = nursery, time.monotonic()

    def begin(self, *hook: str) -> int:
        pid = supervised(self.root, self._nursery, *hook)
        Path(f"{self.ledger}.supervisor").write_text(str(pid))
        return pid

    def live(self, *hook: str) -> int:
        """Supervise once, and return how that ended."""
        return ended(self.begin(*hook))

    @property
    def decided(self) -> bool:
        return bool(tiny_watch.state(self.root).history)

    def told(self, **more: object) -> dict:
        wall_s = time.monotonic() - self._began_s
        nothing_lives(Watch(self.root))
        with reading(Watch(self.root)) as store:
            events, broken = tuple(store.events()), store.chain()
            left = [step.id for step in store.open_steps()]
        return {
            "wall_s": wall_s,
            "active_s": meter.read(tiny_watch.experiment(self.root)).total_s,
            "events": [[event.kind, event.text] for event in events],
            "chain": broken,
            "left": left,
            "moments": self.ledger.read_text().split(),
            "result": tiny_watch.result_of(self.root),
            **more,
        }


def whole(trial: Trial) -> dict:
    return trial.told(code=trial.live("nothing"))


def writes(trial: Trial) -> dict:
    while not trial.decided:
        trial.live("dies_at_each_write", str(trial.ledger))
    return trial.told()


def damage(trial: Trial) -> dict:
    """Killed after a checkpoint, which is then damaged, three times in three ways."""
    for step, spoil in ((40, _flip), (60, _cut), (80, _unmark)):
        name = f"step-{step:06d}-00"
        assert trial.live("dies_after", name, str(trial.ledger)) == -signal.SIGKILL
        spoil(next(tiny_watch.experiment(trial.root).glob(f"round-*/training/{name}")))
    trial.live("nothing")
    kept = [path.name for path in tiny_watch.experiment(trial.root).glob("round-*/training/quarantined-*")]
    return trial.told(quarantined=sorted(kept))


def _flip(checkpoint: Path) -> None:
    weights = checkpoint / "adapter_model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)


def _cut(checkpoint: Path) -> None:
    os.truncate(checkpoint / "optimiser.safetensors", 1000)


def _unmark(checkpoint: Path) -> None:
    (checkpoint / "COMPLETE").unlink()


def clock(trial: Trial) -> dict:
    return trial.told(code=trial.live("clock_steps", str(trial.ledger)))


def cells(trial: Trial) -> dict:
    return trial.told(code=trial.live("loses_cells", str(trial.ledger)))


def at_random(trial: Trial, seed: int) -> dict:
    """Five times somebody is killed at a random moment: the supervisor, the program of a step, or both."""
    draw, victims, pid = random.Random(seed), [], 0
    for _ in range(5):
        if trial.decided:
            break
        pid = pid or trial.begin("nothing")
        time.sleep(draw.uniform(0.1, 2.5))
        victim = draw.choice(("supervisor", "step", "both"))
        victims.append(victim)
        if victim != "supervisor":
            _kill_steps(trial.root)
        if victim != "step":
            os.kill(pid, signal.SIGKILL)
            ended(pid)
            pid = 0
    if pid:
        ended(pid)
    while not trial.decided:
        trial.live("nothing")
    return trial.told(victims=victims)


def pauses(trial: Trial) -> dict:
    """Paused in every phase of its training step, and resumed."""
    watch, codes, active_s = Watch(trial.root), [], []
    for phase in ("load", "generate", "grade", "train"):
        pid = trial.begin("nothing")
        until(lambda phase=phase: phase in _phases(watch))
        ask(watch, Verb.PAUSE)
        codes.append(ended(pid))
        nothing_lives(watch)
        active_s.append(meter.read(tiny_watch.experiment(trial.root)).total_s)
        ask(watch, Verb.RESUME)
    trial.live("nothing")
    return trial.told(codes=codes, paused_at_s=active_s)


def _phases(watch: Watch) -> list[str]:
    """What the steps that run are doing."""
    shown = [read_progress(watch, step.id) for step in open_steps(watch)]
    return [progress.phase for progress in shown if progress is not None]


def _kill_steps(root: Path) -> None:
    with reading(Watch(root)) as store:
        running = [step.identity for step in store.open_steps()]
    for identity in running:
        if identity is not None and alive(identity):
            os.kill(identity.pid, signal.SIGKILL)


def disk(trial: Trial, moment: str) -> dict:
    """The disk is full at one write. Somebody makes room when the watch has said so, or when its supervisor ended."""
    ballast = trial.root.parent / f"{trial.root.name}.ballast"
    pid, code = trial.begin("fills_the_disk", moment, str(ballast)), None
    while code is None and not (ballast.exists() and _said_full(trial.root)):
        found, status = os.waitpid(pid, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if found else None
        time.sleep(0.05)
    full = ballast.exists()
    ballast.unlink(missing_ok=True)
    if code is None:
        ended(pid)
    while not trial.decided:
        trial.live("nothing")
    return trial.told(full=full, ended=code)


def idle(trial: Trial) -> dict:
    """It trains as little as a recipe can say."""
    tiny_watch.configure(trial.root, training={"max_steps": 1, "learning_rate": 1e-6})
    return trial.told(code=trial.live("nothing"))


def noise(trial: Trial, seed: int) -> dict:
    """Somebody nominates an adapter of random numbers, loud or faint: fresh problems decide on it as on any other."""
    adapter = _nominated(trial, seed)
    watch, line = Watch(trial.root), LearnLine(settings.load(trial.root), trial.root)
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "A stranger."))
    state = tiny_watch.state(trial.root)
    decision = line.decide(state, {}, now())
    assert isinstance(decision, Start)
    (step,) = decision.steps
    assert isinstance(step, Bind)
    known = Place(watch, settings.load(watch.root))
    state, _ = line.apply(state, step, succeeded(binding.bind(step, known)), now())
    decision = line.decide(state, {}, now())
    assert isinstance(decision, Start)
    (step,) = decision.steps
    challenger = Challenger(adapter=adapter, round=1, dev_before=0, dev_after=9, dev_total=9)
    found = succeeded(Trained(rounds=(), dev_before=0, dev_total=9, challenger=challenger))
    state, notes = line.apply(state, step, found, now())
    begun = Intended(step.id, msgspec.json.encode(step), "stranger", now())
    ended_step = Ended(id=step.id, outcome=found, active_s=0.0)
    store.commit(generation, notes=notes, line=msgspec.json.encode(state), changes=(begun, ended_step))
    store.close()
    while not trial.decided:
        trial.live("nothing")
    return trial.told()


def _nominated(trial: Trial, seed: int) -> str:
    """Put the adapter of the undisturbed trial, with noise for weights, where nominated ones lie."""
    whole = next(tiny_watch.experiment(trial.root.parent / "whole").glob("round-*/training/adapter"))
    contents, draw = adapters.read(whole), np.random.default_rng(seed)
    weights = {
        name: draw.normal(0.0, 0.1 / seed**2, value.shape).astype(value.dtype)
        for name, value in sorted(tensors_of(contents[adapters.WEIGHTS]).items())
    }
    contents[adapters.WEIGHTS] = bytes_of(weights)
    adapter = adapters.address(contents)
    folder = files.make_folder(tiny_watch.experiment(trial.root) / "nominated" / adapter)
    for name, data in contents.items():
        files.replace(folder / name, data)
    return adapter


def _said_full(root: Path) -> bool:
    with reading(Watch(root)) as store:
        return any(event.kind == "step.failed" and "is full" in event.text for event in store.events())


TRIALS: dict[str, Callable[[Trial], dict]] = {
    "whole": whole,
    "writes": writes,
    "damage": damage,
    "pauses": pauses,
    "clock": clock,
    "cells": cells,
    "random-1": partial(at_random, seed=1),
    "random-2": partial(at_random, seed=2),
    "idle": idle,
    **{f"noise-{seed}": partial(noise, seed=seed) for seed in (1, 2, 3)},
    "disk-collecting": partial(disk, moment="collected.json"),
    "disk-training": partial(disk, moment="step-000060-00"),
    "disk-adopting": partial(disk, moment="receipt.json"),
}


def main(prepared: Path, folder: Path, names: list[str]) -> dict:
    folder.mkdir(exist_ok=True)
    nursery = Nursery(HOOKS)
    try:
        return {name: TRIALS[name](Trial(prepared, folder, name, nursery)) for name in names}
    finally:
        nursery.close()


if __name__ == "__main__":
    learn_forks.begin()
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
