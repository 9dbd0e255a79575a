"""What jest, vitest and mocha print. Pure. Recorded with jest 30, vitest 4 and mocha 11 (`spec`)."""

import re
from collections.abc import Iterator, Sequence

from longwatch.migrate.checks.census.tests import Counts, Outcome, Tests, settled

_PART = re.compile(r"(\d+) (passed|failed|skipped|todo|pending)")
_TIME = re.compile(r" ?\(?\d+(?:\.\d+)? ?m?s\)?$")

_JEST_SUMMARY = re.compile(r"Tests: +(.*?)(?:, )?(\d+) total")
_JEST_FILE = re.compile(r"(?:PASS|FAIL) (?:\[?[\w-]+\]? )?(\S+)(?: \([\d.]+ m?s\))?")
_JEST_TEST = re.compile(r"( +)(✓|✕|○ skipped|○|✎ todo|✎) (.+)")
_JEST_SUITE = re.compile(r"( +)(\S.*)")

_VITEST_SUMMARY = re.compile(r" +Tests +((?:\d+ \w+(?: \| )?)+) \((\d+)\)")
_VITEST_NONE = re.compile(r" +Tests +no tests")
_VITEST_TEST = re.compile(r" (✓|×|↓|□) (\S.* > .+)")  # noqa: RUF001 - vitest's own signs

_MOCHA_PASSING = re.compile(r"  (\d+) passing \(\d+\w+\)")
_MOCHA_MORE = re.compile(r"  (\d+) (pending|failing)")
_MOCHA_TEST = re.compile(r"( {2,})(✔|✓|-|\d+\)) (.+)")

_OUTCOMES = {
    "✓": Outcome.PASSED,
    "✔": Outcome.PASSED,
    "✕": Outcome.FAILED,
    "×": Outcome.FAILED,  # noqa: RUF001 - vitest's own sign
}


def _counts(text: str) -> Counts:
    by = {match[2]: int(match[1]) for match in _PART.finditer(text)}
    skipped = by.get("skipped", 0) + by.get("todo", 0) + by.get("pending", 0)
    return Counts(passed=by.get("passed", 0), failed=by.get("failed", 0), skipped=skipped)


def parse_jest(lines: Sequence[str]) -> Tests | None:
    """Return jest's tests; ids need `--verbose`."""
    summaries = [_counts(match[1]) for line in lines if (match := _JEST_SUMMARY.fullmatch(line.rstrip()))]
    return settled("jest", list(_jest_listing(lines)), summaries)


def _jest_listing(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    file: str | None = None
    suites: list[tuple[int, str]] = []
    for line in lines:
        if match := _JEST_FILE.fullmatch(line):
            file, suites = match[1], []
        elif not line.strip() or not line.startswith(" ") or line.startswith("  ●"):
            file = None  # the listing ends at the first line that isn't part of it
        elif file is not None and (match := _JEST_TEST.fullmatch(line)):
            suites = [suite for suite in suites if suite[0] < len(match[1])]
            names = (file, *(name for _, name in suites), _TIME.sub("", match[3]))
            yield " > ".join(names), _OUTCOMES.get(match[2], Outcome.SKIPPED)
        elif file is not None and (match := _JEST_SUITE.fullmatch(line)):
            suites = [suite for suite in suites if suite[0] < len(match[1])] + [(len(match[1]), match[2])]


def parse_vitest(lines: Sequence[str]) -> Tests | None:
    """Return vitest's tests; ids need `--reporter=verbose`."""
    summaries = [_counts(match[1]) for line in lines if (match := _VITEST_SUMMARY.fullmatch(line.rstrip()))]
    summaries += [Counts() for line in lines if _VITEST_NONE.fullmatch(line.rstrip())]
    found = (match for line in lines if (match := _VITEST_TEST.fullmatch(line)))
    listing = [(_TIME.sub("", match[2]), _OUTCOMES.get(match[1], Outcome.SKIPPED)) for match in found]
    return settled("vitest", listing, summaries)


def parse_mocha(lines: Sequence[str]) -> Tests | None:
    """Return mocha's tests as its `spec` reporter shows them."""
    ends = [number for number, line in enumerate(lines) if _MOCHA_PASSING.fullmatch(line)]
    if not ends:
        return None
    claims = [_mocha_counts(lines[end : end + 3]) for end in ends]
    return settled("mocha", list(_mocha_listing(lines[: ends[-1]])), claims)


def _mocha_counts(lines: Sequence[str]) -> Counts:
    passing = _MOCHA_PASSING.fullmatch(lines[0])
    more = {match[2]: int(match[1]) for line in lines[1:] if (match := _MOCHA_MORE.fullmatch(line))}
    passed = int(passing[1]) if passing else 0
    return Counts(passed=passed, failed=more.get("failing", 0), skipped=more.get("pending", 0))


def _mocha_listing(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    suites: list[tuple[int, str]] = []
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if not line.strip() or indent < 2:
            continue
        suites = [suite for suite in suites if suite[0] < indent]
        match = _MOCHA_TEST.fullmatch(line)
        if match is None:
            suites.append((indent, line.strip()))
            continue
        outcome = Outcome.FAILED if match[2].endswith(")") else _OUTCOMES.get(match[2], Outcome.SKIPPED)
        name = _TIME.sub("", match[3]) if outcome is Outcome.PASSED else match[3]
        yield " > ".join((*(suite for _, suite in suites), name)), outcome
