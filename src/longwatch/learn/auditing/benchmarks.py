"""The benchmarks of an audit: one for each language. HumanEval in Python now; another language is another entry."""

from pathlib import Path

import msgspec

from longwatch.kernel.digest import Digest
from longwatch.learn.settings import Audit
from longwatch.learn.sources import humaneval, pinned
from longwatch.learn.tasks import Language, Task


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A whole public set in one language. There is no part of it: a part would be no score (L24)."""

    name: str
    language: Language
    source: Digest
    """Of the published content."""
    tasks: tuple[Task, ...]


def chosen(audit: Audit, root: Path) -> tuple[Benchmark, ...]:
    """Return the benchmarks that the settings name; paths are relative to `root`.

    Raises:
        NotReadyError, IntegrityError: a file is not there, or is not the published one.
    """
    python = Benchmark(
        name="HumanEval",
        language=Language.PYTHON,
        source=pinned.HUMANEVAL.unpacked_sha256,
        tasks=humaneval.load(root / audit.humaneval),
    )
    return (python,)
