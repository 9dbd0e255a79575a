"""kill -9 of the supervisor, of the step's program, of the worker and of all of them, in a real migrate watch.

Whatever is killed and whenever: the next `run` goes on, and in the end everything was done exactly once.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.repositories import git, write
from tests.support.shop import WORKER, Shop, kill, open_shop, settle
from tests.support.wholeness import expected_tree, finish, remote_of, shoot, whole

pytestmark = pytest.mark.e2e

JOBS = ("a", "b", "c", "d", "e", "f")


def persons_work(shop: Shop) -> Callable[[], None]:
    """Give the person work of their own, staged and not, and return what proves that it is untouched."""
    write(shop.root, "shop/__init__.py", "# the person is at work here\n")
    write(shop.root, "notes.txt", "untracked\n")
    write(shop.root, "staged.txt", "staged\n")
    git(shop.root, "add", "staged.txt")
    before = git(
        shop.root,
        "status",
        "--porcelain",
        "--untracked-files=all",
        "--",
        "shop/__init__.py",
        "notes.txt",
        "staged.txt",
    )

    def untouched() -> None:
        after = git(shop.root, "status", "--porcelain", "--untracked-files=all")
        assert [
            line
            for line in after.splitlines()
            if "longwatch.toml" not in line and "prompt.md" not in line and "tasks/" not in line
        ] == before.splitlines()
        assert (shop.root / "shop/__init__.py").read_text() == "# the person is at work here\n"
        assert (shop.root / "notes.txt").read_text() == "untracked\n"
        assert git(shop.root, "show", ":staged.txt") == "staged"

    return untouched


@pytest.mark.guarantee("K1", "K5", "K6", "K18", "K23", "M28", "M29", "M30")
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    shop = open_shop(tmp_path, JOBS, linger_s=0.2)
    remote = remote_of(shop, tmp_path)
    untouched = persons_work(shop)
    # What is killed has failed: how often that happens to one step is the business of the dice.
    shop.configure(worker={"max_attempts": 1000}, backoff={"max_faults": 1000})
    end, shots = time.monotonic() + 40, 0
    while time.monotonic() < end and shop.status().phase != "complete":
        supervisor = shop.begin()
        while supervisor.poll() is None and time.monotonic() < end:
            time.sleep(dice.uniform(0.05, 1.6))
            target = dice.choices(("supervisor", "program", "worker", "all"), (4, 2, 1, 3))[0]
            shoot(shop, supervisor, target)
            shots += 1
            if target in {"supervisor", "all"}:
                supervisor.wait()
        if supervisor.poll() is None:
            supervisor.send_signal(signal.SIGKILL)
        code = settle(shop, supervisor)
        assert code in {0, -signal.SIGKILL}, shop.said()
    assert shots > 5
    finish(shop)
    whole(shop, JOBS, remote)
    untouched()
    assert shop.tree() == expected_tree(shop, JOBS)


# -- at one exact point

SABOTAGE = """
import os, sys
from longwatch.cli.main import app
from longwatch.executors.local import LocalExecutor

kind, when = sys.argv.pop(1), sys.argv.pop(1)
start = LocalExecutor.start


def sabotaged(self, folder, job, cookie):
    ours = f".{kind}." in f".{folder.name}"
    if ours and when == "before":
        os.kill(os.getpid(), 9)
    running = start(self, folder, job, cookie)
    if ours:
        os.kill(os.getpid(), 9)
    return running


LocalExecutor.start = sabotaged
app()
"""
"""The real program, killed between the durable intent of a step and the start of its program, or right after it."""


def sabotaged(shop: Shop, kind: str, when: str) -> None:
    argv = [sys.executable, "-c", SABOTAGE, kind, when, "run"]
    finished = subprocess.run(
        argv, cwd=shop.root, env=shop.environment(), capture_output=True, check=False, timeout=60
    )
    assert finished.returncode == -signal.SIGKILL, (finished, shop.said())


@pytest.mark.guarantee("K6", "K23", "K18", "K5")
def test_killed_between_intent_and_record(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    remote = remote_of(shop, tmp_path)
    untouched = persons_work(shop)
    for kind in ("survey", "attempt", "verify", "commit", "push"):
        for when in ("before", "after"):
            sabotaged(shop, kind, when)
            assert [kind in step for step in shop.open_steps()] == [True]
    finish(shop)
    whole(shop, ("a", "b"), remote)
    untouched()
    # The program that ran while nobody knew its pid was ended: two attempts at once would have been one too many.
    assert shop.done() == ["a", "b"]


HOOK = """
test -e "{flag}" && exit 0
: > "{flag}"
parent() {{ sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f2; }}
git=$PPID
program=$git
until grep -q "longwatch.migrate.program" "/proc/$program/cmdline"; do program=$(parent "$program"); done
kill -9 {targets}
exit 0
"""


def killing_hook(shop: Shop, where: Path, name: str, targets: str, flag: Path) -> None:
    """A hook of git that kills once, in the middle of what git does."""
    supervisor = f'$(sed \'s/.*"pid": *//; s/[^0-9].*//\' "{shop.watch.lease}.holder.json" | tr -d "\\n")'
    words = {"supervisor": supervisor, "program": '"$program"', "git": '"$git"'}
    given = " ".join(words[target] for target in targets.split())
    text = "#!/bin/sh\n" + HOOK.format(flag=flag, targets=given)
    write(where, f"hooks/{name}", text, 0o755)


@pytest.mark.guarantee("K6", "M28", "M29", "M35")
@pytest.mark.parametrize("name", ["pre-commit", "post-commit"])
@pytest.mark.parametrize("targets", ["program", "supervisor program", "git supervisor program"])
def test_killed_in_the_middle_of_a_commit(tmp_path: Path, name: str, targets: str) -> None:
    shop = open_shop(tmp_path, ("a",))
    untouched = persons_work(shop)
    killing_hook(shop, shop.root / ".git", name, targets, tmp_path / "killed")
    supervisor = shop.begin()
    code = settle(shop, supervisor)
    assert (tmp_path / "killed").exists(), shop.said()
    assert code == (-signal.SIGKILL if "supervisor" in targets else 0), shop.said()
    finish(shop)
    whole(shop, ("a",))
    untouched()


@pytest.mark.guarantee("K6", "M30")
@pytest.mark.parametrize("name", ["pre-receive", "post-receive"])
@pytest.mark.parametrize("targets", ["program", "supervisor program"])
def test_killed_in_the_middle_of_a_push(tmp_path: Path, name: str, targets: str) -> None:
    shop = open_shop(tmp_path, ("a",))
    remote = remote_of(shop, tmp_path)
    killing_hook(shop, remote, name, targets, tmp_path / "killed")
    code = settle(shop, shop.begin())
    assert (tmp_path / "killed").exists(), shop.said()
    assert code == (-signal.SIGKILL if "supervisor" in targets else 0), shop.said()
    finish(shop)
    whole(shop, ("a",), remote)


def shoot_sandbox(shop: Shop, step: str, phase: str) -> None:
    """Kill what a step runs, from outside, as a kernel does that is short of memory."""
    shop.in_step(step, phase)
    end = time.monotonic() + 20
    while not any("bwrap" in one.name() for one in shop.workers()):
        assert time.monotonic() < end, shop.said()
        time.sleep(0.05)
    kill(shop.workers())


@pytest.mark.guarantee("M19", "M27", "K6")
def test_what_is_killed_from_outside_counts_against_nobody(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.configure(worker={"max_attempts": 1})
    shop.raise_flag("worker")
    shop.raise_flag("check")
    supervisor = shop.begin()
    shoot_sandbox(shop, "a.1.attempt", "worker")
    shop.lower_flag("worker")
    shoot_sandbox(shop, "a.2.verify", "check:test")
    shop.lower_flag("check")
    assert settle(shop, supervisor) == 0, shop.said()
    kinds = shop.kinds()
    assert (kinds.count("attempt.lost"), kinds.count("check.killed")) == (1, 1)
    assert not any(kind.startswith("attempt.refused") for kind in kinds)
    whole(shop, ("a",))
