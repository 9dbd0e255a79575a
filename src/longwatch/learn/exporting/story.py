"""From the store to a folder of its own: merged, written, loaded again, examined, and only then given its name."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from longwatch import __version__
from longwatch.kernel import digest, files
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, NotReadyError, RefusedError
from longwatch.kernel.program import Work
from longwatch.learn import adapters
from longwatch.learn.adapters import Lineage, Stored
from longwatch.learn.exporting import gguf, safetensors
from longwatch.learn.exporting.merging import Merge
from longwatch.learn.exporting.proving import Evaluation, prove, scratch_of
from longwatch.learn.exporting.safetensors import Number
from longwatch.learn.place import Place
from longwatch.learn.steps import LearnStep
from longwatch.learn.student.binding import base_digest
from longwatch.learn.student.cache import cache_folder, publish
from longwatch.learn.student.model import folder_of
from longwatch.learn.tasks import Task

PROVENANCE = "longwatch-export.json"
_ROOM = 1.02
_OTHER_BYTES = 64 * 1024**2
"""Tokenizer, exam and container, at most."""


class Format(StrEnum):
    """What an export is written as."""

    SAFETENSORS = "safetensors"
    GGUF = "gguf"


NUMBERS = {
    Format.SAFETENSORS: (Number.BASE, Number.F32, Number.F16, Number.BF16),
    Format.GGUF: (Number.F16, Number.F32, Number.Q8_0),
}
"""The number formats of each, its default first."""
_BYTES = {Number.F32: 4.0, Number.F16: 2.0, Number.BF16: 2.0, Number.Q8_0: 34 / 32}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be exported, and where to."""

    champion: Digest
    target: Path
    format: Format
    number: Number
    tasks: tuple[Task, ...]
    """The sealed ones."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside exported weights: where they came from, and what shows that they are still the champion."""

    longwatch: str
    at: str
    format: Format
    number: Number
    base: str
    """Digest of the base model."""
    model: str
    """What the settings call it."""
    adapter: Digest
    lineage: Lineage
    """With the digest of the receipt of the decision that accepted the adapter."""
    evaluation: Evaluation
    files: dict[str, str]
    """SHA-256 of all other files."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """An export that is done."""

    path: Path
    size_bytes: int
    provenance: Provenance


def number_of(chosen: Format, named: str) -> Number:
    """Return the number format that is meant; empty: the format's own default.

    Raises:
        RefusedError: the format does not have it.
    """
    possible = NUMBERS[chosen]
    if not named:
        return possible[0]
    found = next((number for number in possible if number == named), None)
    if found is None:
        raise RefusedError(f"{chosen} has no type {named!r}: choose {', '.join(possible)}")
    return found


def export(work: Work[LearnStep], place: Place, wanted: Wanted) -> Exported:
    """Export the champion. The watch is only read; what is at the target appears whole and proved, or not at all.

    Raises:
        RefusedError: the target exists, the model cannot be written in that format, or it is not the champion any more.
        IntegrityError: adapter or base are not what they were.
        NotReadyError: there is too little disk, or another export to the same target runs.
    """
    stored = adapters.get(place.adapters, wanted.champion)
    base = folder_of(place.settings.student.model, cache_folder())
    _same_base(place, stored)
    _refuse_existing(wanted.target)
    if wanted.format is Format.GGUF:
        gguf.check(base)
    merge = Merge(base, stored.folder)
    _refuse_small(place, wanted, merge)
    with _staging(wanted.target) as staging:
        folder = files.make_folder(staging / "model")
        with work.span("merge", "weights"):
            _write(work, wanted, merge, base, folder)
        scratch = scratch_of(place, files.make_folder(staging / "exam"))
        evaluation = prove(work, scratch, wanted.champion, stored.folder, folder, wanted.tasks)
        return _published(place, wanted, stored, evaluation, folder)


def _same_base(place: Place, stored: Stored) -> None:
    found = base_digest(place.settings.student)
    if found != stored.lineage.base:
        raise IntegrityError(
            f"[student] model {place.settings.student.model} has digest {found[:12]}, and the champion was trained on "
            f"{stored.lineage.base[:12]}: restore that base model"
        )


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise RefusedError(f"{target} exists and was left as it is: name a folder that does not exist")
    if not target.parent.is_dir():
        raise RefusedError(f"{target.parent} is no folder: make it first")


def _refuse_small(place: Place, wanted: Wanted, merge: Merge) -> None:
    sizes = tuple(merge.sizes())
    needed = sum(
        stored if wanted.number is Number.BASE else count * _BYTES[wanted.number] for count, stored in sizes
    )
    needed_bytes = int(needed * _ROOM) + _OTHER_BYTES
    free_bytes = files.free_bytes(wanted.target.parent) - place.settings.host.free_disk_bytes
    if needed_bytes > free_bytes:
        raise NotReadyError(
            f"the export needs {needed_bytes / 1e6:.0f} MB in {wanted.target.parent}, and {max(0, free_bytes) / 1e6:.0f} MB may "
            "be used there: free some, or name another place"
        )


def _write(work: Work[LearnStep], wanted: Wanted, merge: Merge, base: Path, folder: Path) -> None:
    def told(done: int, total: int) -> None:
        work.progress("merge", "weights", done=done, total=total)

    writer = gguf.write if wanted.format is Format.GGUF else safetensors.write
    writer(merge, base, folder, wanted.number, told)


@contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """Lend an empty folder beside the target, and remove it at the end; what a killed export left there goes first."""
    folder = target.with_name(f".{target.name}.exporting")
    files.make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _lock(descriptor, target)
        try:
            for left in folder.iterdir():
                files.remove_recorded(left, folder)
            yield folder
        finally:
            files.remove_recorded(folder, target.parent)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, target: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise NotReadyError(f"another export to {target} is under way: wait for it") from error


def _published(
    place: Place, wanted: Wanted, stored: Stored, evaluation: Evaluation, folder: Path
) -> Exported:
    provenance = Provenance(
        longwatch=__version__,
        at=stamp(now().wall_s),
        format=wanted.format,
        number=wanted.number,
        base=stored.lineage.base,
        model=place.settings.student.model,
        adapter=stored.adapter,
        lineage=stored.lineage,
        evaluation=evaluation,
        files={path.name: digest.of_file(path) for path in sorted(folder.iterdir())},
    )
    files.replace_json(folder / PROVENANCE, provenance, 0o644)
    _sync(sorted(folder.iterdir()))
    folder.chmod(0o755)
    _refuse_existing(wanted.target)
    publish(folder, wanted.target)
    size_bytes = sum(path.stat().st_size for path in wanted.target.iterdir())
    return Exported(path=wanted.target, size_bytes=size_bytes, provenance=provenance)


def _sync(paths: Sequence[Path]) -> None:
    """Make the files durable before they get their name."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, 0o644)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
