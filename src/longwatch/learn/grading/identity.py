"""What decides a verdict beside the answer and its task: our own sources, and the programs that run both (L23)."""

import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import TransientError
from longwatch.learn.grading.languages import RUNTIMES, Runtime
from longwatch.learn.grading.place import HERE, contained, words
from longwatch.learn.grading.scripts import BIN, wanted
from longwatch.learn.tasks import Language
from longwatch.sandbox import sandbox_of
from longwatch.sandbox.choice import Sandboxing
from longwatch.sandbox.engine import look

_VERSION_S = 20.0


def identity(languages: Iterable[Language], where: Sandboxing = HERE) -> Digest:
    """Return one digest of the grading sources, the sandbox and the runtimes of these languages, here and now."""
    return digest.of_bytes(msgspec.json.encode((_sources(), programs(languages, where))))


def programs(languages: Iterable[Language], where: Sandboxing = HERE) -> dict[str, str]:
    """Return the digests of the sandbox and of the runtimes of these languages by their paths, and what versions these say.

    A launcher's digest says nothing of a library behind it; its version does. An image's digest says all of it.
    """
    if contained(where):
        return {"image": sandbox_of(where).toolchain(), where.kind: look(where.kind).version}
    chosen = sorted(set(languages))
    paths = {path for language in chosen for path in wanted(language)} | {shutil.which("bwrap") or "bwrap"}
    found = {path: _program(Path(path).resolve()) for path in sorted(paths)}
    return found | {f"version of {language}": version(language) for language in chosen}


@cache
def version(language: Language, where: Sandboxing = HERE) -> str:
    """Return what a language's program says of itself, in one line; empty: it is not here. Asked once a process.

    Raises:
        TransientError: it is here and could not answer: the machine is too busy, or the program was killed.
    """
    asking = words(where, _asking(RUNTIMES[language]))
    try:
        done = subprocess.run(asking, capture_output=True, check=False, timeout=_VERSION_S, text=True)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return ""
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unanswered(asking, str(error)) from error
    if done.returncode < 0:
        raise _unanswered(asking, f"signal {-done.returncode} ended it")
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def _unanswered(asking: tuple[str, ...], why: str) -> TransientError:
    return TransientError(
        f"`{' '.join(asking)}` could not say its version: {why}. Try again when the machine is free"
    )


def _asking(runtime: Runtime) -> tuple[str, ...]:
    return f"{BIN}/{runtime.programs[0]}", *runtime.version


@cache
def _sources() -> Digest:
    """Once a process: it runs what it has loaded."""
    return digest.bind("grading", Path(__file__).parent, without=frozenset({"__pycache__"})).digest


@cache
def _program(path: Path) -> str:
    """Once a process: a hundred megabytes of Node take a while."""
    return digest.of_file(path) if path.is_file() else "missing"
