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
    programs = sorted({_RUNTIMES[language] for language in languages} | {shutil.which("bwrap") or "bwrap"})
    known = {program: _program(Path(program).resolve()) for program in programs}
    return digest.of_bytes(msgspec.json.encode((_sources(), known)))


@cache
def _sources() -> Digest:
    """Once a process: it runs what it has loaded."""
    return digest.bind("grading", Path(__file__).parent, without=frozenset({"__pycache__"})).digest


@cache
def _program(path: Path) -> str:
    """Once a process: a hundred megabytes of Node take a while."""
    return digest.of_file(path) if path.is_file() else "missing"
