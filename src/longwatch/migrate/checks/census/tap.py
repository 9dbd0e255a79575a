"""The Test Anything Protocol (testanything.org, version 14), and node's test runner, which speaks it. Pure.

Recorded with node 20 (`--test-reporter=tap`, `spec`), vitest 4 (`tap-flat`) and mocha 11 (`tap`).
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.migrate.checks.census.tests import (
    Counts,
    DisagreementError,
    Outcome,
    Tests,
    numbered,
    settled,
    tally,
)

_POINT = re.compile(r"( *)(not )?ok(?: (\d+))?(?:(?: - | )(.*?))?(?: # *(skip|todo)\b.*)?", re.IGNORECASE)
_PLAN = re.compile(r"( *)1\.\.(\d+)(?: .*)?")
_SUBTEST = re.compile(r"( *)# Subtest: (.*)")
_TOTAL = re.compile(r"(?:#|ℹ) (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)")  # noqa: RUF001 - node's own sign
_SUITE = re.compile(r"type: '?suite'?")
_MS = re.compile(r" # time=[\d.]+m?s")
_INDENT = 4
_MAX_DEPTH = 64


class _Point(msgspec.Struct, frozen=True):
    depth: int
    number: int | None
    name: str
    outcome: Outcome


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests of a TAP stream with a plan; `None` if there is neither a plan nor a version."""
    body = list(_without_blocks(lines))
    plan = [int(match[2]) for line in body if (match := _PLAN.fullmatch(line)) and not match[1]]
    if not plan:
        return None
    points = list(_points(body))
    _check_plan(points, sum(plan), plans=len(plan))
    if (totals := node_totals(lines)) is not None and totals.get("tests") is not None and "suites" in totals:
        return settled("node", _node_listing(body), [_node_counts(totals)])
    _check_totals(points, totals or {})
    top = [(point.name, point.outcome) for point in points if point.depth == 0]
    return Tests(runner="tap", counts=tally(top), outcomes=numbered(top))


def parse_node_spec(lines: Sequence[str]) -> Tests | None:
    """Return the counts that node's `spec` reporter prints at its end; it shows no ids that could be told apart."""
    if not any(line.startswith("ℹ tests ") for line in lines):  # noqa: RUF001 - node's own sign
        return None
    totals = node_totals([line for line in lines if line.startswith("ℹ")])  # noqa: RUF001 - node's own sign
    return Tests(runner="node", counts=_node_counts(totals)) if totals is not None else None


def node_totals(lines: Sequence[str]) -> dict[str, int] | None:
    """Return the numbers of the last block of totals; what a test printed earlier doesn't count."""
    totals: dict[str, int] = {}
    for line in reversed(lines):
        match = _TOTAL.fullmatch(line.strip())
        if match and match[1] not in totals:
            totals[match[1]] = int(match[2])
        elif totals and not match:
            break
    return totals or None


def _node_counts(totals: dict[str, int]) -> Counts:
    return Counts(
        passed=totals.get("pass", 0),
        failed=totals.get("fail", 0),
        skipped=totals.get("skipped", 0) + totals.get("todo", 0),
        errors=totals.get("cancelled", 0),
    )


def _node_listing(lines: Sequence[str]) -> list[tuple[str, Outcome]]:
    """Return every test with the names of the suites it stands in; suites themselves are no tests."""
    names: list[str] = []
    listing: list[tuple[str, Outcome]] = []
    for number, line in enumerate(lines):
        if match := _SUBTEST.fullmatch(line):
            depth = min(len(match[1]) // _INDENT, _MAX_DEPTH)
            names = [*names[:depth], match[2]]
        elif (point := _point(line)) is not None and not _is_suite(lines, number):
            listing.append((" > ".join((*names[: point.depth], point.name)), point.outcome))
    return listing


def _is_suite(lines: Sequence[str], number: int) -> bool:
    follows = lines[number + 1] if number + 1 < len(lines) else ""
    return _SUITE.fullmatch(follows.strip()) is not None


def _without_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines outside YAML blocks, and of a block only the word that it describes a suite."""
    inside: str | None = None
    for line in lines:
        if inside is not None:
            if line.rstrip() == f"{inside}...":
                inside = None
            elif line.startswith(inside + "type:") and _SUITE.fullmatch(line.strip()):
                yield line
        elif line.strip() == "---" and line.startswith("  "):
            inside = line[: len(line) - len(line.lstrip())]
        else:
            yield _MS.sub("", line)


def _points(lines: Sequence[str]) -> Iterator[_Point]:
    for line in lines:
        if line.startswith("Bail out!"):
            yield _Point(0, None, line.strip(), Outcome.ERROR)
        elif (point := _point(line)) is not None:
            yield point


def _point(line: str) -> _Point | None:
    match = _POINT.fullmatch(line)
    if match is None:
        return None
    outcome = Outcome.FAILED if match[2] else Outcome.PASSED
    if match[5]:
        outcome = Outcome.SKIPPED
    number = int(match[3]) if match[3] else None
    depth = min(len(match[1]) // _INDENT, _MAX_DEPTH)
    return _Point(depth, number, (match[4] or f"test {match[3] or ''}").strip(), outcome)


def _check_plan(points: list[_Point], planned: int, plans: int) -> None:
    top = [point for point in points if point.depth == 0]
    numbers = [point.number for point in top if point.number is not None]
    if len(top) != planned or (plans == 1 and numbers != list(range(1, planned + 1))[: len(numbers)]):
        raise DisagreementError(
            f"tap: {len(top)} results for a plan of {planned}; a test printed what looks like a result, or the run was cut"
        )


def _check_totals(points: list[_Point], totals: dict[str, int]) -> None:
    counts = tally((point.name, point.outcome) for point in points if point.depth == 0)
    failed = totals.get("fail", counts.failed)
    if bool(failed) != bool(counts.failed):
        raise DisagreementError(f"tap: {counts.failed} results are `not ok`, its totals say {failed} failed")
