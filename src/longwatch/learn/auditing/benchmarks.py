"""The benchmarks of an audit, one for each language: HumanEval in Python, MultiPL-E in the others."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel.digest import Digest
from longwatch.learn.settings import Audit
from longwatch.learn.sources import humaneval, multipl_e, pinned
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
    return (*_python(audit, root), *_others(audit, root))


def _python(audit: Audit, root: Path) -> Iterator[Benchmark]:
    if audit.humaneval:
        yield Benchmark(
            name="HumanEval",
            language=Language.PYTHON,
            source=pinned.HUMANEVAL.unpacked_sha256,
            tasks=humaneval.load(root / audit.humaneval),
        )


def _others(audit: Audit, root: Path) -> Iterator[Benchmark]:
    if not audit.multipl_e:
        return
    for language in multipl_e.chosen(audit.languages):
        yield Benchmark(
            name="MultiPL-E",
            language=language,
            source=pinned.MULTIPL_E[language].unpacked_sha256,
            tasks=multipl_e.load(language, root / audit.multipl_e),
        )
