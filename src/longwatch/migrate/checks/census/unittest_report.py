"""What unittest prints, with and without `-v`. Pure. Recorded with Python 3.11; before it the ids lack the method."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from longwatch.migrate.checks.census.tests import Counts, Outcome, Tests, settled

_RAN = re.compile(r"Ran (\d+) tests? in \d+\.\d+s")
_VERDICT = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?")
_DETAIL = re.compile(r"([a-z ]+)=(\d+)")
_START = re.compile(r"(\w+) \(([\w.<>]+)\)(.*)")
_ENDS = re.compile(r"(?:.* \.\.\. )?(ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)")
_FIXTURES = frozenset({"setUpClass", "setUpModule", "tearDownClass", "tearDownModule"})
_OUTCOMES = {
    "ok": Outcome.PASSED,
    "FAIL": Outcome.FAILED,
    "unexpected success": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "expected failure": Outcome.SKIPPED,
}


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests; `None` if nothing says `Ran N tests`."""
    listing = list(_listing(lines))
    extra = sum(name.rpartition(".")[2] in _FIXTURES for name, _ in listing)
    summaries = list(_summaries(lines, extra))
    return settled("unittest", listing, summaries)


def _summaries(lines: Sequence[str], extra: int) -> Iterator[Counts]:
    told = [line.strip() for line in lines if line.strip()]
    for line, after in pairwise([*told, ""]):
        ran, verdict = _RAN.fullmatch(line), _VERDICT.fullmatch(after)
        if ran and verdict:
            yield _counts(int(ran[1]) + extra, verdict[1] or "")
            extra = 0  # tests of fixtures stand outside the number that ran


def _counts(ran: int, details: str) -> Counts:
    by = {match[1].strip(): int(match[2]) for match in _DETAIL.finditer(details)}
    failed = by.get("failures", 0) + by.get("unexpected successes", 0)
    skipped = by.get("skipped", 0) + by.get("expected failures", 0)
    errors = by.get("errors", 0)
    return Counts(
        passed=max(ran - failed - skipped - errors, 0), failed=failed, skipped=skipped, errors=errors
    )


def _listing(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    name: str | None = None
    for line in lines:
        start = _START.fullmatch(line)
        if start:
            name = _name(start[1], start[2])
        end = _ENDS.fullmatch(start[3] if start else line) if name is not None else None
        if name is not None and end:
            yield name, _OUTCOMES.get(end[1], Outcome.SKIPPED)
            name = None


def _name(method: str, place: str) -> str:
    return place if place.rpartition(".")[2] == method else f"{place}.{method}"
