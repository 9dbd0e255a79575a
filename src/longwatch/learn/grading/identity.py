"""What decides a verdict beside the answer and its task: our own sources, and the programs that run both (L23)."""

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.learn.grading.runtimes import NODE, PYTHON
from longwatch.learn.tasks import Language

_RUNTIMES = {Language.PYTHON: PYTHON, Language.JAVASCRIPT: NODE}


def identity(languages: Iterable[Language]) -> Digest:
    """Return one digest of the grading sources, the sandbox and the runtimes of these languages, here and now."""
    return digest.of_bytes(msgspec.json.encode((_sources(), programs(languages))))


def programs(languages: Iterable[Language]) -> dict[str, str]:
    """Return the digests of the sandbox and of the runtimes of these languages, by their paths."""
    found = sorted({_RUNTIMES[language] for language in languages} | {shutil.which("bwrap") or "bwrap"})
    return {program: _program(Path(program).resolve()) for program in found}


@cache
def _sources() -> Digest:
    """Once a process: it runs what it has loaded."""
    return digest.bind("grading", Path(__file__).parent, without=frozenset({"__pycache__"})).digest


@cache
def _program(path: Path) -> str:
    """Once a process: a hundred megabytes of Node take a while."""
    return digest.of_file(path) if path.is_file() else "missing"
