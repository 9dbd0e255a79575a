"""`longwatch init migrate`: a git repository becomes a watch."""

from pathlib import Path
from typing import Annotated

import typer

from longwatch.cli.common import HERE, AsJson, exits, show


def init(
    worker: Annotated[
        str,
        typer.Option(
            "--worker", help="Who works: codex, claude, acp, command or replay. Left out: what is found here."
        ),
    ] = "",
    argv: Annotated[
        list[str] | None,
        typer.Option("--argv", help="A word of the worker's command line; once for each word."),
    ] = None,
    profile: Annotated[
        str, typer.Option("--profile", help="Which policy holds: plain, or blender-web.")
    ] = "plain",
    watch_dir: Annotated[
        Path, typer.Option("--watch-dir", help="The top folder of the git repository; by default this one.")
    ] = HERE,
    *,
    as_json: AsJson = False,
) -> None:
    """Make this git repository a watch: longwatch.toml, a prompt, an example card, and the state beside them.

    Nothing that exists is overwritten, and nothing is committed. No card is live afterwards.
    """
    from longwatch.cli import beginning  # noqa: PLC0415 - help needs none of it

    with exits():
        made = beginning.migrate(watch_dir.resolve(), adapter=worker, argv=tuple(argv or ()), profile=profile)
        show(made, as_json=as_json, text=lambda: beginning.text(made))
