"""Cards and queues under random input."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.names import bad_id, bad_path, bad_pattern
from longwatch.migrate.queue.cards import Card, parse_card
from longwatch.migrate.queue.order import order, queue_of, ready, unreachable

IDS = st.from_regex(r"\A[a-z0-9][a-z0-9_-]{0,9}\Z")
HEADS = st.text(st.sampled_from("ab:-[]{}&*!#|>?'\"\n \t~%@`,0\x00\xe9")) | st.text()


@pytest.mark.guarantee("M2")
@given(st.binary() | st.tuples(HEADS, HEADS).map(lambda pair: f"---\n{pair[0]}\n---\n{pair[1]}".encode()))
def test_any_bytes_are_a_card_or_a_config_error(raw: bytes) -> None:
    try:
        card = parse_card("x.md", raw)
    except ConfigError:
        return
    assert not bad_id(card.id)
    assert not any(bad_pattern(pattern) for pattern in card.owned)


@given(
    IDS,
    st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=50),
    st.lists(IDS, unique=True),
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9), min_size=1),
    st.integers(-1000, 1000),
)
def test_what_was_written_as_json_is_read_back(
    ident: str, title: str, after: list[str], owned: list[str], priority: int
) -> None:
    keys = {"id": ident, "title": title, "after": after, "owned": owned, "priority": priority}
    head = "\n".join(f"{key}: {msgspec.json.encode(value).decode()}" for key, value in keys.items())
    card = parse_card("x.md", f"---\n{head}\n---\nText".encode())
    assert (card.id, card.title, list(card.after), list(card.owned), card.priority) == tuple(keys.values())


@pytest.mark.guarantee("K34")
@given(st.text())
def test_a_path_that_is_let_through_stays_inside(text: str) -> None:
    if not bad_path(text):
        assert not text.startswith("/")
        assert ".." not in text.split("/")
        assert "\0" not in text


@st.composite
def queues(draw: st.DrawFn) -> list[Card]:
    """Cards without circles: each comes after some with a smaller number, and they are listed in any order."""
    names = draw(st.lists(IDS, unique=True, max_size=12))
    cards = []
    for number, name in enumerate(names):
        after = draw(st.lists(st.sampled_from(names[:number]), unique=True)) if number else []
        priority = draw(st.integers(-2, 2))
        cards.append(
            Card(
                id=name,
                title=name,
                owned=("**",),
                after=tuple(after),
                priority=priority,
                body="x",
                path=name,
                digest="",
            )
        )
    return draw(st.permutations(cards))


@pytest.mark.guarantee("M2", "M3")
@given(queues())
def test_the_order_holds_every_card_once_behind_its_forerunners(cards: list[Card]) -> None:
    ordered = [card.id for card in queue_of(cards).cards]
    assert sorted(ordered) == sorted(card.id for card in cards)
    for card in cards:
        assert all(ordered.index(name) < ordered.index(card.id) for name in card.after)
    assert order(sorted(cards, key=lambda card: card.id)) == order(cards)


@given(queues(), st.data())
def test_a_queue_never_stands_still_without_a_named_reason(cards: list[Card], data: st.DataObject) -> None:
    blocked: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    while choice := ready(cards, done, blocked):
        assert all(done.issuperset(card.after) for card in choice)
        if data.draw(st.booleans()):
            done |= {choice[0].id}
        else:
            blocked |= {choice[0].id}
    left = {card.id for card in cards} - done - blocked
    assert {one.id for one in unreachable(cards, done, blocked)} == left
    assert {one.because for one in unreachable(cards, done, blocked)} <= blocked


@pytest.mark.guarantee("M2")
@given(queues(), st.data())
def test_a_circle_is_always_found(cards: list[Card], data: st.DataObject) -> None:
    if not cards:
        return
    ordered = order(cards)
    last = ordered[-1]
    reachable = {last.id}
    for card in reversed(ordered):
        reachable |= set(card.after) if card.id in reachable else set()
    target = data.draw(st.sampled_from(sorted(reachable)))
    closed = [
        msgspec.structs.replace(card, after=(*card.after, last.id)) if card.id == target else card
        for card in cards
    ]
    with pytest.raises(ConfigError, match=rf"{target} -> |is the card itself"):
        queue_of(closed)
