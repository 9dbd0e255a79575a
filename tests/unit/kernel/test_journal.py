"""The event log: whoever edits, removes, reorders, truncates or adds an event is found out (specification K33)."""

import msgspec
import pytest
from tests.support import stores

from longwatch.kernel import journal
from longwatch.kernel.journal import GENESIS, Note, Row
from longwatch.kernel.store import Store

COUNT = 9
PLACES = range(COUNT)


def chain(count: int = COUNT) -> list[Row]:
    rows: list[Row] = []
    head = GENESIS
    for seq in range(1, count + 1):
        content = journal.body(Note("kind", f"text {seq}", {"n": seq}))
        generation = 1 + seq // 4
        at = f"2026-11-30T17:34:{seq:02d}.000000Z"
        head = journal.link(head, seq, at, generation, "kind", content)
        rows.append((seq, at, generation, "kind", content, head))
    return rows


def wrong(rows: list[Row]) -> str | None:
    true = chain()
    return journal.broken(rows, count=len(true), head=true[-1][-1])


def test_a_whole_chain_is_not_broken():
    assert wrong(chain()) is None
    assert journal.broken([], count=0, head=GENESIS) is None


EDITS = {
    "seq": lambda row: (row[0] + 1, *row[1:]),
    "at": lambda row: (row[0], "2027" + row[1][4:], *row[2:]),
    "generation": lambda row: (*row[:2], row[2] + 1, *row[3:]),
    "kind": lambda row: (*row[:3], "kinds", *row[4:]),
    "text": lambda row: (*row[:4], row[4].replace(b"text", b"test"), row[5]),
    "data": lambda row: (*row[:4], row[4].replace(b'"n":', b'"m":'), row[5]),
    "hash": lambda row: (*row[:5], bytes([row[5][0] ^ 1]) + row[5][1:]),
    "no text at all": lambda row: (*row[:4], None, row[5]),
    "a number as time": lambda row: (row[0], 7, *row[2:]),
    "a NUL moved between fields": lambda row: (row[0], row[1] + "\0", *row[2:]),
}


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_event_is_found_wherever_it_stands(place, edit):
    rows = chain()
    rows[place] = EDITS[edit](rows[place])
    assert wrong(rows) is not None
    assert len(list(journal.unbroken(rows))) <= place


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize("place", PLACES)
def test_a_removed_event_is_found(place):
    rows = chain()
    del rows[place]
    assert wrong(rows) is not None


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize("place", PLACES)
def test_a_truncated_log_is_found(place):
    assert wrong(chain()[:place]) == f"the log ends at event {place}, the state knows {COUNT}"


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize("place", range(COUNT - 1))
@pytest.mark.parametrize("renumber", [False, True])
def test_reordered_events_are_found(place, renumber):
    rows = chain()
    one, other = rows[place], rows[place + 1]
    rows[place], rows[place + 1] = ((one[0], *other[1:]), (other[0], *one[1:])) if renumber else (other, one)
    assert wrong(rows) is not None


@pytest.mark.guarantee("K33")
def test_an_appended_event_is_found_even_with_a_right_hash():
    rows = chain(COUNT + 1)
    assert wrong(rows) == f"the log ends at event {COUNT + 1}, the state knows {COUNT}"


@pytest.mark.guarantee("K33")
def test_a_log_that_was_rebuilt_from_an_edited_event_on_is_found():
    rows = chain(3)
    head = rows[0][-1]
    for place in (1, 2):
        seq, at, generation, kind, _, _ = rows[place]
        content = journal.body(Note(kind, "forged"))
        head = journal.link(head, seq, at, generation, kind, content)
        rows[place] = (seq, at, generation, kind, content, head)
    assert (
        journal.broken(rows, count=3, head=chain(3)[-1][-1])
        == "the last event is not the one that the state knows"
    )


@pytest.mark.guarantee("K1", "K33")
def test_an_older_generation_after_a_newer_one_is_found():
    content = journal.body(Note("kind", "text"))
    first = journal.link(GENESIS, 1, "t", 2, "kind", content)
    second = journal.link(first, 2, "t", 1, "kind", content)
    rows = [(1, "t", 2, "kind", content, first), (2, "t", 1, "kind", content, second)]
    assert journal.broken(rows, count=2, head=second) == (
        "event 2 was written by generation 1 after generation 2"
    )


def test_an_event_is_read_back_as_it_was_said():
    note = Note("check.failed", "Ü \0 \u2028 text", {"a": 1, "b": None, "c": 1.5, "d": True})
    row = (1, "2026-11-30T17:34:15.000000Z", 3, note.kind, journal.body(note), GENESIS)
    event = journal.event(row)
    assert (event.seq, event.generation, event.kind, event.text) == (1, 3, note.kind, note.text)
    assert event.data == note.data


def test_what_is_no_event_is_not_read_as_one():
    with pytest.raises(msgspec.ValidationError):
        journal.event((1, None, 3, "kind", b"{}", GENESIS))  # type: ignore[arg-type]


STRANGERS = {
    "edits": 'UPDATE events SET body = CAST(\'{{"text":"forged"}}\' AS BLOB) WHERE seq = {seq}',
    "removes": "DELETE FROM events WHERE seq = {seq}",
    "reorders": "UPDATE events SET seq = CASE seq WHEN {seq} THEN 10000 ELSE {seq} END WHERE seq IN ({seq}, {seq} + 1)",
    "re-dates": "UPDATE events SET at = '2020-01-01T00:00:00.000000Z' WHERE seq = {seq}",
    "re-owns": "UPDATE events SET generation = 2 WHERE seq = {seq}",
}


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize("how", STRANGERS)
@pytest.mark.parametrize("seq", [1, 7, 8, 9])
def test_a_stranger_at_the_file_is_found(how, seq, tmp_path):
    stores.filled(tmp_path / "watch.db", 4)
    stores.tamper(tmp_path / "watch.db", STRANGERS[how].format(seq=seq))
    store = Store.read(tmp_path / "watch.db")
    assert store.chain() is not None
    assert len(store.heads()) < seq
    store.close()
