"""Stages of a long program: each leaves a file when it is done, so that a program that died goes on after it."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError

MAX_BYTES = 1024**3

T = TypeVar("T")


class StoppedError(BaseException):
    """A pause or stop reached the program; finished stages stay finished.

    It is no `Exception`: it may be raised inside a library, which shall not take it for an error of its own.
    """


def _always(_: object) -> bool:
    return True


def staged(path: Path, kind: type[T], make: Callable[[], T], *, keep: Callable[[T], bool] = _always) -> T:
    """Return what an earlier run left at `path`, or make it and leave it there, atomically, if it is to `keep`.

    Raises:
        IntegrityError: what stands there is not what this program writes.
    """
    found = read(path, kind)
    if found is not None:
        return found
    made = make()
    if keep(made):
        files.make_folder(path.parent)
        files.replace(path, msgspec.json.encode(made))
    return made


def read(path: Path, kind: type[T]) -> T | None:
    """Return what an earlier run left at `path`, or `None`.

    Raises:
        IntegrityError: as `staged`.
    """
    try:
        return msgspec.json.decode(files.read_bounded(path, MAX_BYTES), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise IntegrityError(
            f"{path} is damaged ({error}): remove it, and that stage is done again"
        ) from error
