"""Supervisors as processes of their own, and what can be seen of their watches from outside."""

import contextlib
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from longwatch.kernel import bell
from longwatch.kernel.identity import find_by_cookie
from longwatch.kernel.lifecycle import Lifecycle
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from tests.support import toy

SUPERVISE = ("-m", "tests.support.toy", "supervise")


def supervise(watch: Watch) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, *SUPERVISE, str(watch.root)], cwd=toy.PROJECT)


def until(condition, timeout_s: float = 60):
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.005)
    return value


@contextlib.contextmanager
def reading(watch: Watch):
    store = Store.read(watch.database)
    try:
        yield store
    finally:
        store.close()


def life_of(watch: Watch) -> Lifecycle:
    with reading(watch) as store:
        return store.snapshot().lifecycle


def kinds_of(watch: Watch) -> list[str]:
    with reading(watch) as store:
        assert store.chain() is None
        return [event.kind for event in store.events()]


def open_steps(watch: Watch):
    with reading(watch) as store:
        return store.open_steps()


def ask(watch: Watch, verb: Verb, **how: bool) -> None:
    store = Store.open(watch.database)
    store.request(Request(verb=verb, **how))
    store.close()
    bell.ring(watch.bell)


def effects_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def names_of(effects: list[str]) -> Counter[str]:
    return Counter(line.rsplit(".", 1)[0] for line in effects)


def nothing_lives(watch: Watch) -> None:
    with reading(watch) as store:
        cookies = [row[0] for row in store._sql.execute("SELECT cookie FROM steps")]
    assert [found for cookie in cookies for found in find_by_cookie(cookie)] == []
