"""Random plain data for tests: small, readable, with what often goes wrong in it."""

from datetime import date, timedelta
from random import Random

_WORDS = [
    "apple",
    "river",
    "stone",
    "cloud",
    "table",
    "green",
    "Paris",
    "Anna",
    "window",
    "total",
    "error",
    "note",
    "silent",
    "market",
    "garden",
    "Berlin",
    "light",
    "delta",
    "orange",
    "Nina",
    "level",
    "tree",
    "data",
    "moon",
    "radar",
    "sister",
    "Oslo",
    "lemon",
    "train",
    "bread",
]
_UNUSUAL = ("café", "naïve", "Ärger", "señor", "œuvre", "Żuk")
_NAMES = (
    "ann",
    "bob",
    "cleo",
    "dan",
    "eve",
    "finn",
    "gustav",
    "hana",
    "sebastian",
    "isabella",
    "tom",
    "nadia",
)
_FIRST_DAY = date(1996, 1, 1)


def numbers(random: Random, low: int = -12, high: int = 24, at_most: int = 8) -> list[int]:
    """One to `at_most` whole numbers."""
    return [random.randint(low, high) for _ in range(random.randint(1, at_most))]


def words(random: Random, at_most: int = 7) -> list[str]:
    """One to `at_most` words, some with capitals, a few outside ASCII."""
    return [
        random.choice(_UNUSUAL if random.random() < 0.08 else _WORDS)
        for _ in range(random.randint(1, at_most))
    ]


def sentence(random: Random) -> str:
    """Words, digits and signs with single spaces between them."""
    parts = words(random)
    parts.insert(random.randint(0, len(parts)), random.choice(("7", "42", "2024", "a1b2", "x-y", "OK!")))
    return " ".join(parts)


def names(random: Random, at_most: int = 6) -> list[str]:
    """One to `at_most` different lower-case names."""
    return random.sample(_NAMES, random.randint(1, at_most))


def scores(random: Random, low: int = -12, high: int = 24) -> dict[str, int]:
    """A few names with whole numbers."""
    return {name: random.randint(low, high) for name in names(random)}


def matrix(random: Random, rows: int = 0, columns: int = 0) -> list[list[int]]:
    """A rectangle of whole numbers; 0: one to four rows or columns."""
    height, width = rows or random.randint(1, 4), columns or random.randint(1, 4)
    return [[random.randint(-9, 20) for _ in range(width)] for _ in range(height)]


def square(random: Random) -> list[list[int]]:
    """A matrix with as many rows as columns."""
    side = random.randint(1, 4)
    return matrix(random, side, side)


def day(random: Random, span: int = 12000) -> str:
    """A date as `YYYY-MM-DD`."""
    return (_FIRST_DAY + timedelta(days=random.randrange(span))).isoformat()


def days(random: Random, at_most: int = 6) -> list[str]:
    """One to `at_most` dates."""
    return [day(random) for _ in range(random.randint(1, at_most))]


def nested(random: Random, depth: int = 3) -> list[object]:
    """A list of whole numbers and of lists of the same kind."""
    return [
        nested(random, depth - 1) if depth > 1 and random.random() < 0.4 else random.randint(-9, 15)
        for _ in range(random.randint(0 if depth < 3 else 1, 4))
    ]


def intervals(random: Random, at_most: int = 5) -> list[list[int]]:
    """One to `at_most` pairs of a start and a later end."""
    starts = [random.randint(-5, 20) for _ in range(random.randint(1, at_most))]
    return [[start, start + random.randint(1, 9)] for start in starts]


def edges(random: Random, nodes: int = 6, at_most: int = 8) -> list[list[int]]:
    """Different pairs of different node numbers below `nodes`."""
    pairs = [[a, b] for a in range(nodes) for b in range(a + 1, nodes)]
    return [random.sample(pair, 2) for pair in random.sample(pairs, random.randint(1, at_most))]


def table(random: Random) -> str:
    """Lines `name,amount,city`, without a head."""
    cities = ("Oslo", "Rome", "Lima")
    return "\n".join(f"{name},{random.randint(-9, 30)},{random.choice(cities)}" for name in names(random))
