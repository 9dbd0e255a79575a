"""What pytest prints: the summary line, and the ids of `-v` or of the short summary. Pure. Recorded with pytest 9.2."""

import re
from collections.abc import Iterator, Sequence

from longwatch.migrate.checks.census.tests import Counts, Outcome, Tests, agreed

_OUTCOMES = {
    "PASSED": Outcome.PASSED,
    "XPASS": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.SKIPPED,
    "ERROR": Outcome.ERROR,
}
_WORDS = "|".join(_OUTCOMES)
_SESSION = re.compile(r"=+ test session starts =+")
_SHORT = re.compile(r"=+ short test summary info =+")
_SUMMARY = re.compile(
    r"(?:=+ )?(no tests ran|\d+ [a-z ]+(?:, \d+ [a-z ]+)*) in \d+\.\d+s(?: \([\d:]+\))?(?: =+)?"
)
_PART = re.compile(r"(\d+) (.+)")
_KNOWN = frozenset(
    "passed failed skipped xfailed xpassed error errors deselected warning warnings rerun reruns".split()  # noqa: SIM905 - read as a sentence
)
_IGNORED = re.compile(r"subtests? \w+")
_VERBOSE = re.compile(rf"(\S.*?) ({_WORDS})(?: \(.*\))?(?:\s+\[ *\d+%\])?")
_PARALLEL = re.compile(rf"\[gw\d+\](?: \[ *\d+%\])? ({_WORDS}) (\S.*?)\s*")
_FOLDED = re.compile(r"SKIPPED \[(\d+)\] .*")
_SHORT_LINE = re.compile(rf"({_WORDS}) (\S.*)")


def summaries(lines: Sequence[str]) -> list[Counts]:
    """Return every line that sums up a session, in order."""
    return [counts for line in lines if (counts := _counts(line)) is not None]


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests of all sessions; `None` if there was none."""
    sessions = [session for session in _sessions(lines) if summaries(session)]
    if not sessions:
        return None
    parts = [_session(session) for session in sessions]
    if len(parts) == 1:
        return parts[0]
    merged = [pair for part in parts for pair in part.outcomes.items()]
    total = sum((part.counts for part in parts), Counts())
    complete = all(part.outcomes or not part.counts.ran for part in parts)
    return Tests(runner="pytest", counts=total, outcomes=dict(merged) if complete else {})


def _sessions(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    starts = [number for number, line in enumerate(lines) if _SESSION.fullmatch(line)]
    for begin, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        yield lines[begin:end]


def _session(lines: Sequence[str]) -> Tests:
    return agreed("pytest", list(_listing(lines)), summaries(lines), twice=False)


def _counts(line: str) -> Counts | None:
    match = _SUMMARY.fullmatch(line.strip())
    if match is None:
        return None
    if match[1] == "no tests ran":
        return Counts()
    parts = {part[2]: int(part[1]) for text in match[1].split(", ") if (part := _PART.fullmatch(text))}
    if not all(word in _KNOWN or _IGNORED.fullmatch(word) for word in parts):
        return None
    return Counts(
        passed=parts.get("passed", 0) + parts.get("xpassed", 0),
        failed=parts.get("failed", 0),
        skipped=parts.get("skipped", 0) + parts.get("xfailed", 0),
        errors=parts.get("error", 0) + parts.get("errors", 0),
    )


def _listing(lines: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    verbose = [pair for line in lines if (pair := _verbose(line)) is not None]
    if verbose:
        yield from verbose
        return
    heads = [number for number, line in enumerate(lines) if _SHORT.fullmatch(line)]
    for line in lines[heads[-1] + 1 :] if heads else ():
        yield from _short(line)


def _verbose(line: str) -> tuple[str, Outcome] | None:
    if match := _PARALLEL.fullmatch(line):
        return match[2], _OUTCOMES[match[1]]
    match = _VERBOSE.fullmatch(line)
    return (match[1], _OUTCOMES[match[2]]) if match and "::" in match[1] else None


def _short(line: str) -> Iterator[tuple[str, Outcome]]:
    if match := _FOLDED.fullmatch(line):
        # Skipped tests are shown by place, not by id.
        yield from [("", Outcome.SKIPPED)] * min(int(match[1]), 1_000_000)
    elif match := _SHORT_LINE.fullmatch(line):
        # Only a test that passed is shown without a message, so only its id is certain.
        yield match[2] if match[1] == "PASSED" else _without_message(match[2]), _OUTCOMES[match[1]]


def _without_message(text: str) -> str:
    name, dash, _ = text.partition(" - ")
    if dash and name.count("[") > name.count("]"):
        head, bracket, _ = text.partition("] - ")
        return head + "]" if bracket else text
    return name
