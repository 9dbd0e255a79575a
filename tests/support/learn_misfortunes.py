"""What can befall the program of a learn step: hooks that are called in it, or in its supervisor, before it begins."""

import errno
import os
import re
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from longwatch.learn.grading import relay, solitude

SHOWN = frozenset({"progress.json", "active-seconds.json"})
"""Signs of life: they are written all the time, and what they say may be lost."""
DAY_S = 86_400.0
_NUMBERED = re.compile(r"[0-9a-f]{64}|step-[0-9]+")


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

    if kind in {"bind", "train", "confirm", "anchor", "adopt"}:
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
