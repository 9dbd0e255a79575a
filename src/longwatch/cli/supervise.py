"""`run`, `start` and `service`: who supervises, and where."""

from pathlib import Path
from typing import Annotated

import typer

from longwatch.cli.common import HERE, AsJson, WatchDir, exits, out, watch_at


def run(
    watch_dir: WatchDir = HERE,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="End after one piece of work (one attempt at one job).")
    ] = False,
    max_cycles: Annotated[
        int | None, typer.Option("--max-cycles", min=1, help="End after so many pieces of work.")
    ] = None,
    stay: Annotated[bool, typer.Option("--stay", help="Do not end when paused: wait for a resume.")] = False,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait", help="Do not wait, for the machine or after a failure: end with exit code 75."
        ),
    ] = False,
    refresh_baseline: Annotated[
        bool,
        typer.Option("--refresh-baseline", help="You looked: the branch as it is now is the new baseline."),
    ] = False,
    as_json: AsJson = False,
    lease: Annotated[int | None, typer.Option(hidden=True)] = None,
    ready: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Supervise in the foreground until the work is done, held, paused or stopped. Ctrl-C stops in good order."""
    from longwatch.cli.session import Session  # noqa: PLC0415 - help needs none of it
    from longwatch.kernel.lifecycle import ends  # noqa: PLC0415 - likewise

    with exits():
        session = Session(watch_at(watch_dir), as_json=as_json, inherited=lease, ready=ready)
        if refresh_baseline:
            session.refresh()
        code = session.run(max_cycles=1 if once else max_cycles, ends=ends(stay=stay, waits=not no_wait))
    raise typer.Exit(int(code))


def start(watch_dir: WatchDir = HERE, *, as_json: AsJson = False) -> None:
    """Supervise in the background. The watch is owned at every moment: the held lease is handed over."""
    from longwatch.cli.daemon import start as begin  # noqa: PLC0415 - help needs none of it

    with exits():
        begun = begin(watch_at(watch_dir))
    from longwatch.cli.common import show  # noqa: PLC0415 - beside its only use

    show(
        begun,
        as_json=as_json,
        text=lambda: (
            f"Process {begun.pid} supervises {begun.watch}. `longwatch status --watch` follows, `longwatch stop` ends it."
        ),
    )


def service(
    watch_dir: WatchDir = HERE,
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Write the unit to your systemd folder, do not only print it.")
    ] = False,
) -> None:
    """Print (or --write) a systemd user unit, so that the watch goes on by itself after a reboot."""
    from longwatch.observe.units import describe, install  # noqa: PLC0415 - help needs none of it

    with exits():
        watch = watch_at(watch_dir)
        out(install(watch) if write else describe(watch))


__all__ = ["Path", "run", "service", "start"]
