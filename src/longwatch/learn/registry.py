"""A registry: a file of tasks, one JSON object a line, that is bound by its digest."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError, IntegrityError
from longwatch.learn.tasks import Task

MAX_BYTES = 512 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Task)


def write(path: Path, tasks: Sequence[Task]) -> Digest:
    """Put the tasks at `path`, whole and durable, and return the digest of the file.

    Raises:
        IntegrityError: two tasks have one id, or an id could not be a file's name.
    """
    check_ids(tasks)
    data = encode(tasks)
    files.replace(path, data)
    return digest.of_bytes(data)


def load(path: Path, expected: Digest) -> tuple[Task, ...]:
    """Read the tasks of a registry.

    Raises:
        IntegrityError: the file is not there, is not what was bound, or holds an id twice.
    """
    try:
        data = files.read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise IntegrityError(f"registry {path} is gone: restore it, or prepare its window again") from None
    found = digest.of_bytes(data)
    if found != expected:
        raise IntegrityError(
            f"registry {path} has digest {found}, bound was {expected}: restore it, or prepare its window again"
        )
    tasks = decode(data, str(path))
    check_ids(tasks)
    return tasks


def encode(tasks: Iterable[Task]) -> bytes:
    """The tasks as lines. Pure."""
    return _encoder.encode_lines(list(tasks))


def decode(data: bytes, name: str) -> tuple[Task, ...]:
    """The tasks of lines; empty lines are passed over. Pure.

    Raises:
        ConfigError: a line is no task; the message names the file, the line and what is wrong.
    """
    return tuple(
        _decoded(line, f"{name}, line {number}")
        for number, line in enumerate(data.splitlines(), 1)
        if line.strip()
    )


def check_ids(tasks: Iterable[Task]) -> None:
    """Return if every id is there once and could be a file's name.

    Raises:
        IntegrityError: one is not; the message names it.
    """
    seen: set[str] = set()
    for task in tasks:
        if not _ID.fullmatch(task.id):
            raise IntegrityError(
                f"task id {task.id[:80]!r} cannot be a file's name: use up to 200 letters, digits, '.', '_' and '-'"
            )
        if task.id in seen:
            raise IntegrityError(f"task id {task.id!r} is there twice: remove or rename one")
        seen.add(task.id)


def _decoded(line: bytes, place: str) -> Task:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place} is no task: {error}") from error
