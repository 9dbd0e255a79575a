"""The queue: its order follows from the cards alone, and what can never be begun is named."""

import os
from pathlib import Path

import pytest

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.queue.cards import CARD_BYTES, Card
from longwatch.migrate.queue.order import Unreachable, order, queue_of, read_queue, ready, unreachable


def card(ident: str, *after: str, priority: int = 0) -> Card:
    return Card(
        id=ident,
        title=ident,
        owned=("**",),
        after=after,
        priority=priority,
        body="x",
        path=f"{ident}.md",
        digest="",
    )


def names(cards: tuple[Card, ...]) -> list[str]:
    return [one.id for one in cards]


def write(folder: Path, ident: str, after: str = "[]") -> None:
    (folder / f"{ident}.md").write_text(
        f"---\nid: {ident}\ntitle: t\nowned: ['**']\nafter: {after}\n---\nText\n"
    )


@pytest.mark.guarantee("M2", "M3")
def test_cards_stand_behind_what_they_come_after_then_by_priority_then_by_id() -> None:
    cards = [
        card("a", "z"),
        card("b"),
        card("c", priority=5),
        card("z", priority=-1),
        card("d", "c", priority=9),
    ]
    assert names(order(cards)) == ["c", "d", "b", "z", "a"]
    assert order(reversed(cards)) == order(cards)


@pytest.mark.guarantee("M3")
def test_only_cards_whose_forerunners_are_all_done_are_ready() -> None:
    cards = (card("a"), card("b", "a"), card("c", "a", "b"), card("d"))
    assert names(ready(cards, frozenset(), frozenset())) == ["a", "d"]
    assert names(ready(cards, frozenset({"a"}), frozenset({"d"}))) == ["b"]
    assert names(ready(cards, frozenset({"a", "b"}), frozenset())) == ["c", "d"]
    assert ready(cards, frozenset("abcd"), frozenset()) == ()


def test_what_waits_for_a_blocked_card_is_named_with_it() -> None:
    cards = (card("a"), card("b", "a"), card("c", "b"), card("d"), card("e", "d", "c"))
    assert unreachable(cards, frozenset(), frozenset("a")) == (
        Unreachable("b", "a"),
        Unreachable("c", "a"),
        Unreachable("e", "a"),
    )
    assert unreachable(cards, frozenset({"b"}), frozenset("a")) == ()
    assert unreachable(cards, frozenset(), frozenset()) == ()


@pytest.mark.guarantee("M2")
def test_wrong_links_are_all_told() -> None:
    with pytest.raises(ConfigError) as caught:
        queue_of([card("a", "b"), card("a"), card("port", "part"), card("self", "self"), card("part1")])
    message = str(caught.value)
    assert 'a.md: id = "a": is the id of a.md too' in message
    assert 'a.md: after = "b": is no card' in message
    assert 'port.md: after = "part": is no card; did you mean `part1`?' in message
    assert 'self.md: after = "self": is the card itself' in message


@pytest.mark.guarantee("M2")
def test_every_circle_is_named_as_a_path() -> None:
    cards = [
        card("a", "c"),
        card("b", "a"),
        card("c", "b"),
        card("x", "y"),
        card("y", "x"),
        card("late", "a", "x"),
    ]
    with pytest.raises(ConfigError) as caught:
        queue_of(cards)
    message = str(caught.value)
    assert "a.md: after: cards wait for each other: a -> c -> b -> a" in message
    assert "x.md: after: cards wait for each other: x -> y -> x" in message
    assert "2 problems" in message


def test_a_long_chain_is_no_trouble() -> None:
    cards = [card("n0"), *(card(f"n{i}", f"n{i - 1}") for i in range(1, 5000))]
    assert names(order(reversed(cards))) == [f"n{i}" for i in range(5000)]
    with pytest.raises(ConfigError, match="wait for each other"):
        queue_of([*cards[1:], card("n0", "n4999")])


@pytest.mark.guarantee("M2")
def test_the_folder_is_read(tmp_path: Path) -> None:
    write(tmp_path, "b", "[a]")
    write(tmp_path, "a")
    for name in ("README.md", "notes.txt", "000-example.md.example", ".hidden.md"):
        (tmp_path / name).write_text("no card")
    queue = read_queue(tmp_path)
    assert names(queue.cards) == ["a", "b"]
    assert queue.cards[0].path == f"{tmp_path.name}/a.md"
    assert queue.card("b") is queue.cards[1]
    assert queue.card("c") is None


def test_an_empty_folder_is_an_empty_queue(tmp_path: Path) -> None:
    assert read_queue(tmp_path).cards == ()


@pytest.mark.guarantee("M2", "K34")
def test_what_is_no_plain_file_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    write(tmp_path, "outside")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "dangling.md").symlink_to("nowhere")
    os.mkfifo(folder / "fifo.md")
    (folder / "folder.md").mkdir()
    with (folder / "huge.md").open("wb") as file:
        file.truncate(CARD_BYTES + 1)
    with pytest.raises(ConfigError) as caught:
        read_queue(folder)
    for name in ("link.md", "dangling.md", "fifo.md", "folder.md", "huge.md"):
        assert f"tasks/{name}: cannot be a card" in str(caught.value)


@pytest.mark.guarantee("K34")
def test_a_folder_that_is_a_link_or_missing_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    for name in ("link", "missing", "file"):
        with pytest.raises(ConfigError, match=name):
            read_queue(tmp_path / name)


def test_problems_of_all_cards_in_the_folder_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("nothing")
    (tmp_path / "b.md").write_text("---\nid: b\n---\n")
    with pytest.raises(ConfigError) as caught:
        read_queue(tmp_path)
    assert "a.md: line 1" in str(caught.value)
    assert "b.md: title" in str(caught.value)
