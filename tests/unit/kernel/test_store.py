"""The database of a watch: what it refuses, what it keeps, and what it leaves alone."""

import random
import sqlite3
import threading
from contextlib import suppress

import msgspec
import pytest
from tests.support import stores

from longwatch.kernel import database
from longwatch.kernel.clock import now
from longwatch.kernel.errors import StateError
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.line import Progress
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Beat, Ended, Intended, Spawned, Store

NEWER = (*database.MIGRATIONS, "ALTER TABLE state ADD COLUMN added TEXT NOT NULL DEFAULT 'new'")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "watch.db"


def files_of(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}


# -- one logical move is one transaction


@pytest.mark.guarantee("K5")
def test_state_steps_and_events_are_one_transaction(path):
    store, generation = stores.new(path)
    stores.intend(store, generation, "one")
    before = store.snapshot()
    wrong = Ended(id="unknown", outcome=stores.DONE, active_s=1.0)
    with pytest.raises(StateError, match="unknown is not open"):
        store.commit(
            generation,
            notes=(Note("a", "b"),),
            lifecycle=Lifecycle(phase=Phase.BLOCKED),
            line=b'{"n":9}',
            changes=(Beat("one", None, 5.0), wrong),
        )
    assert store.snapshot() == before
    assert store.active_s() == 0
    stores.end(store, generation, "one")
    assert store.chain() is None
    assert store.snapshot().line == b'{"last":"one"}'


@pytest.mark.guarantee("K1", "K5")
def test_an_older_generation_can_commit_nothing(path):
    store, old = stores.new(path)
    stores.intend(store, old, "one")
    other = Store.open(path)
    newer = other.begin_generation(Note("supervisor.began", "Another one."))
    before = other.snapshot()
    with pytest.raises(StateError, match=f"generation {old} no longer owns this watch: {newer} does"):
        store.commit(old, notes=(Note("a", "b"),), line=b'{"stolen":1}')
    with pytest.raises(StateError, match="no longer owns"):
        store.commit(old, changes=(Beat("one", None, 99.0),))
    assert (other.snapshot(), other.active_s()) == (before, 0.0)
    stores.end(other, newer, "one")
    assert [event.generation for event in other.events()] == [1, 1, 2, 2]


@pytest.mark.guarantee("K5", "K6")
def test_an_outcome_is_counted_once(path):
    store, generation = stores.new(path)
    stores.intend(store, generation, "one")
    stores.end(store, generation, "one")
    before = store.snapshot()
    for change in (
        Ended(id="one", outcome=stores.DONE, active_s=9.0),
        Beat("one", None, 9.0),
        Spawned("one", stores.IDENTITY, now()),
    ):
        with pytest.raises(StateError, match="step one is not open: its outcome is counted already"):
            store.commit(generation, changes=(change,))
    with pytest.raises(StateError):
        store.commit(generation, changes=(Intended("one", b"{}", "c", now()),))
    assert (store.snapshot(), store.active_s(), len(store.spans())) == (before, 1.5, 1)


@pytest.mark.guarantee("K6", "K35")
def test_an_intent_is_found_again_with_all_that_is_known_of_it(path):
    store, generation = stores.new(path)
    stores.intend(store, generation, "one")
    assert [(left.id, left.identity, left.runs) for left in store.open_steps()] == [("one", None, 0)]
    began = now()
    store.commit(generation, changes=(Spawned("one", stores.IDENTITY, began),))
    store.commit(generation, changes=(Beat("one", Progress(phase="p"), 4.0),))
    store.commit(generation, changes=(Beat("one", None, 3.0),))
    store.commit(generation, changes=(Spawned("one", stores.IDENTITY, began),))
    store.close()
    (left,) = Store.read(path).open_steps()
    assert (left.began, left.identity, left.runs) == (began, stores.IDENTITY, 2)
    assert (left.active_s, left.base_s) == (4.0, 4.0), "active time never goes back"


@pytest.mark.guarantee("K36")
@pytest.mark.parametrize("seed", range(5))
def test_some_kinds_are_told_in_order_and_with_them_what_stands_right_before_one(path, seed):
    chance = random.Random(seed)
    store, generation = stores.new(path)
    store.commit(generation, notes=[Note(chance.choice("abcde"), str(n)) for n in range(200)])
    everything = tuple(store.events())
    after = {event.seq - 1 for event in everything if event.kind == "e"}
    assert tuple(store.told("ab")) == tuple(event for event in everything if event.kind in "ab")
    wanted = tuple(event for event in everything if event.kind in "ab" or event.seq in after)
    assert tuple(store.told("ab", before="e")) == wanted
    assert tuple(store.told(())) == ()


@pytest.mark.guarantee("K11")
def test_requests_survive_and_keep_their_order(path):
    stores.new(path)[0].close()
    wishes = [Request(verb=verb, after_step=n % 2 == 0) for n, verb in enumerate([*Verb] * 3)]
    numbers = []
    for wish in wishes:
        store = Store.open(path)
        numbers.append(store.request(wish))
        store.close()
    assert numbers == sorted(set(numbers))
    reader = Store.read(path)
    assert reader.requests(after=0) == tuple(zip(numbers, wishes, strict=True))
    assert reader.requests(after=numbers[6]) == tuple(zip(numbers[7:], wishes[7:], strict=True))


@pytest.mark.guarantee("K11")
def test_requests_from_many_sides_at_once_are_all_kept(path):
    stores.new(path)[0].close()
    numbers: list[int] = []

    def ask():
        store = Store.open(path)
        numbers.extend(store.request(Request(verb=Verb.PAUSE)) for _ in range(10))
        store.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 41))


def test_a_reader_never_waits_for_a_writer(path):
    store, generation = stores.new(path)
    reader = Store.read(path)
    seen = reader.data_version()
    store._sql.execute("BEGIN IMMEDIATE")
    store._sql.execute("UPDATE state SET seq = 99")
    assert reader.snapshot().seq == 1
    assert reader.data_version() == seen
    store._sql.execute("ROLLBACK")
    stores.intend(store, generation, "one")
    assert reader.data_version() != seen


# -- schema versions


@pytest.mark.guarantee("K7")
def test_a_newer_schema_is_refused_and_left_alone(path):
    stores.filled(path, 3)
    Store.open(path, migrations=NEWER).close()
    before = path.read_bytes()
    for opened in (Store.open, Store.read):
        with pytest.raises(StateError, match=r"schema version 2, this program knows 1: use the newer"):
            opened(path)
    assert path.read_bytes() == before


@pytest.mark.guarantee("K7")
def test_an_older_schema_is_migrated_after_a_backup(path):
    stores.filled(path, 3)
    before = stores.everything(path)
    store = Store.open(path, migrations=NEWER)
    assert store._sql.execute("SELECT added FROM state").fetchone() == ("new",)
    assert store.chain() is None
    stores.intend(store, 1, "next")
    store.close()
    backup = path.with_name("watch.db.version-1")
    assert stores.everything(backup) == before


@pytest.mark.guarantee("K7")
def test_a_migration_that_fails_changes_nothing(path):
    stores.filled(path, 3)
    before = stores.everything(path)
    broken = (*database.MIGRATIONS, "CREATE TABLE extra (id INTEGER); SELECT no_such_column FROM state")
    with pytest.raises(StateError):
        Store.open(path, migrations=broken)
    assert stores.everything(path) == before
    sql = sqlite3.connect(path)
    assert sql.execute("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").fetchone() == (0,)


@pytest.mark.guarantee("K7")
def test_an_older_schema_is_not_read_as_if_it_were_this_one(path, monkeypatch):
    stores.filled(path, 1)
    monkeypatch.setattr(database, "MIGRATIONS", NEWER)
    with pytest.raises(
        StateError, match=r"schema version 1, this program reads 2: `longwatch run` migrates it"
    ):
        Store.read(path)


# -- what is not ours, or damaged


@pytest.mark.parametrize("opened", [Store.open, Store.read])
def test_a_missing_database_is_named_and_not_made(opened, path):
    with pytest.raises(StateError, match=r"watch\.db is missing.*longwatch init"):
        opened(path)
    assert files_of(path) == {}


def test_a_second_create_is_refused(path):
    stores.filled(path, 1)
    before = path.read_bytes()
    with pytest.raises(StateError, match="initialised before"):
        Store.create(path, b"{}")
    assert path.read_bytes() == before


@pytest.mark.guarantee("K5")
def test_a_create_that_was_cut_short_can_be_repeated(path):
    path.touch()
    Store.create(path, b"{}").close()
    path.unlink()
    database.make(path).close()
    Store.create(path, b"{}").close()
    path.unlink()
    sql = database.make(path)
    database.migrate(path, sql, database.MIGRATIONS)
    sql.close()
    with pytest.raises(StateError, match="holds no state"):
        Store.open(path)
    Store.create(path, b"{}").close()
    assert Store.open(path).snapshot().line == b"{}"


def foreign(path):
    sql = sqlite3.connect(path)
    sql.executescript("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    sql.close()


def foreign_with_a_version(path):
    foreign(path)
    stores.tamper(path, "PRAGMA user_version = 1")


def foreign_in_wal(path):
    foreign(path)
    stores.tamper(path, "PRAGMA journal_mode = WAL")


def without_its_state(path):
    stores.filled(path, 2)
    stores.tamper(path, "DELETE FROM state")


def with_another_end(path):
    stores.filled(path, 2)
    stores.tamper(path, "UPDATE state SET head = x'00'")


def with_a_lifecycle_that_is_none(path):
    stores.filled(path, 2)
    stores.tamper(path, "UPDATE state SET lifecycle = x'7b'")


def in_another_journal_mode(path):
    stores.filled(path, 2)
    stores.tamper(path, "PRAGMA journal_mode = DELETE")


BROKEN = {
    "zero length": lambda path: path.touch(),
    "text": lambda path: path.write_bytes(b"not a database\n" * 1000),
    "one byte": lambda path: path.write_bytes(b"S"),
    "zeros": lambda path: path.write_bytes(bytes(8192)),
    "magic only": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4080)),
    "foreign": foreign,
    "foreign with a version": foreign_with_a_version,
    "foreign in WAL": foreign_in_wal,
    "without its state": without_its_state,
    "with another end": with_another_end,
    "lifecycle": with_a_lifecycle_that_is_none,
    "another journal mode": in_another_journal_mode,
}


@pytest.mark.guarantee("K8")
@pytest.mark.parametrize("how", BROKEN)
def test_what_is_not_a_watchs_database_is_refused_and_left_alone(how, path):
    BROKEN[how](path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StateError):
            Store.open(path)
    with pytest.raises(StateError):
        Store.read(path).snapshot()
    if how not in {"zero length", "without its state"}:
        with pytest.raises(StateError):
            Store.create(path, b"{}")
    assert path.read_bytes() == before or how == "without its state"


@pytest.mark.guarantee("K8")
@pytest.mark.parametrize("keep", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_a_truncated_database_is_refused_and_left_alone(keep, path):
    stores.filled(path, 60)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    before = path.read_bytes()
    with pytest.raises(StateError):
        stores.everything(path)
    assert path.read_bytes() == before


@pytest.mark.guarantee("K8", "K33")
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_in_any_page_are_an_error_or_harmless_and_nothing_is_overwritten(seed, path):
    stores.filled(path, 60)
    whole = path.read_bytes()
    true = stores.everything(path)
    chance = random.Random(seed)
    for page in range(len(whole) // 4096):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 4, 64])):
            # Headers and cell pointers stand at the beginning of a page, cells at its end.
            offset = chance.choice([chance.randrange(120), chance.randrange(4096)])
            damaged[page * 4096 + offset] ^= chance.randrange(1, 256)
        path.write_bytes(damaged)
        with suppress(StateError):
            seen = stores.everything(path)
            assert seen[0] is not None or seen[1] == true[1], "an event that was changed goes unnoticed"
        assert path.read_bytes() == damaged


@pytest.mark.guarantee("K8")
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("steps", "began"),
        ("steps", "identity"),
        ("steps", "progress"),
        ("requests", "body"),
        ("processes", "record"),
    ],
)
def test_a_value_that_we_did_not_write_is_a_clear_error(table, column, path):
    stores.filled(path, 2)
    stores.tamper(path, "INSERT INTO processes (step, record) VALUES ('s', x'7b7d')")
    stores.tamper(path, f"UPDATE {table} SET {column} = x'ff00'")
    with pytest.raises(StateError, match="holds something that this program did not write"):
        stores.everything(path)


def test_a_log_in_use_is_read_as_a_whole(path):
    """A second process that reads while the first holds uncheckpointed commits sees all of them."""
    store, generation = stores.new(path)
    for number in range(50):
        stores.intend(store, generation, f"s{number}")
    assert path.with_name("watch.db-wal").stat().st_size > 0
    assert len(tuple(Store.read(path).events())) == 51
    assert msgspec.json.decode(Store.read(path).snapshot().line) == {"n": 0}


@pytest.mark.guarantee("K8")
@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL])
def test_a_database_that_others_use_is_not_damaged(path, code):
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = code
    found = database.translate(path, busy)
    assert not isinstance(found, StateError)
    assert str(path) in str(found)
