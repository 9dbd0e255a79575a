"""The JSON documents of a queue in pointer form, as types, and what each must say by itself. Pure.

Objects are closed: a key that is misspelt is refused, not passed over. What a document must have to do with others and
with the files that it names is in `authority` and `accounting`.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

import msgspec

from longwatch.kernel.config import Problem, at
from longwatch.migrate import documents
from longwatch.migrate.declared import Bound
from longwatch.migrate.names import bad_id
from longwatch.migrate.patterns import unsafe
from longwatch.migrate.queue.cards import Allowance, NewTests

HANDOFF = "handoff"
"""The job that finishes a task has this name; a backlog may not use it."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_ROUTE = re.compile(r"/[!-~]{0,199}")
_TEXT = 4000


class _Closed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An object in which every key is known."""


class Standing(StrEnum):
    """Where a task stands."""

    OPEN = "open"
    DONE = "done"
    DEFERRED = "deferred"


class Criterion(_Closed, frozen=True, kw_only=True):
    """One point of a task's acceptance."""

    criterion: str
    met: bool


class Artifact(Bound, frozen=True, kw_only=True):
    """A product of a task."""

    kind: str


class Manifest(_Closed, frozen=True, kw_only=True):
    """What became of one task, and which one it authorises."""

    task: str
    status: Standing
    acceptance: tuple[Criterion, ...]
    artifacts: tuple[Artifact, ...]
    deferred: tuple[str, ...]
    """What was put off; a task with anything here is not accepted."""
    next_task: str | None
    """The authorised successor; null: there is none."""


class JobEntry(_Closed, frozen=True, kw_only=True):
    """One job of a task. The text of the task's card stands above its own."""

    id: str
    title: str
    owned: tuple[str, ...]
    text: str = ""
    priority: int | str = 0
    after: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    allow: tuple[Allowance, ...] = ()
    tests: NewTests = NewTests.REQUIRED


class Backlog(_Closed, frozen=True, kw_only=True):
    """The jobs of one task; without any the task itself is the one job."""

    task: str
    jobs: tuple[JobEntry, ...]


class Coverage(StrEnum):
    """Whether a unit is ported."""

    UNVERIFIED = "unverified"
    VERIFIED = "verified"


class Unit(_Closed, frozen=True, kw_only=True):
    """A piece of the source system that is to be ported."""

    id: str
    status: Coverage
    references: tuple[Bound, ...]
    """Its sources, relative to the source root."""
    evidence: tuple[Bound, ...] = ()
    """What shows that it is ported, relative to the repository."""


class Inventory(_Closed, frozen=True, kw_only=True):
    """All units."""

    units: tuple[Unit, ...]


class Route(_Closed, frozen=True, kw_only=True):
    """Something that a user can do, and the units behind it."""

    route: str
    units: tuple[str, ...]


class Catalog(_Closed, frozen=True, kw_only=True):
    """All user-facing routes."""

    routes: tuple[Route, ...]


class Port(_Closed, frozen=True, kw_only=True):
    """The files of this repository that port one unit."""

    unit: str
    files: tuple[str, ...]


class Parity(_Closed, frozen=True, kw_only=True):
    """Which unit is ported where."""

    ports: tuple[Port, ...]


def manifest_problems(name: str, manifest: Manifest) -> Iterator[Problem]:
    """Yield what a manifest cannot say."""
    yield from judged(f"{name}: task", (manifest.task,), bad_id)
    if manifest.next_task is not None:
        yield from judged(f"{name}: nextTask", (manifest.next_task,), bad_id)
        if manifest.next_task == manifest.task:
            yield Problem(
                at(f"{name}: nextTask", manifest.next_task), "is the task itself: name another, or null"
            )
    yield from _bound_problems(f"{name}: artifacts", manifest.artifacts)
    for number, one in enumerate(manifest.acceptance):
        if not one.criterion.strip():
            yield Problem(f"{name}: acceptance[{number}].criterion", "is empty: say what was to be met")


def inventory_problems(name: str, inventory: Inventory) -> Iterator[Problem]:
    """Yield what an inventory cannot say."""
    if not inventory.units:
        form = (
            '{"id": "UNIT", "status": "unverified", "references": [{"path": "SOURCE", "sha256": "DIGEST"}]}'
        )
        yield Problem(f"{name}: units", f"is empty: list what is to be ported, each unit like {form}")
    yield from documents.repeated(f"{name}: units.id", (unit.id for unit in inventory.units))
    for number, unit in enumerate(inventory.units):
        where = f"{name}: units[{number}]"
        yield from judged(f"{where}.id", (unit.id,), bad_unit)
        if not unit.references:
            yield Problem(f"{where}.references", f"is empty: name the sources of {unit.id}")
        yield from _bound_problems(f"{where}.references", unit.references)
        yield from _bound_problems(f"{where}.evidence", unit.evidence)
        if unit.status is Coverage.VERIFIED and not unit.evidence:
            yield Problem(
                f"{where}.evidence", f"is empty, and {unit.id} is said to be verified: nothing shows it"
            )


def catalog_problems(name: str, catalog: Catalog, units: frozenset[str]) -> Iterator[Problem]:
    """Yield what a catalog cannot say of these units."""
    yield from documents.repeated(f"{name}: routes.route", (one.route for one in catalog.routes))
    for number, one in enumerate(catalog.routes):
        where = f"{name}: routes[{number}]"
        if not _ROUTE.fullmatch(one.route):
            yield Problem(at(f"{where}.route", one.route), "must begin with / and hold no blanks")
        if not one.units:
            yield Problem(f"{where}.units", f"is empty: name the units behind {one.route}")
        yield from unknown_units(f"{where}.units", one.units, units)


def parity_problems(name: str, parity: Parity, units: frozenset[str]) -> Iterator[Problem]:
    """Yield what a parity map cannot say of these units."""
    yield from documents.repeated(f"{name}: ports.unit", (port.unit for port in parity.ports))
    for number, port in enumerate(parity.ports):
        where = f"{name}: ports[{number}]"
        yield from unknown_units(f"{where}.unit", (port.unit,), units)
        if not port.files:
            yield Problem(f"{where}.files", f"is empty: name the files that port {port.unit}")
        yield from judged(f"{where}.files", port.files, bad_file)


def unknown_units(where: str, named: Iterable[str], units: frozenset[str]) -> Iterator[Problem]:
    """Yield a problem for each unit that the inventory does not have, or that stands twice.

    Nothing is said of an inventory without units: that is a problem of its own.
    """
    named = tuple(named)
    yield from documents.repeated(where, iter(named))
    for unit in named:
        if units and unit not in units:
            yield Problem(at(where, unit), "is no unit of the inventory: correct it, or add it there")


def bad_file(path: str) -> str:
    """Return why a path is no plain path of a file below a root."""
    if not path.isprintable() or len(path) > 1024:
        return f"{path[:60]!a} must be up to 1024 printable characters"
    return unsafe(path) or ""


def bad_unit(name: str) -> str:
    """Return why a unit's id is refused."""
    return (
        ""
        if _UNIT.fullmatch(name)
        else "must be up to 128 letters, digits, dots, colons, hyphens, underscores"
    )


def bad_digest(text: str) -> str:
    """Return why this is no SHA-256."""
    return "" if _SHA256.fullmatch(text) else "must be a SHA-256: 64 small hexadecimal digits"


def _bound_problems(where: str, bound: Iterable[Bound]) -> Iterator[Problem]:
    bound = tuple(bound)
    yield from documents.repeated(f"{where}.path", (one.path for one in bound))
    for number, one in enumerate(bound):
        yield from judged(f"{where}[{number}].path", (one.path,), bad_file)
        yield from judged(f"{where}[{number}].sha256", (one.sha256,), bad_digest)


def priority_problems(where: str, given: int | str, words: tuple[str, ...]) -> Iterator[Problem]:
    """Yield why this is no priority; `words` are the configured ones."""
    if words and given not in words:
        yield Problem(at(where, given), f"must be one of queue.priorities: {', '.join(words)}")
    if not words and not isinstance(given, int):
        yield Problem(
            at(where, given), "must be a whole number, or set queue.priorities to the words that you use"
        )


def judged(where: str, values: Iterable[str], rule: Callable[[str], str]) -> Iterator[Problem]:
    """Yield a problem for each value for which the rule has a mend."""
    for value in values:
        mend = rule(value)
        if mend:
            yield Problem(at(where, value), mend)
