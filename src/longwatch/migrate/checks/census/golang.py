"""What `go test` prints, plain, with `-v` and with `-json`. Pure. Source: `go help test` and cmd/test2json."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.migrate.checks.census.tests import DisagreementError, Outcome, Tests, numbered, tally

_RESULT = re.compile(r" *--- (PASS|FAIL|SKIP): (\S+) \(\d+\.\d+s\)")
_RUN = re.compile(r"=== RUN +(\S+)")
_PACKAGE = re.compile(r"(ok|FAIL|\?|---)? *\t(\S+)\t?(.*)")
_OUTCOMES = {
    "PASS": Outcome.PASSED,
    "FAIL": Outcome.FAILED,
    "SKIP": Outcome.SKIPPED,
    "pass": Outcome.PASSED,
    "fail": Outcome.FAILED,
    "skip": Outcome.SKIPPED,
}


class _Event(msgspec.Struct, frozen=True, rename={"action": "Action", "package": "Package", "test": "Test"}):
    action: str
    package: str = ""
    test: str = ""


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests by package and name; without `-v` a package counts as one test. `None` if no package ran."""
    listing = list(_from_json(lines)) or list(_from_text(lines))
    return (
        Tests(runner="go", counts=tally(listing), outcomes=numbered(listing))
        if _any(lines, listing)
        else None
    )


def _any(lines: Sequence[str], listing: list[tuple[str, Outcome]]) -> bool:
    return bool(listing) or any(
        (match := _PACKAGE.fullmatch(line)) and match[1] in {"ok", "?"} for line in lines
    )


def _from_text(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    results: list[tuple[str, Outcome]] = []
    started = 0
    for line in lines:
        if match := _RESULT.fullmatch(line):
            results.append((match[2], _OUTCOMES[match[1]]))
        elif _RUN.fullmatch(line):
            started += 1
        elif (match := _PACKAGE.fullmatch(line)) and match[1]:
            yield from _package(match, results, started)
            results, started = [], 0


def _package(
    match: re.Match[str], results: list[tuple[str, Outcome]], started: int
) -> Iterator[tuple[str, Outcome]]:
    word, package, detail = match[1], match[2], match[3].strip()
    if started and len(results) > started:
        raise DisagreementError(
            f"go: {package} started {started} tests and reports {len(results)}; a test printed one"
        )
    counts = tally(results)
    if word == "ok" and counts.failed:
        raise DisagreementError(
            f"go: {package} is ok with {counts.failed} failed tests; a test printed what looks like one"
        )
    yield from ((f"{package} {name}", outcome) for name, outcome in results)
    if word == "FAIL" and not counts.failed:
        yield f"{package} {detail}".strip(), Outcome.ERROR
    elif word == "ok" and not started and "no tests to run" not in detail and "no test files" not in detail:
        yield package, Outcome.PASSED


def _from_json(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    failed: set[str] = set()
    for line in lines:
        event = _event(line)
        if event is None or event.action not in _OUTCOMES:
            continue
        if event.test:
            yield f"{event.package} {event.test}", _OUTCOMES[event.action]
            failed |= {event.package} if event.action == "fail" else set()
        elif event.action == "fail" and event.package not in failed:
            yield f"{event.package} (package)", Outcome.ERROR


def _event(line: str) -> _Event | None:
    if not line.startswith('{"') or '"Action"' not in line:
        return None
    try:
        return msgspec.json.decode(line, type=_Event)
    except msgspec.DecodeError:
        return None
