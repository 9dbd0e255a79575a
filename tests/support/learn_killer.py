"""Runs one prepared experiment again and again, each time with another misfortune, and prints what came of it as JSON.

python -m tests.support.learn_killer PREPARED FOLDER TRIAL...
"""

import errno
import json
import os
import random
import re
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
from longwatch.kernel.identity import alive
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Start
from longwatch.kernel.store import Ended, Intended, Store
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, settings
from longwatch.learn.evidence import succeeded
from longwatch.learn.experiment import meter
from longwatch.learn.grading import relay, solitude
from longwatch.learn.line import LearnLine
from longwatch.learn.steps import Challenger, Trained
from tests.support import learn_forks, tiny_watch
from tests.support.learn_forks import Nursery, ended, supervised
from tests.support.watching import nothing_lives, reading

SHOWN = frozenset({"progress.json", "active-seconds.json"})
"""Signs of life: they are written all the time, and what they say may be lost."""
DAY_S = 86_400.0
_NUMBERED = re.compile(r"[0-9a-f]{64}|step-[0-9]+")

# -- misfortunes of a step's program


def nothing(_kind: str) -> None:
    """It has luck."""


def at_writes(misfortune: Callable[[str, str], None]) -> None:
    """Let it happen at each file or folder that is put in its place: once before, once after."""

    def publish(real, source, target, **named) -> None:
        name = Path(target).name
        if name in SHOWN:
            real(source, target, **named)
            return
        misfortune(name, "before")
        real(source, target, **named)
        misfortune(name, "after")

    for call in ("replace", "rename", "link"):
        setattr(os, call, partial(publish, getattr(os, call)))


def dies_at_each_write(kind: str, ledger: str) -> None:
    """Killed once at each kind of file, by turns before and after it is in its place, and each third time with its supervisor.

    Where there are many of a kind it dies before the first one that comes, and after the next.
    """
    known = Path(ledger).read_text().split()

    def die(name: str, when: str) -> None:
        moment, number = f"{kind}:{_NUMBERED.sub('*', name)}", len(known)
        many, deaths = "*" in moment, known.count(moment)
        if deaths > many or when != ("before", "after")[(deaths if many else number) % 2]:
            return
        with Path(ledger).open("a") as file:
            file.write(f"{moment}\n")
        if number % 3 == 0:
            os.kill(int(Path(f"{ledger}.supervisor").read_text()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    if kind in {"train", "confirm", "anchor", "adopt"}:
        at_writes(die)


def dies_after(kind: str, wanted: str, ledger: str) -> None:
    """Killed with its supervisor right after one write."""

    def die(name: str, when: str) -> None:
        if (name, when) == (wanted, "after"):
            os.kill(int(Path(f"{ledger}.supervisor").read_text()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    if kind != "supervisor":
        at_writes(die)


def fills_the_disk(kind: str, wanted: str, ballast: str) -> None:
    """The disk is full from one write on, until somebody removes the ballast."""
    mark = Path(f"{ballast}.mark")

    def fill(name: str, when: str) -> None:
        if (name, when) != (wanted, "before") or mark.exists():
            return
        mark.touch()
        with Path(ballast).open("ab", buffering=0) as file:
            for size in (65536, 4096, 512, 1):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    continue

    if kind != "supervisor":
        at_writes(fill)


def clock_steps(kind: str, ledger: str) -> None:
    """The wall clock jumps a day to and fro all the time; once the disk seems full, so that there is a wait."""
    real, calls, mark = time.time, iter(range(10**9)), Path(ledger)
    time.time = lambda: real() + DAY_S * ((next(calls) // 7) % 3 - 1)

    def refuse(name: str, when: str) -> None:
        if (name, when) == ("collected.json", "before") and not mark.read_text():
            mark.write_text("refused")
            raise OSError(errno.ENOSPC, "no space left on device")

    if kind != "supervisor":
        at_writes(refuse)


def loses_cells(kind: str, ledger: str) -> None:
    """Every third sandbox of the grader is killed from outside, but where its answer is judged again and alone."""
    calls, real, alone = iter(range(10**9)), relay.Cell.await_ready, solitude.Solitude.alone
    undisturbed = [False]

    def await_ready(cell) -> None:
        real(cell)
        if next(calls) % 3 == 0 and not undisturbed[0]:
            with Path(ledger).open("a") as file:
                file.write(f"{kind}\n")
            cell._process.send_signal(signal.SIGKILL)

    class Alone:
        def __init__(self, inner) -> None:
            self._inner = inner

        def __enter__(self) -> None:
            self._inner.__enter__()
            undisturbed[0] = True

        def __exit__(self, *why) -> None:
            undisturbed[0] = False
            self._inner.__exit__(*why)

    relay.Cell.await_ready = await_ready
    solitude.Solitude.alone = lambda one: Alone(alone(one))


HOOKS = {
    hook.__name__: hook
    for hook in (nothing, dies_at_each_write, dies_after, fills_the_disk, clock_steps, loses_cells)
}


# -- trials


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
