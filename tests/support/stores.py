"""Databases of watches for tests, and what a stranger does to them."""

import sqlite3
from pathlib import Path

import msgspec

from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.line import Progress, Succeeded
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Beat, Ended, Intended, Spawned, Store
from longwatch.kernel.timing import Span

IDENTITY = Identity(boot_id="boot", pid=1, start_ticks=1, cookie="c")
DONE = Succeeded(msgspec.Raw(b'"ok"'))


def new(path: Path) -> tuple[Store, int]:
    store = Store.create(path, b'{"n":0}')
    return store, store.begin_generation(Note("supervisor.began", "A test supervises."))


def intend(store: Store, generation: int, name: str) -> None:
    note = Note("step.started", f"{name} begins.", {"step": name})
    change = Intended(name, b"{}", f"cookie-{name}", now())
    store.commit(generation, notes=(note,), lifecycle=Lifecycle(phase=Phase.RUNNING), changes=(change,))


def end(store: Store, generation: int, name: str, active_s: float = 1.5) -> None:
    span = Span(phase="work", started_at="2026-11-30T17:34:15.000000Z", duration_s=active_s)
    change = Ended(id=name, outcome=DONE, active_s=active_s, spans=(span,))
    note = Note("step.ended", f"{name} ended.", {"step": name})
    store.commit(
        generation,
        notes=(note,),
        lifecycle=Lifecycle(),
        line=b'{"last":"%b"}' % name.encode(),
        changes=(change,),
    )


def filled(path: Path, count: int) -> None:
    """A database with `count` ended steps, one open one, and a request; closed well, so that it is one file."""
    store, generation = new(path)
    for number in range(count):
        intend(store, generation, f"step-{number}")
        store.commit(generation, changes=(Spawned(f"step-{number}", IDENTITY, now()),))
        end(store, generation, f"step-{number}")
    intend(store, generation, "open")
    store.commit(generation, changes=(Beat("open", Progress(phase="x", text="y" * 50), 0.5),))
    store.request(Request(verb=Verb.PAUSE))
    store.close()


def tamper(path: Path, *statements: str) -> None:
    """Change the file behind our back, as any program can."""
    sql = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        sql.execute(statement)
    sql.close()


def everything(path: Path) -> tuple[object, ...]:
    """All that can be read, opened for writing as a supervisor does; also what is wrong with the chain."""
    store = Store.open(path)
    try:
        return (
            store.chain(),
            tuple(store.events()),
            store.snapshot(),
            store.steps(),
            store.open_steps(),
            store.requests(after=0),
            store.spans(),
            store.processes(),
            store.active_s(),
            store.heads(),
        )
    finally:
        store.close()
