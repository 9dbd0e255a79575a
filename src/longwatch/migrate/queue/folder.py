"""Reads the files that a queue names, below a root: bounded, and never over a link that leads outside."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.config import Problem
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import PathError
from longwatch.migrate import documents
from longwatch.migrate.declared import Bound

DOCUMENT_BYTES = 16 * 1024**2
T = TypeVar("T", bound=msgspec.Struct)


class Folder:
    """A folder whose files somebody else wrote: a repository's working tree, a clean checkout, the source system."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str, max_bytes: int = DOCUMENT_BYTES) -> bytes:
        """Return a file's content.

        Raises:
            FileNotFoundError: it is not there.
            PathError: it is no regular file inside the folder, or too large.
        """
        return files.read_bounded(files.contained(self.root, path), max_bytes)

    def sha256(self, path: str) -> Digest | None:
        """Return a file's SHA-256; `None` if there is no regular file inside the folder."""
        try:
            place = files.contained(self.root, path)
        except PathError:
            return None
        return digest.of_file(place) if place.is_file() and not place.is_symlink() else None


def document(
    folder: Folder, path: str, wanted: type[T], rules: Callable[[T], Iterable[Problem]]
) -> tuple[T | None, tuple[Problem, ...]]:
    """Return a document with everything that is wrong with it; `None` if it cannot be read as one."""
    raw, found = content(folder, path)
    if raw is None:
        return None, found
    value = documents.read(path, raw, wanted)
    if isinstance(value, tuple):
        return None, value
    return value, tuple(rules(value))


def content(folder: Folder, path: str) -> tuple[bytes | None, tuple[Problem, ...]]:
    """Return a file's content, or why it cannot be read."""
    try:
        return folder.read(path), ()
    except FileNotFoundError:
        return None, (Problem(path, f"is missing in {folder.root}: restore it, or name another file"),)
    except PathError as error:
        return None, (Problem(path, f"cannot be read: {error}"),)


def unbound(where: str, bound: Iterable[Bound], folder: Folder) -> Iterator[Problem]:
    """Yield a problem for each file that is not there, or is not what its digest says."""
    for one in bound:
        found = folder.sha256(one.path)
        if found is None:
            yield Problem(f"{where}: {one.path}", f"is no file in {folder.root}")
        elif found != one.sha256:
            yield Problem(
                f"{where}: {one.path}", f"is {found[:12]} and not {one.sha256[:12]}: its digest differs"
            )
