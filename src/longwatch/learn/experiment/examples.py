"""Verified answers as teaching examples, and which of them are taught (L9). Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from longwatch.learn.teachers.provenance import Provenance
from longwatch.learn.training.rows import Row

MOST_WAYS = 2
"""Ways of writing one task's answer that are taught: more of them would let an easy task crowd out others."""


class Author(StrEnum):
    """Who wrote an answer."""

    STUDENT = "student"
    TEACHER = "teacher"


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, an answer that passed its tests, and where that came from."""

    task: str
    prompt: str
    answer: str
    """In the form that is asked for."""
    author: Author
    seed: int = 0
    """Of the student's sample; that of a teacher's stands in the provenance."""
    passed: int
    """How many of the student's own answers to this task passed, ..."""
    graded: int
    """... of how many."""
    provenance: Provenance | None = None
    """Which teacher wrote it, and where it came from; `None`: the student, or an example of an older version."""

    @property
    def row(self) -> Row:
        """What training sees of it."""
        return Row(prompt=self.prompt, answer=self.answer)

    @property
    def in_band(self) -> bool:
        """True if the student can learn most from the task: it passes sometimes, and not always."""
        return 0 < self.passed < self.graded


def ranked(examples: Iterable[Example]) -> tuple[Example, ...]:
    """Return the examples by what they are worth, those of equal worth in their order.

    Own answers in the learnable band come first, because they forget least, then what was taught, then own answers to
    what the student can do already; in each, a second way of writing comes after all first ones.
    """
    seen: dict[str, int] = {}
    found: list[tuple[int, int, Example]] = []
    for example in examples:
        way = seen.setdefault(example.task, 0)
        seen[example.task] += 1
        if way < MOST_WAYS:
            found.append((_class(example), way, example))
    return tuple(example for _, _, example in sorted(found, key=lambda one: one[:2]))


def chosen(examples: Iterable[Example], most: int) -> tuple[Example, ...]:
    """Return what is taught of everything that was collected."""
    return ranked(examples)[:most]


def rows(examples: Sequence[Example]) -> tuple[Row, ...]:
    """Return what training sees of them, the same row once."""
    return tuple(dict.fromkeys(example.row for example in examples))


def _class(example: Example) -> int:
    if example.author is Author.TEACHER:
        return 1
    return 0 if example.in_band else 2
