"""`longwatch init learn`: a new learn watch in any folder."""

import os
from importlib import resources
from pathlib import Path

import msgspec

from longwatch.kernel.errors import RefusedError
from longwatch.kernel.files import create
from longwatch.learn.settings import FILE

_READABLE = 0o644


class Initialised(msgspec.Struct, frozen=True, kw_only=True):
    """What an init did, and what a person does next."""

    root: Path
    files: tuple[str, ...]
    hints: tuple[str, ...]


def initialise(folder: Path) -> Initialised:
    """Write a commented `longwatch.toml` that loads as it is. Nothing that exists is overwritten.

    Raises:
        RefusedError: the folder is a watch already.
    """
    if os.path.lexists(folder / FILE):
        raise RefusedError(f"{folder / FILE} exists and was left as it is: edit it, or choose another folder")
    text = resources.files("longwatch.prompts").joinpath("learn.toml").read_bytes()
    create(folder / FILE, text, _READABLE)
    return Initialised(
        root=folder,
        files=(FILE,),
        hints=(
            "Fetch the student once: longwatch fetch (92 MB, checked by digest).",
            "Then: longwatch doctor, and longwatch run. It goes on until you stop it; longwatch status tells how it does.",
        ),
    )
