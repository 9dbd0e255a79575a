"""What all commands share: finding the watch, printing, and the way out."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.watch import Watch

WatchDir = Annotated[
    Path,
    typer.Option("--watch-dir", help="The watch's folder; by default this one, or the nearest above it."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]

HERE = Path()


def watch_at(folder: Path) -> Watch:
    """Return the watch that a command is about."""
    from longwatch.observe import kinds  # noqa: PLC0415 - help needs none of it

    return kinds.find(folder)


@contextmanager
def exits() -> Iterator[None]:
    """Turn one of our errors into its message and its exit code."""
    try:
        yield
    except LongwatchError as error:
        sys.stderr.write(f"longwatch: {error}\n")
        raise typer.Exit(int(error.exit_code)) from error


def out(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def show(value: object, *, as_json: bool, text: Callable[[], str]) -> None:
    """Print a value as JSON or as text."""
    if as_json:
        out(msgspec.json.format(msgspec.json.encode(value, enc_hook=_path), indent=2).decode())
    else:
        out(text())


def _path(value: object) -> str:
    """Write the one type that JSON has no form for."""
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))
