"""The file under a watch's state: its tables, its schema version, and what SQLite's failures mean.

Script number i of `MIGRATIONS` leads from schema version i to i + 1.
"""

import sqlite3
from pathlib import Path

from longwatch.kernel.errors import LongwatchError, StateError

APPLICATION_ID = 0x4C6F6E67
"""`Long`: SQLite's own mark of whose file this is."""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        generation INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        head BLOB NOT NULL,
        lifecycle BLOB NOT NULL,
        line BLOB NOT NULL
    ) STRICT;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        generation INTEGER NOT NULL,
        kind TEXT NOT NULL,
        body BLOB NOT NULL,
        hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE steps (
        id TEXT PRIMARY KEY,
        step BLOB NOT NULL,
        cookie TEXT NOT NULL,
        began BLOB NOT NULL,
        base_s REAL NOT NULL DEFAULT 0,
        runs INTEGER NOT NULL DEFAULT 0,
        identity BLOB,
        progress BLOB,
        active_s REAL NOT NULL DEFAULT 0,
        outcome BLOB
    ) STRICT;
    CREATE INDEX open_steps ON steps (id) WHERE outcome IS NULL;
    CREATE TABLE requests (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE spans (
        id INTEGER PRIMARY KEY,
        step TEXT NOT NULL,
        phase TEXT NOT NULL,
        label TEXT NOT NULL,
        started_at TEXT NOT NULL,
        duration_s REAL NOT NULL
    ) STRICT;
    CREATE TABLE processes (
        id INTEGER PRIMARY KEY,
        step TEXT NOT NULL,
        record BLOB NOT NULL
    ) STRICT;
    """,
)


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open the file (`ro`, `rw`, or `rwc` to make it) in autocommit mode: every transaction is written out by hand."""
    if mode != "rwc" and not path.is_file():
        raise StateError(f"{path} is missing: the watch has no state. `longwatch init` makes a new watch.")
    try:
        sql = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=30.0
        )
        if mode != "ro":
            sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise translate(path, error) from error
    return sql


def migrate(path: Path, sql: sqlite3.Connection, migrations: tuple[str, ...]) -> None:
    """Bring an older file to the newest schema, after a backup beside it; refuse a newer one (specification K7)."""
    refuse_foreign(path, sql, len(migrations))
    version = _version(sql)
    if 0 < version < len(migrations):
        _back_up(path, sql, version)
    for number in range(version, len(migrations)):
        sql.executescript(
            f"BEGIN IMMEDIATE; {migrations[number]};"
            f" PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number + 1}; COMMIT;"
        )


def refuse_foreign(path: Path, sql: sqlite3.Connection, newest: int) -> None:
    """Raise `StateError` if the file is another program's, or a newer Longwatch's."""
    version = _version(sql)
    (owner,) = sql.execute("PRAGMA application_id").fetchone()
    if version and owner != APPLICATION_ID:
        raise StateError(f"{path} is not a Longwatch database.")
    if version > newest:
        raise StateError(
            f"{path} has schema version {version}, this program knows {newest}: use the newer Longwatch."
        )


def translate(path: Path, error: sqlite3.Error) -> LongwatchError:
    """Give a database failure its type, once (specification K8). SQLite's result code decides, not its text."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return LongwatchError(
                f"The disk that holds {path} is full or fails ({error}). What was committed is safe."
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return LongwatchError(
                f"{path} cannot be opened for writing ({error}): a read-only disk, or another user's file?"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LongwatchError(
                f"{path} has been locked by another program for 30 s: `longwatch status` names it."
            )
        case _:
            return StateError(
                f"{path} is damaged ({error}). Nothing was overwritten: keep a copy; `longwatch verify` says what holds."
            )


def _version(sql: sqlite3.Connection) -> int:
    return int(sql.execute("PRAGMA user_version").fetchone()[0])


def _back_up(path: Path, sql: sqlite3.Connection, version: int) -> None:
    copy = sqlite3.connect(path.with_name(f"{path.name}.version-{version}"))
    sql.backup(copy)
    copy.close()
