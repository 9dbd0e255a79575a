"""What ctest prints. Pure. Recorded with ctest 3.25."""

import re
from collections.abc import Sequence

from longwatch.migrate.checks.census.tests import Counts, DisagreementError, Outcome, Tests, numbered, tally

_LINE = re.compile(r" *(\d+)/(\d+) Test +#\d+: (\S+) \.+(.*?)(?: \d+\.\d+ sec)?")
_SUMMARY = re.compile(r"\d+% tests passed, (\d+) tests? failed out of (\d+)")
_NONE = "No tests were found!!!"
_SKIPPED = ("***Skipped", "***Not Run (Disabled)")


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests; `None` without a summary. A test whose program is missing is an error."""
    if any(line.strip() == _NONE for line in lines):
        return Tests(runner="ctest", counts=Counts())
    summaries = [match for line in lines if (match := _SUMMARY.fullmatch(line.strip()))]
    if not summaries:
        return None
    found = [match for line in lines if (match := _LINE.fullmatch(line.rstrip()))]
    listing = [(match[3], _outcome(match[4].strip())) for match in found]
    counts = tally(listing)
    failed = int(summaries[-1][1])
    expected = int(found[-1][2]) if found else int(summaries[-1][2])
    if len(summaries) > 1 or failed != counts.failed + counts.errors or len(listing) != expected:
        raise DisagreementError(
            f"ctest: the tests listed ({counts}) and the summary ({failed} failed out of {summaries[-1][2]}) contradict "
            "each other; let no test print what looks like ctest's report"
        )
    return Tests(runner="ctest", counts=counts, outcomes=numbered(listing))


def _outcome(text: str) -> Outcome:
    if text == "Passed":
        return Outcome.PASSED
    if text.startswith(_SKIPPED):
        return Outcome.SKIPPED
    return Outcome.FAILED if text.startswith("***Failed") else Outcome.ERROR
