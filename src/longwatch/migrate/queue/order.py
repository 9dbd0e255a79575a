"""The queue in list form: a folder of task cards, worked off in the order of what comes after what (M2, M3)."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.config import Problem, at, nearest, refuse
from longwatch.kernel.errors import ConfigError, PathError
from longwatch.kernel.files import read_bounded
from longwatch.migrate.queue.cards import CARD_BYTES, Card, parse_cards

MAX_CARDS = 5000
_FOLDER_BYTES = 64 * 1024**2


class Queue(msgspec.Struct, frozen=True):
    """All cards, in the order in which they are worked off. Built by `queue_of` and `read_queue` only."""

    cards: tuple[Card, ...]

    def card(self, ident: str) -> Card | None:
        """Return the card with this id, if there is one."""
        return next((card for card in self.cards if card.id == ident), None)


class Unreachable(msgspec.Struct, frozen=True):
    """A card that cannot be begun before a person unblocks another."""

    id: str
    because: str
    """The blocked card, somewhere up the chain of `after`."""


def queue_of(cards: Iterable[Card]) -> Queue:
    """Return the cards as a queue.

    Raises:
        ConfigError: ids stand twice, an `after` names no card or the card itself, or cards wait for each other.
    """
    found = tuple(cards)
    refuse("task cards", _link_problems(found))
    refuse("task cards", _cycle_problems(found))
    return Queue(order(found))


def order(cards: Iterable[Card]) -> tuple[Card, ...]:
    """Return the cards so that each stands behind what it comes `after`; then by priority (higher first), then by id.

    The order depends on the cards alone, not on how they were listed. Cards in a circle are left out.
    """
    found = {card.id: card for card in cards}
    waiting = {card.id: len({name for name in card.after if name in found}) for card in found.values()}
    followers = _followers(found)
    free = [_rank(found[name]) for name, count in waiting.items() if count == 0]
    heapq.heapify(free)
    ordered: list[Card] = []
    while free:
        name = heapq.heappop(free)[1]
        ordered.append(found[name])
        for follower in followers[name]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(free, _rank(found[follower]))
    return tuple(ordered)


def ready(cards: Iterable[Card], done: frozenset[str], blocked: frozenset[str]) -> tuple[Card, ...]:
    """Return the cards that can be begun: neither done nor blocked, and all that they come after is done."""
    return tuple(
        card for card in order(cards) if card.id not in done | blocked and done.issuperset(card.after)
    )


def unreachable(
    cards: Iterable[Card], done: frozenset[str], blocked: frozenset[str]
) -> tuple[Unreachable, ...]:
    """Return the cards that wait, over however many steps, for a blocked one, in queue order."""
    causes = {name: name for name in blocked}
    waiting = []
    for card in order(cards):
        cause = next((causes[name] for name in sorted(card.after) if name in causes), None)
        if cause is not None and card.id not in done | blocked:
            causes[card.id] = cause
            waiting.append(Unreachable(card.id, cause))
    return tuple(waiting)


def read_queue(folder: Path) -> Queue:
    """Return the queue in `folder`: every `*.md` but `README.md` is a card; hidden files and other names are not.

    Raises:
        ConfigError: the folder is missing or a link, a card is no regular file, too large or wrong, or the cards do
            not fit together; the message names file and mend.
    """
    files = [(f"{folder.name}/{name}", folder / name) for name in _card_names(folder)]
    return queue_of(parse_cards(_read_all(files)))


def _card_names(folder: Path) -> list[str]:
    try:
        if folder.is_symlink():
            raise ConfigError(f"the folder of task cards {folder} is a symbolic link: make it a real folder")
        names = sorted(path.name for path in folder.iterdir() if _is_card(path.name))
    except OSError as error:
        mend = "create it, or set [repository] tasks in longwatch.toml"
        raise ConfigError(
            f"the folder of task cards {folder} cannot be read ({error.strerror}): {mend}"
        ) from error
    if len(names) > MAX_CARDS:
        raise ConfigError(
            f"{folder} holds {len(names)} cards, more than {MAX_CARDS}: move finished ones elsewhere"
        )
    return names


def _is_card(name: str) -> bool:
    return name.lower().endswith(".md") and not name.startswith(".") and name.lower() != "readme.md"


def _read_all(files: Iterable[tuple[str, Path]]) -> list[tuple[str, bytes]]:
    contents: list[tuple[str, bytes]] = []
    problems: list[Problem] = []
    left = _FOLDER_BYTES
    for name, path in files:
        try:
            raw = read_bounded(path, min(CARD_BYTES, left))
        except FileNotFoundError:
            problems.append(Problem(name, "vanished while the queue was read: start again"))
        except PathError as error:
            problems.append(Problem(name, f"cannot be a card: {error}"))
        else:
            left -= len(raw)
            contents.append((name, raw))
    refuse("task cards", problems)
    return contents


def _rank(card: Card) -> tuple[int, str]:
    return -card.priority, card.id


def _followers(found: Mapping[str, Card]) -> Mapping[str, list[str]]:
    followers: defaultdict[str, list[str]] = defaultdict(list)
    for card in found.values():
        for name in dict.fromkeys(card.after):
            followers[name].append(card.id)
    return followers


def _link_problems(cards: tuple[Card, ...]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for card in cards:
        if card.id in first:
            yield Problem(
                at(f"{card.path}: id", card.id), f"is the id of {first[card.id]} too: give it its own"
            )
        first.setdefault(card.id, card.path)
    for card in cards:
        for name in card.after:
            where = at(f"{card.path}: after", name)
            if name == card.id:
                yield Problem(where, "is the card itself: remove it")
            elif name not in first:
                yield Problem(where, f"is no card{nearest(name, first)}")


def _cycle_problems(cards: tuple[Card, ...]) -> Iterator[Problem]:
    found = {card.id: card for card in cards}
    stuck = found.keys() - {card.id for card in order(cards)}
    while stuck:
        circle = _circle(found, stuck)
        path = " -> ".join((*circle, circle[0]))
        yield Problem(
            f"{found[circle[0]].path}: after", f"cards wait for each other: {path}; remove one `after`"
        )
        stuck = _without(found, stuck, circle)


def _circle(found: Mapping[str, Card], stuck: set[str]) -> list[str]:
    """Follow `after` among stuck cards until one comes again: every stuck card has at least one such `after`."""
    trail: list[str] = []
    name = min(stuck)
    while name not in trail:
        trail.append(name)
        name = min(other for other in found[name].after if other in stuck)
    circle = trail[trail.index(name) :]
    start = circle.index(min(circle))
    return circle[start:] + circle[:start]


def _without(found: Mapping[str, Card], stuck: set[str], circle: list[str]) -> set[str]:
    """Return the cards that would still be stuck if this circle were cut: those in or behind another one."""
    rest = [found[name] for name in stuck - set(circle)]
    return {card.id for card in rest} - {card.id for card in order(rest)}
