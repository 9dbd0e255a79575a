"""Where answers run: in bubblewrap with this machine's programs, or in containers with those of an image."""

import functools
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from longwatch.kernel.errors import NotReadyError
from longwatch.sandbox import Plan, sandbox_of
from longwatch.sandbox.choice import ENGINES, Sandboxing

HERE = Sandboxing()
"""In bubblewrap, with what this machine has."""
START_S = 10.0
"""How much longer a container may take than bubblewrap, start and end together."""
FOLDER = Path("/tmp")  # noqa: S108 - the container's own
_PROCESSES = 512
_ASK_S = 60.0


def contained(where: Sandboxing) -> bool:
    """True if answers run in containers. Pure."""
    return where.kind in ENGINES


def container(
    where: Sandboxing,
    argv: tuple[str, ...],
    *,
    environment: Mapping[str, str],
    tmp_bytes: int,
    hidden: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the command line of a container that sees nothing of this machine.

    Raises:
        ConfigError, NotReadyError: there is no engine that answers, or no such image.
    """
    plan = Plan(
        workdir=FOLDER,
        environment=environment,
        tmp_bytes=tmp_bytes,
        processes=_PROCESSES,
        hidden=tuple(map(Path, hidden)),
    )
    return sandbox_of(where).wrap(argv, plan)


def words(where: Sandboxing, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that runs a program of ours with the programs that answers run with.

    Raises:
        ConfigError, NotReadyError: as `container`.
    """
    return container(where, argv, environment={}, tmp_bytes=2**20) if contained(where) else argv


def lacking(where: Sandboxing, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the paths that are not there."""
    if not contained(where):
        return tuple(path for path in paths if not Path(path).exists())
    return _lacking(where, paths)


@functools.cache
def _lacking(where: Sandboxing, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Once a process: an image does not change."""
    look = 'for path in "$@"; do [ -e "$path" ] || echo "$path"; done'
    argv = words(where, ("/bin/sh", "-c", look, "sh", *paths))
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_ASK_S, text=True
    )
    if done.returncode != 0:
        raise NotReadyError(f"{where.kind} cannot look into {where.image}: {done.stderr[-300:].strip()}")
    return tuple(done.stdout.splitlines())


def tidy(where: Sandboxing) -> None:
    """Take away what ended graders left."""
    sandbox_of(where).tidy()
