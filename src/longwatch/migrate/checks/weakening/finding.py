"""What a change did to the tests, as values."""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from longwatch.migrate.queue.cards import Allowance


class Kind(StrEnum):
    """In which way a test proves less than before."""

    DELETED_FILE = "deleted_file"
    UNPARSABLE = "unparsable"
    DELETED_TEST = "deleted_test"
    EMPTIED_TEST = "emptied_test"
    SKIPPED_TEST = "skipped_test"
    """A marker that skips it, expects it to fail, repeats it until it passes, or runs only others."""
    LOST_ASSERTION = "lost_assertion"
    """An assertion is gone, or asks less."""
    CHANGED_ASSERTION = "changed_assertion"
    """It expects something else, in the same form."""
    UNREACHABLE = "unreachable"
    """An assertion stands where it can't fail: behind a return, under `if False`, inside a `try` that swallows it."""
    CONDITIONAL = "conditional"
    """An assertion runs only under a condition that wasn't there."""
    FEWER_CASES = "fewer_cases"
    MOCKED = "mocked"
    """A test that was there before replaces parts of what it tests."""
    WRAPPED = "wrapped"
    """A decorator or fixture stands around it that may never call it."""
    REACHES_INTO_TESTS = "reaches_into_tests"
    """Code that ends, patches or recognises the test runner."""


class Finding(msgspec.Struct, frozen=True, order=True):
    """One weakening. `test` is empty where the whole file is meant; `quote` is what it is about."""

    kind: Kind
    path: str
    test: str
    quote: str

    @property
    def text(self) -> str:
        """What a report says behind the path."""
        return f"{self.test}{': ' if self.test else ''}{self.kind.replace('_', ' ')}: {self.quote}"

    @property
    def allowed_by(self) -> Allowance:
        """What a card must allow for this to pass."""
        return _ALLOWED_BY.get(self.kind, Allowance.WEAKEN_TESTS)

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


_ALLOWED_BY = {
    Kind.DELETED_FILE: Allowance.DELETE_TESTS,
    Kind.DELETED_TEST: Allowance.DELETE_TESTS,
    Kind.SKIPPED_TEST: Allowance.SKIP_TESTS,
    Kind.CHANGED_ASSERTION: Allowance.CHANGE_TESTS,
}


def shortened(text: str) -> str:
    """Return the text as one line that fits a report."""
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:157] + "..."


def lost(before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    """Yield what stands in the first multiset and not in the second, in order."""
    left = Counter(after)
    for text in before:
        if left[text] > 0:
            left[text] -= 1
        else:
            yield text
