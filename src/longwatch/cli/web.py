"""`web` and `report`: one watch or many, in a browser and as a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from longwatch.cli.common import AsJson, exits, out, show

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
            out(
                f"{many}: {served.address}\nThe key is in the address. Ctrl-C ends the page; the watches go on."
            )
        sys.stdout.flush()

    with exits():
        serving.serve(folders or [Path()], host=host, port=port, told=told)


def report(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Watches, or folders that hold watches; by default this one.")
    ] = None,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; by default report.html, or report.md.")
    ] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Write Markdown for a pull request instead of a page.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what happened as one file: the story in ten lines, plots, tables, and every decision with its receipt.

    Everything is verified while it is written. With --json the same goes to standard output, for programs.
    """
    from longwatch.kernel import files  # noqa: PLC0415 - help needs none of it
    from longwatch.observe.report import reading, writing  # noqa: PLC0415 - the same

    with exits():
        stories = reading.read(folders or [Path()])
        if as_json:
            show(stories, as_json=True, text=str)
            return
        target = to or Path("report.md" if as_markdown else "report.html")
        text = writing.markdown(stories) if as_markdown else writing.html(stories)
        files.replace(target.absolute(), text.encode("utf-8", "replace"), mode=0o644)
        many = "1 watch" if len(stories) == 1 else f"{len(stories)} watches"
        out(f"{target}: {many}, {len(text):,} characters.")
