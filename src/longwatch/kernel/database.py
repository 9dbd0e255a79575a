"""The file under a watch's state: its tables, its schema version, and what SQLite's failures mean.

Script number i of `MIGRATIONS` leads from schema version i to i + 1.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longwatch.kernel.errors import LongwatchError, StateError

APPLICATION_ID = 0x4C6F6E67
"""`Long`: SQLite's own mark of whose file this is."""

_HEADER_BYTES = 100
_WAL = b"\2\2"
"""File format write and read version (the file format of SQLite, 1.3.3)."""
_UNWRITABLE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR})

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


def make(path: Path) -> sqlite3.Connection:
    """Open a file for a new database; an empty one, that an init which was cut short left, will do.

    Raises:
        StateError: something else stands there.
    """
    with translated(path):
        if path.exists():
            _refuse_used(path)
        sql = _opened(path, "mode=rwc")
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute("PRAGMA synchronous = FULL")
        return sql


def connect(path: Path, newest: int) -> sqlite3.Connection:
    """Open for writing, in autocommit mode: every transaction is written out by hand.

    The file is looked at read-only first: what is not ours is never opened for writing, so not a byte of it changes.
    """
    look(path, newest).close()
    with translated(path):
        sql = _opened(path, "mode=rw")
        sql.execute("PRAGMA synchronous = FULL")
        return sql


def look(path: Path, newest: int) -> sqlite3.Connection:
    """Open for reading.

    Raises:
        StateError: the file is missing, damaged, another program's, or a newer Longwatch's.
    """
    if not path.is_file():
        raise StateError(f"{path} is missing: the watch has no state. `longwatch init` makes a new watch.")
    with translated(path):
        sql = _readable(path)
        try:
            _refuse_foreign(path, sql, newest)
        except BaseException:
            sql.close()
            raise
        return sql


def refuse_older(path: Path, sql: sqlite3.Connection, newest: int) -> None:
    """Raise `StateError` if only a migration makes the file readable for this program."""
    version = _version(sql)
    if version < newest:
        raise StateError(
            f"{path} has schema version {version}, this program reads {newest}: `longwatch run` migrates it, after a backup."
        )


def migrate(path: Path, sql: sqlite3.Connection, migrations: tuple[str, ...]) -> None:
    """Bring an older file to the newest schema, after a backup beside it (specification K7)."""
    version = _version(sql)
    if 0 < version < len(migrations):
        _back_up(path, sql, version)
    for number in range(version, len(migrations)):
        sql.executescript(
            f"BEGIN IMMEDIATE; {migrations[number]};"
            f" PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number + 1}; COMMIT;"
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
                f"{path} cannot be opened ({error}): a read-only disk, or another user's file?"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return LongwatchError(
                f"{path} has been locked by another program for 30 s: `longwatch status` names it."
            )
        case _:
            return StateError(damaged(path, error))


def damaged(path: Path, why: object) -> str:
    """Say that a file is not what was written, and what to do."""
    return f"{path} is damaged ({why}). Nothing was overwritten: keep a copy; `longwatch verify` says what holds."


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Give the database failures of a block their types."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(path, error) from error
    except UnicodeDecodeError as error:
        # SQLite quotes a damaged schema in its message, and Python cannot read the quotation.
        raise StateError(damaged(path, error)) from error


def _opened(path: Path, query: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{query}", uri=True, isolation_level=None, timeout=30.0
    )


def _readable(path: Path) -> sqlite3.Connection:
    """Open for reading, also on a read-only or full disk, where SQLite cannot make the index of a log.

    There it is not needed if the log was closed well, and nobody can write to it.
    """
    if 0 < path.stat().st_size < _HEADER_BYTES:
        # SQLite would take it for a new file.
        raise StateError(f"{path} is not a Longwatch database. Nothing was changed.")
    sql = _opened(path, "mode=ro")
    try:
        _version(sql)
    except sqlite3.OperationalError as error:
        sql.close()
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE or _log_bytes(path):
            raise
        return _opened(path, "mode=ro&immutable=1")
    except sqlite3.Error:
        sql.close()
        raise
    return sql


def _refuse_used(path: Path) -> None:
    sql = _readable(path)
    try:
        if not _is_blank(sql):
            _refuse_foreign(path, sql, len(MIGRATIONS))
            if sql.execute("SELECT 1 FROM state").fetchone():
                raise StateError(f"{path} exists already: this watch was initialised before.")
    finally:
        sql.close()


def _refuse_foreign(path: Path, sql: sqlite3.Connection, newest: int) -> None:
    version = _version(sql)
    if _is_blank(sql):
        raise StateError(f"{path} holds no state: `longwatch init` was cut short. Run it again.")
    (owner,) = sql.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID:
        raise StateError(f"{path} is not a Longwatch database. Nothing was changed.")
    if version > newest:
        raise StateError(
            f"{path} has schema version {version}, this program knows {newest}: use the newer Longwatch."
        )
    if _file_format(path) != _WAL or not version:
        raise StateError(damaged(path, "its header is not what Longwatch writes"))


def _log_bytes(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _file_format(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(20)[18:]


def _is_blank(sql: sqlite3.Connection) -> bool:
    (tables,) = sql.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return tables == 0 and _version(sql) == 0


def _version(sql: sqlite3.Connection) -> int:
    return int(sql.execute("PRAGMA user_version").fetchone()[0])


def _back_up(path: Path, sql: sqlite3.Connection, version: int) -> None:
    copy = sqlite3.connect(path.with_name(f"{path.name}.version-{version}"))
    sql.backup(copy)
    copy.close()
