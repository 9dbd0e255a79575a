"""Case receipts: what a check says it observed, read by us after it ran, and held against the law (specification M21).

A check of a case kind finds an empty folder in `LONGWATCH_RECEIPTS` and a random word in `LONGWATCH_RUN`. For each case
it leaves `CASE.case.json` there, and beside it the canonical states whose digests it observed. A receipt without this
run's word was written beforehand or elsewhere, and counts as forged.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, PathError
from longwatch.migrate import documents
from longwatch.migrate.checks.census import Outcome, Tests
from longwatch.migrate.checks.census.tests import tally
from longwatch.migrate.declared import Bound, Case
from longwatch.migrate.names import bad_name
from longwatch.migrate.profiles import Profile
from longwatch.migrate.profiles.law import broken
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.queue.forms import bad_digest, bad_file

SUFFIX = ".case.json"
FOLDER, NONCE = "LONGWATCH_RECEIPTS", "LONGWATCH_RUN"
_RECEIPT_BYTES = 1024 * 1024
ARTIFACT_BYTES = 64 * 1024**2
_MOST = 2000
_SHOWN = 80


class Standing(StrEnum):
    """How a case ended, by its own word."""

    PASSED = "passed"
    FAILED = "failed"


class CaseReceipt(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one case observed."""

    nonce: str
    case: str
    kind: str
    status: Standing
    runtime: str
    units: tuple[str, ...]
    observations: dict[str, str]
    """Name of each observation -> SHA-256 of the canonical state that was observed."""
    artifacts: tuple[Bound, ...]
    """The states, and whatever else is kept, relative to the receipt's folder."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One receipt, as we found it."""

    path: str
    """Relative to the folder of receipts."""
    sha256: Digest
    receipt: CaseReceipt
    faults: tuple[str, ...]
    """Everything that is wrong with it."""

    @property
    def name(self) -> str:
        """Return the case's id, or what can be shown of it."""
        return ascii(self.receipt.case) if bad_name(self.receipt.case) else self.receipt.case

    @property
    def passed(self) -> bool:
        """True if it says so and nothing is wrong with it."""
        return not self.faults and self.receipt.status is Standing.PASSED

    @property
    def artifacts(self) -> tuple[Bound, ...]:
        """Return what lies beside it, relative to the folder of receipts."""
        above = self.path.rpartition("/")[0]
        place = f"{above}/" if above else ""
        return tuple(Bound(path=place + one.path, sha256=one.sha256) for one in self.receipt.artifacts)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """All receipts that one run left."""

    seen: tuple[Seen, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Why files that are named like receipts are none."""

    def of(self, kind: str) -> tuple[Seen, ...]:
        """Return the receipts of one kind of case."""
        return tuple(one for one in self.seen if one.receipt.kind == kind)


def read(root: Path, nonce: str, profile: Profile) -> Found:
    """Return the receipts that lie below `root`, each with everything that is wrong with it."""
    seen: list[Seen] = []
    unreadable: list[str] = []
    paths = sorted(_paths(root))
    for path in paths[:_MOST]:
        one = _read(root, path, nonce, profile)
        if isinstance(one, Seen):
            seen.append(one)
        else:
            unreadable += one
    if len(paths) > _MOST:
        unreadable.append(f"{len(paths)} case receipts, more than {_MOST}: split the check")
    twice = {name for name, count in Counter(one.receipt.case.lower() for one in seen).items() if count > 1}
    marked = (_marked(one) if one.receipt.case.lower() in twice else one for one in seen)
    return Found(seen=tuple(marked), unreadable=tuple(unreadable))


def tests(found: Found, kind: str) -> Tests:
    """Return the cases of a kind as the tests of a check."""
    listing = [(one.name, Outcome.PASSED if one.passed else Outcome.FAILED) for one in found.of(kind)]
    return Tests(runner="cases", counts=tally(listing), outcomes=dict(listing))


def reason(found: Found, profile: Profile, kind: str) -> str:
    """Return what is wrong with the receipts of a kind; those of no known kind are everybody's fault."""
    faults = [*found.unreadable]
    for one in found.seen:
        if one.receipt.kind == kind or profile.case_kind(one.receipt.kind) is None:
            faults += one.faults
    return "; ".join(faults)


def unshown(declared: Iterable[Case], seen: Mapping[str, tuple[Seen, ...]]) -> Iterator[str]:
    """Yield what was declared and is not what was seen; `seen` goes by the name of the check. Pure."""
    for case in declared:
        found = next((one for one in seen.get(case.check, ()) if one.receipt.case == case.id), None)
        if found is None:
            yield f"case {case.id}: it was declared, and check {case.check} left no receipt of it"
            continue
        for what, said, is_so in (
            ("kind", case.kind, found.receipt.kind),
            ("runtime", case.runtime, found.receipt.runtime),
            ("units", sorted(case.units), sorted(found.receipt.units)),
        ):
            if said != is_so:
                yield f"case {case.id}: its {what} was declared as {said!r} and its receipt says {is_so!r}"


def keep(root: Path, seen: Iterable[Seen], store: Path) -> Iterator[tuple[str, Digest]]:
    """Keep receipts and what they name, each under its digest, and yield name and digest of each.

    Raises:
        IntegrityError: a file is no longer what it was when it was read.
    """
    for one in seen:
        yield one.path, _kept(root / one.path, one.sha256, store)
        for bound in one.artifacts:
            yield bound.path, _kept(root / bound.path, Digest(bound.sha256), store)


def _kept(path: Path, sha256: Digest, store: Path) -> Digest:
    content = files.read_bounded(path, ARTIFACT_BYTES)
    if digest.of_bytes(content) != sha256:
        raise IntegrityError(f"{path} changed after it was read: what the case showed is not there any more")
    files.create(files.make_folder(store) / sha256, content)
    return sha256


def _paths(root: Path) -> Iterator[str]:
    for place, _, names in os.walk(root):
        for name in names:
            if name.endswith(SUFFIX):
                yield os.path.relpath(Path(place) / name, root)


def _read(root: Path, path: str, nonce: str, profile: Profile) -> Seen | list[str]:
    if bad_file(path):
        return [f"case receipt {path!a}: its name {bad_file(path)}"]
    try:
        raw = Folder(root).read(path, _RECEIPT_BYTES)
    except (FileNotFoundError, PathError) as error:
        return [f"case receipt {path!r} cannot be read: {error}"]
    receipt = documents.read(f"case receipt {path}", raw, CaseReceipt)
    if isinstance(receipt, tuple):
        return [f"{one.where}: {one.mend}" for one in receipt]
    beside = Folder((root / path).parent)
    found = (
        *_stated(path, receipt, nonce, profile),
        *_observed(receipt, profile),
        *_artifacts(receipt, beside),
    )
    faults = tuple(f"case receipt {path}: {fault}" for fault in found)
    return Seen(path=path, sha256=digest.of_bytes(raw), receipt=receipt, faults=faults)


def _stated(path: str, receipt: CaseReceipt, nonce: str, profile: Profile) -> Iterator[str]:
    if receipt.nonce != nonce:
        yield f"its nonce is not this run's: it was written beforehand or elsewhere; take it from {NONCE}"
    if bad_name(receipt.case):
        yield f"its case {_shown(receipt.case)} {bad_name(receipt.case)}"
    elif path.rpartition("/")[2] != f"{receipt.case}{SUFFIX}":
        yield f"it is of case {receipt.case!r}, so its name must be {receipt.case}{SUFFIX}"
    if profile.case_kind(receipt.kind) is None:
        kinds = ", ".join(kind.name for kind in profile.case_kinds)
        yield f"its kind {_shown(receipt.kind)} is no kind of case; known are {kinds}"
    if receipt.runtime not in profile.runtimes:
        yield f"its runtime {_shown(receipt.runtime)} is no runtime; known are {', '.join(profile.runtimes)}"
    if not receipt.units:
        yield "its units are empty: name what it shows"
    yield from _twice("unit", receipt.units)


def _observed(receipt: CaseReceipt, profile: Profile) -> Iterator[str]:
    kind = profile.case_kind(receipt.kind)
    if kind is not None:
        yield from broken(kind, receipt.observations)
    shown = {one.sha256 for one in receipt.artifacts}
    for name, sha256 in receipt.observations.items():
        if bad_digest(sha256):
            yield f"observation {_shown(name)} {bad_digest(sha256)}"
        elif sha256 not in shown:
            yield f"observation {_shown(name)} is the digest of none of its artifacts: leave the canonical state beside it"


def _artifacts(receipt: CaseReceipt, beside: Folder) -> Iterator[str]:
    yield from _twice("artifact", (one.path for one in receipt.artifacts))
    for one in receipt.artifacts:
        if bad_file(one.path) or bad_digest(one.sha256):
            yield f"its artifact {_shown(one.path)}: {bad_file(one.path) or bad_digest(one.sha256)}"
            continue
        try:
            actual = digest.of_bytes(beside.read(one.path, ARTIFACT_BYTES))
        except FileNotFoundError:
            yield f"its artifact {_shown(one.path)} is missing"
        except PathError as error:
            yield f"its artifact {_shown(one.path)} cannot be read: {error}"
        else:
            if actual != one.sha256:
                yield f"its artifact {_shown(one.path)} is {actual[:12]} and not {one.sha256[:12]}: its digest differs"


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    yield from (
        f"its {what} {_shown(name)} stands twice: keep one"
        for name, count in Counter(names).items()
        if count > 1
    )


def _shown(text: str) -> str:
    """Whatever a receipt says, a person must be able to read what is said of it."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ...")


def _marked(one: Seen) -> Seen:
    fault = f"case receipt {one.path}: another receipt is of case {one.receipt.case!r} too"
    return msgspec.structs.replace(one, faults=(*one.faults, fault))
