"""What `cargo test` prints: one block a test program. Pure. Recorded with cargo 1.95."""

import re
from collections.abc import Iterator, Sequence

from longwatch.migrate.checks.census.tests import Counts, DisagreementError, Outcome, Tests, settled

_PROGRAM = re.compile(r"\s+Running (?:unittests )?(\S+)(?: \((\S+)\))?")
_DOC = re.compile(r"\s+Doc-tests (\S+)")
_HASH = re.compile(r"-[0-9a-f]{16}$")
_BEGIN = re.compile(r"running (\d+) tests?")
_END = re.compile(
    r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured; (\d+) filtered out.*"
)
_TEST = re.compile(r"test (.+?)(?: - should panic)? \.\.\. ?(.*)")
_OUTCOMES = {"ok": Outcome.PASSED, "FAILED": Outcome.FAILED}


def parse(lines: Sequence[str]) -> Tests | None:
    """Return the tests of all test programs; `None` if none ran. A block that isn't whole is a disagreement."""
    listing: list[tuple[str, Outcome]] = []
    summaries: list[Counts] = []
    for program, announced, block, end in _blocks(lines):
        counts = Counts(int(end[1]) + int(end[4]), int(end[2]), int(end[3]))
        if announced != counts.ran + counts.skipped:
            raise DisagreementError(
                f"cargo: {program or 'a test program'} announced {announced} tests and summed up {counts}; "
                "a test printed what looks like a summary"
            )
        listing += [(f"{program} {name}".strip(), outcome) for name, outcome in _tests(block)]
        summaries.append(counts)
    total = sum(summaries, Counts())
    return settled("cargo", listing, [total]) if summaries else None


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, int, Sequence[str], re.Match[str]]]:
    program = ""
    begin: int | None = None
    announced = 0
    for number, line in enumerate(lines):
        if begin is None and (match := _PROGRAM.fullmatch(line) or _DOC.fullmatch(line)):
            program = _name(match)
        elif match := _BEGIN.fullmatch(line):
            if begin is not None:
                raise DisagreementError(
                    f"cargo: {program} has no `test result`; it was cut, or a test printed a heading"
                )
            begin, announced = number, int(match[1])
        elif match := _END.fullmatch(line):
            if begin is None:
                raise DisagreementError("cargo: a `test result` without `running N tests`; a test printed it")
            yield program, announced, lines[begin + 1 : number], match
            begin = None
    if begin is not None:
        raise DisagreementError(f"cargo: {program} has no `test result`; the run was cut")


def _name(match: re.Match[str]) -> str:
    if match.re is _DOC:
        return f"{match[1]} doc"
    binary = (match[2] or match[1]).rpartition("/")[2]
    return f"{_HASH.sub('', binary)} {match[1]}" if match[2] else _HASH.sub("", binary)


def _tests(block: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    name: str | None = None
    for line in block:
        if line in {"failures:", "successes:"}:
            return  # from here on it shows what the tests printed
        if match := _TEST.fullmatch(line):
            name, word = match[1], match[2]
        else:
            word = line  # the verdict of a test that printed something
        outcome = Outcome.SKIPPED if word.startswith("ignored") else _OUTCOMES.get(word)
        if word.startswith("bench:"):
            outcome = Outcome.PASSED
        if name is not None and outcome is not None:
            yield name, outcome
            name = None
