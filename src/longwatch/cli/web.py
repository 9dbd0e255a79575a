"""`web`: the live page of one watch or many."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from longwatch.cli.common import AsJson, exits, out

if TYPE_CHECKING:
    from longwatch.observe.web.serving import Served

PORT = 8734


def web(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Watches, or folders that hold watches; by default this one.")
    ] = None,
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = PORT,
    host: Annotated[
        str,
        typer.Option("--host", help="Another address than this machine's own lets others knock at the door."),
    ] = "127.0.0.1",
    as_json: AsJson = False,
) -> None:
    """Serve a page that shows watches live and can pause, resume and stop them. Ctrl-C ends the page and nothing else.

    The address that it prints holds a key. Without it nobody gets anything.
    """
    from longwatch.observe.web import serving  # noqa: PLC0415 - help needs none of it

    def told(served: "Served") -> None:
        if as_json:
            out(msgspec.json.encode(served).decode())
        else:
            many = "1 watch" if served.watches == 1 else f"{served.watches} watches"
            out(f"{many}: {served.address}\nThe key is in the address. Ctrl-C ends the page; the watches go on.")

    with exits():
        serving.serve(folders or [Path()], host=host, port=port, told=told)
