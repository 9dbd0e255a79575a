"""Trains the tiny student again and again in forks that are killed, resumes each, and prints what came out as JSON.

    python -m tests.support.train_killer points|random FOLDER

A fork of a program that has imported torch starts in a millisecond. A fork kills itself, with SIGKILL, as it enters its
n-th call that writes (or at its n-th sign of progress), so every moment of a checkpoint can be the last one.
"""

import json
import os
import random
import signal
import sys
import threading
import traceback
from pathlib import Path

import torch

from longwatch.learn.training import loop
from longwatch.learn.training.lora import Learner
from longwatch.learn.training.results import Resumed, Trained
from tests.support import train_tiny

CALLS = ("write", "fsync", "replace", "unlink", "rename", "mkdir", "rmdir")
RECIPE = {"max_steps": 5, "checkpoint_steps": 2}


class Death:
    """Counts what may be the last moment, and dies at one of them, or so many seconds after it."""

    def __init__(self, at=None, *, later_s=0.0):
        self.at, self.later_s, self.names, self.timer = at, later_s, [], None

    def moment(self, name):
        self.names.append(name)
        if len(self.names) != self.at:
            return
        if not self.later_s:
            self.die()
        self.timer = threading.Timer(self.later_s, self.die)
        self.timer.start()

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def due(self):
        """Wait for a death that is still to come."""
        if self.timer:
            self.timer.join()

    def wrap(self, name):
        real = getattr(os, name)

        def call(*arguments, **named):
            self.moment(name)
            return real(*arguments, **named)

        setattr(os, name, call)


def run(folder, death):
    for name in CALLS:
        death.wrap(name)
    told = []

    def stop():
        death.moment("micro-batch")
        return False

    def report(event):
        told.append(event)
        death.moment(type(event).__name__)

    job = train_tiny.job(folder, **RECIPE)
    result = loop.train(job, train_tiny.model(), train_tiny.ByteTokenizer(), should_stop=stop, report=report)
    assert isinstance(result, Trained), result
    resumed = [event for event in told if isinstance(event, Resumed)]
    return {
        "adapter": result.adapter,
        "losses": result.losses,
        "moments": death.names,
        "resumed": [event.step for event in resumed],
        "quarantined": [fault for event in resumed for fault in event.quarantined],
    }


def forked(folder, *, at=None, later_s=0.0):
    """Run in a fork; return what it found, or `None` if it was killed."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(readable)
            write = os.write
            death = Death(at, later_s=later_s)
            found = run(folder, death)
            death.due()
            write(writable, json.dumps(found).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - a fork must never go on as its parent
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return None
    assert code == 0
    return json.loads(found)


def points(folder):
    whole = forked(folder / "whole")
    moments = whole["moments"]
    # Every fourth moment of the second checkpoint, which has one before it; of the others the renames, the second call of
    # each kind, and a few more.
    steps = [number for number, name in enumerate(moments, 1) if name == "Progress"]
    places = {name: [number for number, other in enumerate(moments, 1) if other == name] for name in moments}
    chosen = {*range(16, len(moments) + 1, 24), *range(steps[1] + 1, steps[2] + 1, 4), *places["rename"]}
    chosen |= {numbers[1] for numbers in places.values() if len(numbers) > 1}
    trials = []
    for number in sorted(chosen):
        place = folder / f"at-{number}"
        killed = forked(place, at=number) is None
        trials.append({"at": number, "name": moments[number - 1], "killed": killed, **forked(place)})
    return {"whole": whole, "trials": trials}


def at_random(folder):
    whole = forked(folder / "whole")
    draw = random.Random(20)
    trials = []
    for number in range(6):
        place = folder / f"random-{number}"
        # Twice in a row, so that a resumed training dies, too. The timer lets a death fall inside the calculation.
        killed = [
            forked(place, at=draw.randint(1, last), later_s=draw.uniform(0, 0.02)) is None
            for last in (len(whole["moments"]), 12)
        ]
        trials.append({"killed": killed, **forked(place)})
    return {"whole": whole, "trials": trials}


if __name__ == "__main__":
    # What is imported late is imported now, once for all forks; one thread leaves no pool that a fork would lose.
    torch.set_num_threads(1)
    Learner(train_tiny.model(), train_tiny.recipe(), None)
    mode = {"points": points, "random": at_random}[sys.argv[1]]
    print(json.dumps(mode(Path(sys.argv[2]))))
