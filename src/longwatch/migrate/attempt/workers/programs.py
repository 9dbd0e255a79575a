"""Finds the native program of an agent, behind the launcher that a package manager puts on PATH."""

import shutil
from pathlib import Path

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.attempt.workers.model import WorkRequest

_ELF = b"\x7fELF"


def native(request: WorkRequest, name: str, pattern: str) -> Path:
    """Return the native program: what `[worker] argv` or PATH names, or what `pattern` finds around its launcher.

    The launcher is left out because signals and limits then meet the program itself. `pattern` is a glob below any
    folder above the launcher.

    Raises:
        ConfigError: there is no such program; the message names the mend.
    """
    given = request.settings.argv[0] if request.settings.argv else name
    start = _found(request, given, name).resolve()
    if _is_native(start):
        return start
    for folder in start.parents:
        for candidate in sorted(folder.glob(pattern)):
            if _is_native(candidate):
                return candidate.resolve()
    raise ConfigError(
        f"{start} is a launcher and its program ({pattern}) is not beside it: install {name} again, "
        f'or name the native program in longwatch.toml: [worker] argv = ["/path/to/{name}"]'
    )


def _found(request: WorkRequest, given: str, name: str) -> Path:
    if "/" in given:
        path = request.base / Path(given).expanduser()
        if path.is_file():
            return path
    elif found := shutil.which(given, path=request.search_path):
        return Path(found)
    raise ConfigError(f"{given} is not found: install {name}, or correct [worker] argv in longwatch.toml")


def _is_native(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF
