"""The watch's database: state and events in one durable transaction (specification K5, K7, K8, K33).

SQLite in WAL mode with synchronous=FULL: a commit that returned survives `kill -9` and power loss, a commit that did
not return either happened whole or not at all, and readers never block.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel import database, journal, search
from longwatch.kernel.child import Identity, ProcessRecord
from longwatch.kernel.clock import now as read_clock
from longwatch.kernel.clock import stamp
from longwatch.kernel.errors import StateError
from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Event, Note
from longwatch.kernel.lifecycle import Lifecycle
from longwatch.kernel.line import Outcome, Progress
from longwatch.kernel.request import Request
from longwatch.kernel.timing import Span


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The durable state at one moment. `line` is the application's state, encoded."""

    generation: int
    seq: int
    head: bytes
    lifecycle: Lifecycle
    line: bytes


class OpenStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose intent is durable and whose outcome is not."""

    id: str
    step: bytes
    cookie: str
    began: Instant
    """When its current run began."""
    base_s: float
    """Active seconds of its earlier runs."""
    runs: int
    identity: Identity | None
    progress: Progress | None
    active_s: float


class Intended(msgspec.Struct, frozen=True):
    """A step is about to begin. The cookie is durable first, so that its process can always be found."""

    id: str
    step: bytes
    cookie: str
    began: Instant


class Spawned(msgspec.Struct, frozen=True):
    """The step's process has started."""

    id: str
    identity: Identity
    began: Instant


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The step has an outcome: it is closed for good."""

    id: str
    outcome: Outcome
    active_s: float
    spans: tuple[Span, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()


class Beat(msgspec.Struct, frozen=True):
    """A heartbeat (specification K21)."""

    id: str
    progress: Progress | None
    active_s: float


class PastStep(msgspec.Struct, frozen=True):
    """Any step that was ever begun, and how long it worked so far."""

    id: str
    step: bytes
    active_s: float


Change = Intended | Spawned | Ended | Beat

_Value = TypeVar("_Value")
_StateRow = tuple[int, int, bytes, bytes, bytes, int, bytes]
_StepRow = tuple[str, bytes, str, bytes, float, int, bytes | None, bytes | None, float]

_json = msgspec.json.encode


class Store:
    """One connection to a watch's database. Not shared between threads or across forks."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._sql = connection

    @classmethod
    def create(cls, path: Path, line: bytes) -> "Store":
        """Make a new database with its first state; refuses where one exists."""
        store = cls(path, database.make(path))
        with store._translated():
            database.migrate(path, store._sql, database.MIGRATIONS)
            with store._transaction():
                store._sql.execute(
                    "INSERT INTO state VALUES (1, 0, 0, ?, ?, ?)", (journal.GENESIS, _json(Lifecycle()), line)
                )
        return store

    @classmethod
    def open(cls, path: Path, *, migrations: tuple[str, ...] = database.MIGRATIONS) -> "Store":
        """Open for writing. An older schema is migrated after a backup, a newer one is refused."""
        store = cls(path, database.connect(path, len(migrations)))
        try:
            with store._translated():
                database.migrate(path, store._sql, migrations)
            store.snapshot()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def read(cls, path: Path) -> "Store":
        """Open for reading; nothing is ever written or migrated."""
        newest = len(database.MIGRATIONS)
        store = cls(path, database.look(path, newest))
        with store._translated():
            database.refuse_older(path, store._sql, newest)
        return store

    def close(self) -> None:
        """Close the connection."""
        self._sql.close()

    # -- reading

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        with self._translated():
            # One statement: between two, a supervisor at work would have moved on.
            row = self._sql.execute(
                "SELECT generation, state.seq, head, lifecycle, line, coalesce(last.seq, 0), coalesce(last.hash, ?)"
                " FROM state LEFT JOIN (SELECT seq, hash FROM events ORDER BY seq DESC LIMIT 1) AS last",
                (journal.GENESIS,),
            ).fetchone()
            if row is None:
                raise StateError(f"{self.path} holds no state.")
            generation, seq, head, lifecycle, line, *last = msgspec.convert(row, _StateRow)
            if last != [seq, head]:
                raise StateError(
                    f"{self.path}: the log's end is not what the state knows. Run `longwatch verify`."
                )
            decoded = _decode(lifecycle, Lifecycle)
        return Snapshot(generation=generation, seq=seq, head=head, lifecycle=decoded, line=line)

    def events(self, *, after: int = 0, limit: int = -1) -> Iterator[Event]:
        """Yield events in order."""
        with self._translated():
            rows = self._sql.execute(f"{search.EVENTS} WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
            yield from map(journal.event, rows)

    def told(self, kinds: Iterable[str], *, before: str = "") -> Iterator[Event]:
        """Yield the events of some kinds in order, and with them each that stands right before one of kind `before`."""
        with self._translated():
            yield from map(journal.event, self._sql.execute(*search.told(kinds, before)))

    def latest(
        self, *, before: int, after: int = 0, kind: str = "", text: str = "", limit: int
    ) -> tuple[Event, ...]:
        """Return the last events between two numbers, newest first, whose kind begins and whose body contains so."""
        with self._translated():
            rows = self._sql.execute(*search.latest(before, after, kind, text, limit))
            return tuple(map(journal.event, rows))

    def chain(self) -> str | None:
        """Return what is wrong with the log's hash chain, or `None` (specification K33)."""
        with self._translated():
            self._sql.execute("BEGIN")
            try:
                count, head = self._sql.execute("SELECT seq, head FROM state").fetchone()
                rows = self._sql.execute(f"{search.EVENTS} ORDER BY seq")
                return journal.broken(rows, count=count, head=head)
            finally:
                self._sql.execute("COMMIT")

    def heads(self) -> frozenset[str]:
        """Return the hashes, in hexadecimal, of all events in the unbroken part of the log."""
        with self._translated():
            rows = self._sql.execute(f"{search.EVENTS} ORDER BY seq")
            return frozenset(head.hex() for head in journal.unbroken(rows))

    def steps(self) -> tuple[PastStep, ...]:
        """Return every step that was ever begun, oldest first."""
        with self._translated():
            rows = self._sql.execute("SELECT id, step, active_s FROM steps ORDER BY rowid")
            return tuple(PastStep(*row) for row in rows)

    def open_steps(self) -> tuple[OpenStep, ...]:
        """Return the steps without an outcome, oldest first."""
        with self._translated():
            rows = self._sql.execute(
                "SELECT id, step, cookie, began, base_s, runs, identity, progress, active_s FROM steps"
                " WHERE outcome IS NULL ORDER BY rowid"
            ).fetchall()
            return tuple(_open_step(row) for row in rows)

    def known_step(self, step_id: str) -> bool:
        """Return whether this id was ever used."""
        with self._translated():
            return self._sql.execute("SELECT 1 FROM steps WHERE id = ?", (step_id,)).fetchone() is not None

    def active_s(self, prefix: str = "") -> float:
        """Return the active seconds of all steps, or of those whose ids begin so (specification K35)."""
        with self._translated():
            row = self._sql.execute(
                "SELECT total(active_s) FROM steps WHERE substr(id, 1, ?) = ?", (len(prefix), prefix)
            ).fetchone()
            return float(row[0])

    def spans(self) -> tuple[tuple[str, Span], ...]:
        """Return all measured spans, each with its step's id."""
        with self._translated():
            rows = self._sql.execute(
                "SELECT step, phase, label, started_at, duration_s FROM spans ORDER BY id"
            )
            return tuple(
                (step, Span(phase=p, label=la, started_at=at, duration_s=s)) for step, p, la, at, s in rows
            )

    def processes(self) -> tuple[tuple[str, ProcessRecord], ...]:
        """Return the record of every finished process with its step's id (specification K22)."""
        with self._translated():
            rows = self._sql.execute("SELECT step, record FROM processes ORDER BY id")
            return tuple((step, _decode(record, ProcessRecord)) for step, record in rows)

    def data_version(self) -> int:
        """Return a number that changes when another connection wrote."""
        return int(self._sql.execute("PRAGMA data_version").fetchone()[0])

    def requests(self, *, after: int) -> tuple[tuple[int, Request], ...]:
        """Return the requests after a sequence number, in order."""
        with self._translated():
            rows = self._sql.execute("SELECT seq, body FROM requests WHERE seq > ? ORDER BY seq", (after,))
            return tuple((seq, _decode(body, Request)) for seq, body in rows)

    # -- writing

    def request(self, request: Request) -> int:
        """Make a person's request durable and return its sequence number (specification K11)."""
        with self._translated(), self._transaction():
            cursor = self._sql.execute(
                "INSERT INTO requests (at, body) VALUES (?, ?)", (stamp(read_clock().wall_s), _json(request))
            )
            return int(cursor.lastrowid or 0)

    def begin_generation(self, note: Note) -> int:
        """Count a new owner: everything that an older one still tries to write is refused from now on."""
        with self._translated(), self._transaction():
            last, seq, head = self._sql.execute("SELECT generation, seq, head FROM state").fetchone()
            seq, head = self._append(last + 1, seq, head, (note,))
            self._sql.execute("UPDATE state SET generation = ?, seq = ?, head = ?", (last + 1, seq, head))
        return int(last) + 1

    def commit(
        self,
        generation: int,
        *,
        notes: Sequence[Note] = (),
        lifecycle: Lifecycle | None = None,
        line: bytes | None = None,
        changes: Iterable[Change] = (),
    ) -> None:
        """One logical move: state, steps and the events that explain them, in one durable transaction.

        Raises:
            StateError: another supervisor took over since `generation` began.
        """
        with self._translated(), self._transaction():
            current, seq, head = self._sql.execute("SELECT generation, seq, head FROM state").fetchone()
            if current != generation:
                raise StateError(f"generation {generation} no longer owns this watch: {current} does.")
            seq, head = self._append(generation, seq, head, notes)
            self._sql.execute(
                "UPDATE state SET seq = ?, head = ?, lifecycle = coalesce(?, lifecycle), line = coalesce(?, line)",
                (seq, head, lifecycle and _json(lifecycle), line),
            )
            for change in changes:
                self._apply(change)

    def _append(self, generation: int, seq: int, head: bytes, notes: Sequence[Note]) -> tuple[int, bytes]:
        at = stamp(read_clock().wall_s)
        for note in notes:
            seq += 1
            content = journal.body(note)
            head = journal.link(head, seq, at, generation, note.kind, content)
            self._sql.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
                (seq, at, generation, note.kind, content, head),
            )
        return seq, head

    def _apply(self, change: Change) -> None:
        match change:
            case Intended():
                self._intended(change)
            case Spawned():
                self._one(
                    "UPDATE steps SET identity = ?, began = ?, base_s = active_s, runs = runs + 1"
                    " WHERE id = ? AND outcome IS NULL",
                    (_json(change.identity), _json(change.began), change.id),
                )
            case Beat():
                self._one(
                    "UPDATE steps SET progress = ?, active_s = max(active_s, ?) WHERE id = ? AND outcome IS NULL",
                    (_json(change.progress), change.active_s, change.id),
                )
            case Ended():
                self._ended(change)

    def _intended(self, change: Intended) -> None:
        self._sql.execute(
            "INSERT INTO steps (id, step, cookie, began) VALUES (?, ?, ?, ?)",
            (change.id, change.step, change.cookie, _json(change.began)),
        )

    def _ended(self, change: Ended) -> None:
        self._one(
            "UPDATE steps SET outcome = ?, active_s = max(active_s, ?) WHERE id = ? AND outcome IS NULL",
            (_json(change.outcome), change.active_s, change.id),
        )
        self._sql.executemany(
            "INSERT INTO spans (step, phase, label, started_at, duration_s) VALUES (?, ?, ?, ?, ?)",
            [(change.id, s.phase, s.label, s.started_at, s.duration_s) for s in change.spans],
        )
        self._sql.executemany(
            "INSERT INTO processes (step, record) VALUES (?, ?)",
            [(change.id, _json(record)) for record in change.processes],
        )

    def _one(self, statement: str, values: tuple[object, ...]) -> None:
        if self._sql.execute(statement, values).rowcount != 1:
            raise StateError(f"step {values[-1]} is not open: its outcome is counted already.")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise
        self._sql.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            with database.translated(self.path):
                yield
        except msgspec.MsgspecError as error:
            raise StateError(
                f"{self.path} holds something that this program did not write: {error}."
            ) from error


def _decode(raw: object, kind: type[_Value]) -> _Value:
    """Decode a column that a damaged file may have turned into anything."""
    return msgspec.json.decode(msgspec.convert(raw, bytes), type=kind)


def _open_step(row: object) -> OpenStep:
    step_id, step, cookie, began, base_s, runs, identity, progress, active_s = msgspec.convert(row, _StepRow)
    return OpenStep(
        id=step_id,
        step=step,
        cookie=cookie,
        began=_decode(began, Instant),
        base_s=base_s,
        runs=runs,
        identity=_decode(identity, Identity) if identity else None,
        progress=msgspec.json.decode(progress, type=Progress | None) if progress else None,
        active_s=active_s,
    )
