"""Generations on the disk, named by their digests: what each is, the settings, and the sources (L29).

One is a sealed folder (whole or not there) with the generation, `longwatch.toml` and a zip of the sources: half a megabyte.
"""

import io
import zipfile
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import Digest, digest, of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.learn import sealed
from longwatch.learn.generations.present import PACKAGE, config
from longwatch.learn.generations.values import Generation
from longwatch.learn.settings import FILE, LearnSettings, load

GENERATION, SOURCES = "generation.json", "sources.zip"
_MAX_BYTES = 64 * 1024**2
_BEGAN = (1980, 1, 1, 0, 0, 0)
"""What a zip says of every file, so that equal sources give equal bytes."""


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """One generation of the archive, verified just now."""

    generation: Generation
    folder: Path
    sources: bytes

    def settings(self) -> LearnSettings:
        """Return the settings as they were bound.

        Raises:
            IntegrityError: they are not the ones of this generation.
            ConfigError: this program cannot read them any more.
        """
        settings = load(self.folder)
        if config(settings) != self.generation.config:
            raise _damaged(self.folder / FILE, "its settings are not those of the generation")
        return settings


def put(archive: Path, generation: Generation, settings: bytes) -> Digest:
    """Keep a generation with the sources of this program and its settings. A repeat is harmless.

    Raises:
        IntegrityError: the package changed since this program began, or what lies there is damaged.
        NotReadyError: the disk is full; nothing is left behind.
    """
    files.make_folder(archive)
    sealed.sweep(archive)
    name = generation.digest
    if not (archive / name).exists():
        contents = {
            GENERATION: msgspec.json.encode(generation),
            FILE: settings,
            SOURCES: _packed(generation),
        }
        sealed.publish(archive / name, contents)
    return get(archive, name).generation.digest


def get(archive: Path, name: str) -> Archived:
    """Find a generation by its digest, and verify every byte.

    Raises:
        IntegrityError: it is not there, or no longer what it was.
    """
    folder = archive / digest(name)
    if not folder.is_dir():
        raise IntegrityError(f"generation {name} is not in {archive}: restore it from a copy")
    contents = sealed.read(folder, _MAX_BYTES)
    try:
        generation = msgspec.json.decode(contents[GENERATION], type=Generation)
        archived = Archived(generation=generation, folder=folder, sources=contents[SOURCES])
    except (KeyError, msgspec.MsgspecError) as error:
        raise _damaged(folder, str(error)) from error
    if generation.digest != name:
        raise _damaged(folder, f"it holds generation {generation.digest}")
    return archived


def unpack(archived: Archived, target: Path) -> Path:
    """Put the archived package below `target`, each file verified, and return the folder to import it from.

    Raises:
        IntegrityError: the sources are not those of the generation.
    """
    files.remove_recorded(target, target.parent)
    for path, data in _unpacked(archived).items():
        place = target / PACKAGE.name / path
        files.make_folder(place.parent)
        files.show(place, data)
    return target


def _packed(generation: Generation) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, bound in sorted(generation.sources.items()):
            data = files.read_bounded(PACKAGE / path, _MAX_BYTES)
            if of_bytes(data) != bound:
                raise IntegrityError(f"{PACKAGE / path} changed while this program ran: begin again")
            packed.writestr(zipfile.ZipInfo(path, _BEGAN), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _unpacked(archived: Archived) -> dict[str, bytes]:
    """Return the files that the generation names, and no other: so no name in the zip leads anywhere else."""
    bound = archived.generation.sources
    try:
        with zipfile.ZipFile(io.BytesIO(archived.sources)) as packed:
            found = {path: packed.read(path) for path in bound}
    except (zipfile.BadZipFile, KeyError) as error:
        raise _damaged(archived.folder / SOURCES, str(error)) from error
    wrong = [path for path, data in found.items() if of_bytes(data) != bound[path]]
    if wrong:
        raise _damaged(archived.folder / SOURCES, f"{', '.join(wrong)} is not what was bound")
    return found


def _damaged(path: Path, why: str) -> IntegrityError:
    return IntegrityError(f"{path} is damaged ({why}): restore it from a copy")
