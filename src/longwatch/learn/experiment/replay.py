"""The replay: verified teaching data of every accepted adapter, of which each round teaches some again (L11).

A champion that only learned what is new would forget what made it the champion. The data stands in one file, named by
its digest; the watch's state knows which one, so it is bound before training begins (L7).
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.experiment.examples import Example

NONE = ""
"""The digest of a replay that does not exist yet."""
_MAX_BYTES = 1024**3


def load(folder: Path, bound: str) -> tuple[Example, ...]:
    """Return the examples of the file that is bound.

    Raises:
        IntegrityError: it is gone, or no longer what was bound.
    """
    if bound == NONE:
        return ()
    path = _path(folder, bound)
    try:
        data = files.read_bounded(path, _MAX_BYTES)
    except FileNotFoundError:
        raise IntegrityError(f"the teaching data {path} is gone: restore it from a copy") from None
    found = digest.of_bytes(data)
    if found != bound:
        raise IntegrityError(f"the teaching data {path} has digest {found}: restore it from a copy")
    return tuple(msgspec.json.decode(line, type=Example) for line in data.splitlines())


def write(folder: Path, examples: Sequence[Example]) -> Digest:
    """Leave the examples in a file of their own, and return its digest. A repeat is harmless.

    Raises:
        IntegrityError: something else stands in its place.
    """
    data = msgspec.json.Encoder().encode_lines(examples)
    name = digest.of_bytes(data)
    files.create(_path(files.make_folder(folder), name), data)
    return name


def joined(before: Iterable[Example], taught: Iterable[Example]) -> tuple[Example, ...]:
    """Return all examples, each answer to a task once. Pure."""
    return tuple({(one.task, one.answer): one for one in (*before, *taught)}.values())


def drawn(examples: Sequence[Example], most: int, seed: str) -> tuple[Example, ...]:
    """Draw at most so many examples, the same for the same seed on every machine. Pure."""

    def lot(example: Example) -> bytes:
        return hashlib.sha256(f"{seed}\0{example.task}\0{example.answer}".encode()).digest()

    return tuple(sorted(examples, key=lot)[:most])


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"
