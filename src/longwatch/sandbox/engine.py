"""What docker or podman says of itself and of an image. Nothing is ever pulled: what is not here is said, with the mend."""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.kernel.identity import find_by_cookie
from longwatch.sandbox.choice import CLIENT_VARIABLES

LABEL = "longwatch"
"""On every container of ours. Its name is `longwatch-` and the cookie of its program."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ASK_S = 60.0


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is on this machine."""

    id: str
    """The digest of its configuration: it names all of its content."""
    path: str
    """Where its programs are looked for."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that answers."""

    program: str
    version: str
    filter: str = ""
    """The file of its filter of system calls, where that is to be made stricter; podman only."""


class _Podman(msgspec.Struct, frozen=True):
    class Host(msgspec.Struct, frozen=True):
        class Security(msgspec.Struct, frozen=True, rename={"filter": "seccompProfilePath"}):
            filter: str = ""

        security: Security

    class Version(msgspec.Struct, frozen=True, rename={"version": "Version"}):
        version: str

    host: Host
    version: Version


class _Docker(msgspec.Struct, frozen=True, rename="pascal"):
    server_version: str = ""
    security_options: tuple[str, ...] = ()


class _Inspected(msgspec.Struct, frozen=True, rename="pascal"):
    class Settings(msgspec.Struct, frozen=True, rename="pascal"):
        env: tuple[str, ...] | None = None
        volumes: dict[str, msgspec.Raw] | None = None

    id: str
    config: Settings | None = None


def client() -> dict[str, str]:
    """Return the variables of the engine's client, as they are here."""
    return {name: os.environ[name] for name in CLIENT_VARIABLES if name in os.environ}


def program_of(name: str) -> str | None:
    """Return where the engine's client is, if it is installed."""
    return shutil.which(name)


def look(name: str) -> Engine:
    """Return the engine of this name.

    Raises:
        NotReadyError: it is not installed, or does not answer.
        ConfigError: it is on another machine, or maps users so that what a container writes belongs to somebody else.
    """
    program = program_of(name)
    if program is None:
        raise NotReadyError(f"{name} is not on PATH; install it, or choose another sandbox.kind")
    _refuse_remote(client())
    return _podman(program) if name == "podman" else _docker(program)


@functools.cache
def _podman(program: str) -> Engine:
    said = msgspec.json.decode(_ask(program, "info", "--format", "json"), type=_Podman)
    return Engine(program=program, version=said.version.version, filter=said.host.security.filter)


@functools.cache
def _docker(program: str) -> Engine:
    said = msgspec.json.decode(_ask(program, "info", "--format", "{{json .}}"), type=_Docker)
    if not said.server_version:
        raise NotReadyError("docker's service does not answer; start it")
    moved = [one for one in said.security_options if one in {"name=rootless", "name=userns"}]
    if moved:
        raise ConfigError(
            f"docker maps users here ({moved[0]}): what a container writes would belong to somebody else. "
            'Use sandbox.kind = "podman" or "bubblewrap"'
        )
    return Engine(program=program, version=said.server_version)


def image(engine: Engine, name: str) -> Image:
    """Return the image of this name.

    Raises:
        NotReadyError: it is not on this machine.
        ConfigError: it declares volumes.
    """
    return _image(engine.program, name)


@functools.cache
def _image(program: str, name: str) -> Image:
    try:
        told = _ask(program, "image", "inspect", name)
    except NotReadyError as error:
        raise NotReadyError(
            f"sandbox.image = {name!r} is not on this machine: {Path(program).name} pull {name}"
        ) from error
    (found,) = msgspec.json.decode(told, type=tuple[_Inspected, ...])
    settings = found.config or _Inspected.Settings()
    if settings.volumes:
        raise ConfigError(
            f"sandbox.image = {name!r} declares volumes ({', '.join(settings.volumes)}), which would be writable without "
            "a bound; use an image without VOLUME"
        )
    variables = dict(entry.partition("=")[::2] for entry in settings.env or ())
    return Image(id=f"sha256:{found.id.removeprefix('sha256:')}", path=variables.get("PATH", _DEFAULT_PATH))


def tidy(engine: Engine) -> None:
    """Take away our containers whose program is gone. When a whole tree is ended, nobody is left who could do it."""
    for name in leftovers(engine):
        if not find_by_cookie(name.removeprefix(f"{LABEL}-")):
            remove(engine, name)


def leftovers(engine: Engine) -> tuple[str, ...]:
    """Return the names of our containers, running or not."""
    said = _ask(engine.program, "ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}")
    return tuple(said.split())


def remove(engine: Engine, name: str) -> None:
    """End a container and take it away; one that is gone already is fine.

    Raises:
        NotReadyError: it is still there.
    """
    try:
        _ask(engine.program, "rm", "--force", "--volumes", name)
    except NotReadyError:
        if name in leftovers(engine):
            raise


def _ask(program: str, *words: str) -> str:
    try:
        done = subprocess.run(
            (program, *words),
            env=client(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_ASK_S,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise NotReadyError(
            f"{Path(program).name} {words[0]} did not answer in {_ASK_S:g} s; is its service well?"
        ) from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise NotReadyError(
            f"{Path(program).name} does not answer ({last}); start its service, and let this user use it"
        )
    return done.stdout


def _refuse_remote(variables: Mapping[str, str]) -> None:
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        where = variables.get(name, "")
        if where and not where.startswith("unix://"):
            raise ConfigError(
                f"{name} = {where!r}: the engine must run on this machine, because folders and processes are shared; unset it"
            )
