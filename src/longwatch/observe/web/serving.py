"""The server of the page: one process of its own, on this machine only unless a person says otherwise."""

import errno
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import uvicorn

from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.observe import finding
from longwatch.observe.web.access import Guard, door
from longwatch.observe.web.routes import application

_CLOSE_S = 1


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Where the page is."""

    address: str
    """With the key: whoever has it may look, pause, resume and stop."""
    host: str
    port: int
    watches: int


def serve(folders: Sequence[Path], *, host: str, port: int, told: Callable[[Served], None]) -> None:
    """Serve until a signal ends it; `told` is called once with the address, when the door is open.

    Raises:
        ConfigError: a folder is not there, holds no watch, or the host is no address of this machine.
        NotReadyError: the port is taken.
    """
    found = finding.watches(folders)
    if not found:
        named = ", ".join(map(str, folders))
        raise ConfigError(f"there is no watch in {named} or below: `longwatch init` makes one")
    listening = _listen(host, port)
    bound = int(listening.getsockname()[1])
    token = secrets.token_urlsafe(32)
    guarded = Guard(application(folders), door(token, _named(host), bound))
    settings = uvicorn.Config(
        guarded,
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_worth_saying)
    address = f"http://{_named(host)}:{bound}/?token={token}"
    told(Served(address=address, host=host, port=bound, watches=len(found)))
    uvicorn.Server(settings).run(sockets=[listening])


def _worth_saying(record: logging.LogRecord) -> bool:
    """Return whether a person should read it: that an open page hangs up when the server ends is no error."""
    return not record.getMessage().startswith("Cancel ")


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Who reads the address may come at once: they wait in line until the server has begun.
        listening.listen()
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise NotReadyError(f"port {port} is taken: name another with --port, or 0 for any") from error
        raise ConfigError(f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
    return listening
