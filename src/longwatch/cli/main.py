"""The command line of Longwatch. Each command is options, one call, print."""

import sys
from typing import Annotated

import typer

from longwatch import __version__
from longwatch.cli import control, inspect, learn, migrate, supervise, web

app = typer.Typer(
    name="longwatch",
    help=(
        "Supervises long unattended work and counts only what it verified itself.\n\n"
        "A watch is a folder with a longwatch.toml. Begin with `longwatch init migrate` in a git repository, look with "
        "`longwatch doctor`, and start with `longwatch run` (in the foreground) or `longwatch start` (in the background).\n\n"
        "Exit codes: 0 done, or paused or stopped on request; 1 an error; 2 blocked; 3 needs reconcile; "
        "4 budget exhausted; 75 not ready, try again later."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
init = typer.Typer(help="Make a new watch in this folder.", no_args_is_help=True)
app.add_typer(init, name="init")

init.command("migrate")(migrate.init)
init.command("learn")(learn.init)
app.command()(supervise.run)
app.command()(supervise.start)
app.command()(inspect.status)
app.command()(control.pause)
app.command()(control.resume)
app.command()(control.stop)
app.command()(inspect.reconcile)
app.command()(inspect.verify)
app.command()(inspect.events)
app.command()(inspect.timings)
app.command()(inspect.doctor)
app.command()(web.web)
app.command()(web.report)
app.command()(supervise.service)
app.command()(learn.fetch)
app.command("set-hours")(learn.set_hours)
app.command("continue")(learn.continue_)
app.command()(learn.prune)
app.command()(learn.export)
app.command()(learn.grade)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer's signature for callbacks
    if asked:
        sys.stdout.write(f"longwatch {__version__}\n")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: FBT002 - typer's way to say a flag
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Only here to carry --version."""


def entry() -> None:
    """Begin at the console script."""
    app()


if __name__ == "__main__":
    entry()
