"""`pause`, `resume` and `stop`: durable requests, obeyed within a second by a running supervisor."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from longwatch.cli.common import HERE, AsJson, WatchDir, exits, show, watch_at
from longwatch.kernel.request import Request, Verb


def pause(
    watch_dir: WatchDir = HERE,
    *,
    after_step: Annotated[
        bool, typer.Option("--after-step", help="Let the running step finish first.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Pause the watch. A running attempt is ended, its partial work is kept as a patch, and it does not count.

    A paused watch never wakes by itself; `longwatch resume` goes on.
    """
    _ask(watch_dir, Request(verb=Verb.PAUSE, after_step=after_step), as_json=as_json)


def resume(
    watch_dir: WatchDir = HERE,
    *,
    accept: Annotated[
        bool, typer.Option("--accept", help="Your word that you looked at a blocked or unsettled watch.")
    ] = False,
    refresh_baseline: Annotated[
        bool,
        typer.Option(
            "--refresh-baseline", help="With --accept: the branch as it is now is the new baseline."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let the watch go on; waits and failure counts are forgotten.

    From `blocked` and `needs_reconcile` only --accept leads out: look with `longwatch reconcile` first.
    """
    _ask(watch_dir, Request(verb=Verb.RESUME, accept=accept, refresh=refresh_baseline), as_json=as_json)


def stop(watch_dir: WatchDir = HERE, *, as_json: AsJson = False) -> None:
    """Stop the watch: children are ended, the state is saved, the supervisor ends. `longwatch resume` allows it to run again."""
    _ask(watch_dir, Request(verb=Verb.STOP), as_json=as_json)


def _ask(folder: Path, request: Request, *, as_json: bool) -> None:
    from longwatch.observe import asking  # noqa: PLC0415 - help needs none of it

    with exits():
        asked = asking.ask(watch_at(folder), request)
        show(msgspec.to_builtins(asked), as_json=as_json, text=lambda: asked.text)
