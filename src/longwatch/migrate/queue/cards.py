"""Task cards: Markdown with front matter. Pure: bytes come in, cards or all problems of all cards come out.

A card says what one job is: its `id`, `title`, the jobs it comes `after`, the paths it `owned`, the `checks` that
prove it. Its keys are a closed set, and its paths are patterns inside the repository (specification M2, K34).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from longwatch.kernel.config import Problem, at, conform, nearest, refuse
from longwatch.kernel.errors import ConfigError
from longwatch.migrate.names import bad_id, bad_pattern
from longwatch.migrate.patterns import Patterns
from longwatch.migrate.queue.front_matter import FrontMatterError, Tree, decode, split
from longwatch.migrate.settings import Check, check_problems

CARD_BYTES = 256 * 1024
_TITLE_CHARACTERS = 200
_PRIORITY = 1_000_000


class Allowance(StrEnum):
    """What a card may allow that otherwise fails an attempt (specification M22)."""

    CHANGE_TESTS = "change-tests"
    """Existing tests need not pass in the form they had before the change."""
    DELETE_TESTS = "delete-tests"
    """Existing tests may be removed or renamed."""
    SKIP_TESTS = "skip-tests"
    """Existing tests may be marked as skipped."""
    WEAKEN_TESTS = "weaken-tests"
    """Existing tests may assert less."""


class NewTests(StrEnum):
    """Whether a change has to bring a test of its own."""

    REQUIRED = "required"
    """Something that failed on the tree before must pass with the change: a test that it brings, or a check."""
    OPTIONAL = "optional"
    """The configured checks are proof enough."""


class Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The front matter of a card. Names are its keys."""

    id: str
    """Path-safe and never reused: `[a-z0-9][a-z0-9._-]{0,63}`."""
    title: str
    """One line; it becomes the first line of the commit."""
    owned: tuple[str, ...] = ()
    """Patterns of the paths that the worker may change, as in `[repository]`; left out: all that is not protected.
    A protected file may be owned by its exact path."""
    after: tuple[str, ...] = ()
    """Ids of the cards that must be done before."""
    checks: tuple[Check | str, ...] = ()
    """Names of configured checks, for only these to run, and tables with the keys of `[[checks]]`, to run besides."""
    allow: tuple[Allowance, ...] = ()
    """Changes to existing tests that this job is there to make."""
    priority: int = 0
    """Higher goes first, among cards whose `after` are done."""
    tests: NewTests = NewTests.REQUIRED
    """Whether the change must show by a test or check, failing before and passing now, that the job was done."""


class Card(Head, frozen=True, kw_only=True):
    """A card as it was read."""

    body: str
    """The text below the front matter: what the worker is told."""
    path: str
    """Where it was read, for messages."""
    digest: str
    """SHA-256 of the file's bytes, in hexadecimal; in pointer form of all that authorises the job."""
    units: tuple[str, ...] = ()
    """The units of the inventory that this job ports, where the queue names any."""
    finishes: str = ""
    """The task that this job hands off, by the repository's own generators; empty for a worker's job."""


def parse_card(path: str, raw: bytes) -> Card:
    """Return the card in `raw`; `path` names it in messages.

    Raises:
        ConfigError: it is wrong; the message holds all its problems.
    """
    return parse_cards([(path, raw)])[0]


def parse_cards(files: Iterable[tuple[str, bytes]]) -> tuple[Card, ...]:
    """Return a card for each pair of path and bytes, in their order.

    Raises:
        ConfigError: some are wrong; the message holds all problems of all cards.
    """
    cards: list[Card] = []
    problems: list[Problem] = []
    for path, raw in files:
        read = _read(path, raw)
        if isinstance(read, Card):
            cards.append(read)
        else:
            problems += [Problem(f"{path}: {problem.where}", problem.mend) for problem in read]
    refuse("task cards", problems)
    return tuple(cards)


def checks_of(card: Card, configured: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that prove this card: the configured ones it names, else all, and its own besides."""
    named = {item for item in card.checks if isinstance(item, str)}
    chosen = [check for check in configured if not named or check.name in named]
    return (*chosen, *(item for item in card.checks if isinstance(item, Check)))


def against_settings(
    cards: Iterable[Card], configured: Sequence[Check], required_kinds: Sequence[str]
) -> Iterator[Problem]:
    """Yield what in the cards does not fit the configured checks: unknown names, doubles, missing kinds."""
    known = {check.name for check in configured}
    for card in cards:
        for item in card.checks:
            if isinstance(item, str) and item not in known:
                where = at(f"{card.path}: checks", item)
                yield Problem(where, f"is no configured check{nearest(item, known)}")
            elif isinstance(item, Check) and item.name in known:
                mend = "is also the name of a configured check: give it its own"
                yield Problem(at(f"{card.path}: checks.name", item.name), mend)
        kinds = {check.kind for check in checks_of(card, configured)}
        for kind in dict.fromkeys(required_kinds):
            if kind not in kinds:
                yield Problem(f"{card.path}: checks", f'none has the required kind "{kind}": name one')


def _read(path: str, raw: bytes) -> Card | list[Problem]:
    if len(raw) > CARD_BYTES:
        return [
            Problem("size", f"is {len(raw)} bytes, more than {CARD_BYTES}: move material into files it names")
        ]
    try:
        head, body = split(raw.decode("utf-8-sig"))
        tree = decode(head)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return [Problem(f"line {line}", "is not UTF-8 text: save the card with the encoding UTF-8")]
    except FrontMatterError as error:
        return [Problem(f"line {error.line}", str(error))]
    problems = [*_form(tree), *_body_problems(body)]
    if problems:
        return problems
    parsed = msgspec.convert(tree, Head, strict=False)
    return list(_head_problems(parsed)) or _card(parsed, body, path, raw)


def _card(head: Head, body: str, path: str, raw: bytes) -> Card:
    fields = {name: getattr(head, name) for name in head.__struct_fields__}
    return Card(**fields, body=body, path=path, digest=hashlib.sha256(raw).hexdigest())


def _form(tree: dict[str, Tree]) -> Iterator[Problem]:
    for problem in conform(tree, Head, strict=False):
        exempt = problem.where.startswith("allow[") and "no-new-tests" in problem.where
        yield Problem(problem.where, "is written as `tests: optional`") if exempt else problem
    if tree.get("owned") == []:
        yield Problem("owned", "is empty: leave it out to own all that is not protected, or list patterns")


def _body_problems(body: str) -> Iterator[Problem]:
    if not body.strip():
        yield Problem("text", "is missing: say below the front matter what is to be done")
    if "\0" in body:
        yield Problem("text", "has a NUL character: remove it")


def _head_problems(head: Head) -> Iterator[Problem]:
    yield from _judged("id", head.id, bad_id)
    for one in head.after:
        yield from _judged("after", one, bad_id)
    yield from _judged("title", head.title, bad_title)
    for pattern in head.owned:
        yield from _judged("owned", pattern, bad_owned)
    if abs(head.priority) > _PRIORITY:
        yield Problem(at("priority", head.priority), f"must lie between -{_PRIORITY} and {_PRIORITY}")
    yield from _own_checks_problems(head)


def bad_owned(pattern: str) -> str:
    """Return why a pattern of owned paths is refused."""
    mend = bad_pattern(pattern)
    if mend:
        return mend
    try:
        Patterns((pattern,)).matches("")
    except ConfigError as error:
        return f"cannot be understood: {error}"
    return ""


def bad_title(title: str) -> str:
    """Return why a title is refused."""
    if not title.strip() or not title.isprintable() or len(title) > _TITLE_CHARACTERS:
        return f"must be one line of 1 to {_TITLE_CHARACTERS} printable characters"
    return ""


def _own_checks_problems(head: Head) -> Iterator[Problem]:
    for number, item in enumerate(head.checks):
        if isinstance(item, Check):
            yield from check_problems(f"checks[{number}]", item)
    names = Counter((item.name if isinstance(item, Check) else item).lower() for item in head.checks)
    for name, count in names.items():
        if count > 1:
            yield Problem(at("checks", name), "stands more than once: keep one")


def _judged(key: str, value: str, rule: Callable[[str], str]) -> Iterator[Problem]:
    mend = rule(value)
    if mend:
        yield Problem(at(key, value), mend)
