"""What a source of tasks is: numbered rows, each a problem in one or more languages (L1, L3)."""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from longwatch.kernel.digest import Digest
from longwatch.learn.tasks import Task


class LeftOut(msgspec.Struct, frozen=True):
    """A task that a source or a window does not give, and why."""

    task: str
    why: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a source."""

    number: int
    tasks: tuple[Task, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    kin: tuple[Task, ...] = ()
    """Versions of its problem in languages that are not asked in: what is near a benchmark in one is left out in all."""


class Source(Protocol):
    """A pinned sequence of rows: the same name, revision and digest always give the same rows."""

    @property
    def name(self) -> str:
        """What manifests call it."""

    @property
    def revision(self) -> str:
        """The pinned version."""

    @property
    def digest(self) -> Digest:
        """Of everything its rows depend on."""

    @property
    def provenance(self) -> str:
        """Where its rows come from, and that no person's prompts or files are among them (L5)."""

    @property
    def length(self) -> int | None:
        """How many rows there are; `None`: endless."""

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """The rows from `start` up to, not including, `end`; fewer where the source ends."""
