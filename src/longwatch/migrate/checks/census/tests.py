"""What a check's tests were and how each ended, as values, and the law that a listing and its summary must agree."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from longwatch.kernel.errors import LongwatchError


class DisagreementError(LongwatchError):
    """What a test runner lists and what it sums up contradict each other: it counts as no evidence at all."""


class Outcome(StrEnum):
    """How one test ended. An expected failure is skipped: it proves nothing; an unexpected pass is what it is."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class Counts(msgspec.Struct, frozen=True):
    """How many tests ended in which way."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0

    @property
    def ran(self) -> int:
        """Tests that did something; a skipped one did not."""
        return self.passed + self.failed + self.errors

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.errors + other.errors,
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped, {self.errors} errors"


class Tests(msgspec.Struct, frozen=True, kw_only=True):
    """The tests of one check. Without ids `outcomes` is empty and only the counts are known."""

    __test__ = False

    runner: str
    counts: Counts
    outcomes: Mapping[str, Outcome] = {}


Listing = Iterable[tuple[str, Outcome]]
"""Ids and outcomes in the order they were printed; an empty id is a test whose id isn't printed."""

_WORST_FIRST = (Outcome.ERROR, Outcome.FAILED, Outcome.SKIPPED, Outcome.PASSED)


def tally(listing: Listing) -> Counts:
    """Count a listing."""
    by = Counter(outcome for _, outcome in listing)
    return Counts(by[Outcome.PASSED], by[Outcome.FAILED], by[Outcome.SKIPPED], by[Outcome.ERROR])


def numbered(listing: Listing) -> dict[str, Outcome]:
    """Return outcomes by id; an id that comes again is told apart by a number."""
    outcomes: dict[str, Outcome] = {}
    seen: Counter[str] = Counter()
    for name, outcome in listing:
        if not name:
            continue
        seen[name] += 1
        outcomes[name if seen[name] == 1 else f"{name} #{seen[name]}"] = outcome
    return outcomes


def worst(listing: Listing) -> dict[str, Outcome]:
    """Return outcomes by id; an id that comes again (a failed tear-down) has the worst of its outcomes."""
    outcomes: dict[str, Outcome] = {}
    for name, outcome in listing:
        if name:
            outcomes[name] = min(outcome, outcomes.get(name, outcome), key=_WORST_FIRST.index)
    return outcomes


def settled(runner: str, listing: list[tuple[str, Outcome]], summaries: list[Counts]) -> Tests | None:
    """Return what a listing and its summaries agree on (see `agreed`); `None` without a summary."""
    return agreed(runner, listing, summaries) if summaries else None


def agreed(
    runner: str, listing: list[tuple[str, Outcome]], summaries: list[Counts], *, twice: bool = True
) -> Tests:
    """Return the tests that a listing and its summaries agree on, else raise `DisagreementError`.

    A listing may be shorter than its summary (a runner that isn't verbose, a line torn by a test's own output): then
    the ids are unknown. It may never hold more. Of several summaries the last counts, or all together, and only if a
    full listing bears that out, for a test can print something that looks like one. With `twice` an id that comes twice is two tests, else one with two
    outcomes.
    """
    listed = tally(listing)
    total = listed if listed == summaries[-1] else sum(summaries, Counts())
    if _exceeds(listed, total) or (len(summaries) > 1 and listed != total):
        raise DisagreementError(
            f"{runner}: the tests listed ({listed}) and the summary ({total}) contradict each other; run one test "
            "runner a check, and let no test print what looks like a runner's report"
        )
    outcomes = (numbered(listing) if twice else worst(listing)) if listed == total else {}
    return Tests(runner=runner, counts=total, outcomes=outcomes)


def _exceeds(listed: Counts, total: Counts) -> bool:
    return (
        listed.passed > total.passed
        or listed.failed > total.failed
        or listed.skipped > total.skipped
        or listed.errors > total.errors
    )
