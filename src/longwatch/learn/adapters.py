"""The store of accepted adapters, addressed by content, with where each came from (L26).

An adapter is two files: weights in safetensors and PEFT's configuration. Its address is their digest, whatever its
lineage. Nothing that could run code when it is read is ever taken in.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from longwatch.kernel import files
from longwatch.kernel.digest import Digest, digest
from longwatch.kernel.errors import IntegrityError, PathError
from longwatch.learn import sealed

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
LINEAGE = "lineage.json"
MAX_BYTES = sealed.MAX_BYTES
_OURS = frozenset({WEIGHTS, CONFIG})
_BESIDE = frozenset({LINEAGE, sealed.MANIFEST, sealed.MARKER, "README.md"})
"""PEFT writes a README.md; it is left behind."""
_PREFIX = struct.Struct("<Q")
_HEADER_BYTES = 100_000_000


class Lineage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an adapter came from, and why it was taken in."""

    base: str
    """Digest of the base model."""
    data: str
    """Digest of the teaching data."""
    code: str
    """Digest of the sources that trained it."""
    environment: str
    """Versions and device that trained it."""
    parent: Digest | None
    """The adapter it started from or replaced; `None`: the base model."""
    decision: str
    """Digest of the receipt that accepted it."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter of the store, verified just now."""

    adapter: Digest
    folder: Path
    lineage: Lineage


def address(contents: Mapping[str, bytes]) -> Digest:
    """Pure: the digest of an adapter's two files."""
    return sealed.manifest_of({name: contents[name] for name in _OURS}).digest


def read(folder: Path) -> dict[str, bytes]:
    """Return the two files of an adapter that somebody else may have written, if they are what they should be.

    Raises:
        IntegrityError: a file is missing, another one is there (a pickle, say), or one is not in its format.
    """
    foreign = sorted({path.name for path in folder.iterdir()} - _OURS - _BESIDE)
    if foreign:
        raise IntegrityError(
            f"{folder} holds {', '.join(foreign)}: an adapter is {WEIGHTS} and {CONFIG} and nothing else; pickles"
            " run code when they are read, so save it as safetensors"
        )
    contents = {name: _bytes(folder / name) for name in sorted(_OURS)}
    _check_weights(folder / WEIGHTS, contents[WEIGHTS])
    _check_config(folder / CONFIG, contents[CONFIG])
    return contents


def digest_of(folder: Path) -> Digest:
    """Verify the format of an adapter and return its address.

    Raises:
        IntegrityError: as `read`.
    """
    return address(read(folder))


def put(store: Path, source: Path, expected: Digest, lineage: Lineage) -> Stored:
    """Copy an adapter into the store, verified before and after the copy. A repeat is harmless.

    Raises:
        IntegrityError: `source` is not `expected`, or is no adapter, or the store holds it with another lineage.
        NotReadyError: the disk is full; nothing is left behind.
    """
    contents = read(source)
    _same(source, address(contents), expected)
    files.make_folder(store)
    sealed.sweep(store)
    folder = store / expected
    if not folder.exists():
        sealed.publish(folder, {**contents, LINEAGE: _pretty(lineage)})
    stored = get(store, expected)
    if stored.lineage != lineage:
        raise IntegrityError(
            f"{folder} is there with another lineage and was not changed: {stored.lineage}; look at both decisions"
        )
    return stored


def get(store: Path, adapter: Digest) -> Stored:
    """Find an adapter by its address, and verify every byte.

    Raises:
        IntegrityError: it is not there, or no longer what it was.
    """
    folder = store / digest(adapter)
    if not folder.is_dir():
        raise IntegrityError(f"{store} holds no adapter {adapter}: restore it from a copy")
    contents = sealed.read(folder, MAX_BYTES)
    if set(contents) != _OURS | {LINEAGE}:
        raise IntegrityError(f"{folder} holds other files than an adapter and its lineage")
    _same(folder, address(contents), adapter)
    _check_weights(folder / WEIGHTS, contents[WEIGHTS])
    try:
        lineage = msgspec.json.decode(contents[LINEAGE], type=Lineage)
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"{folder / LINEAGE} is no lineage: {error}") from error
    return Stored(adapter=adapter, folder=folder, lineage=lineage)


def listed(store: Path) -> tuple[Digest, ...]:
    """The addresses of all adapters in the store, unverified, sorted."""
    if not store.is_dir():
        return ()
    return tuple(sorted(digest(path.name) for path in store.iterdir() if not path.name.startswith(".")))


def remove(store: Path, adapter: Digest) -> None:
    """Remove an adapter that nothing refers to any more; a missing one is no error."""
    files.remove_recorded(store / digest(adapter), store)


def _same(folder: Path, found: Digest, expected: Digest) -> None:
    if found != expected:
        raise IntegrityError(f"{folder} holds adapter {found}, not {expected}: it was damaged or exchanged")


def _pretty(lineage: Lineage) -> bytes:
    return msgspec.json.format(msgspec.json.encode(lineage), indent=2) + b"\n"


def _bytes(path: Path) -> bytes:
    try:
        return files.read_bounded(path, MAX_BYTES)
    except FileNotFoundError as error:
        raise IntegrityError(f"{path} is missing: an adapter is {WEIGHTS} and {CONFIG}") from error
    except PathError as error:
        raise IntegrityError(str(error)) from error


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def _check_weights(path: Path, data: bytes) -> None:
    """Check the format (safetensors: 8 bytes of length, a JSON header, then the tensors) without loading any tensor."""
    try:
        (length,) = _PREFIX.unpack_from(data)
        end = _PREFIX.size + min(length, _HEADER_BYTES)
        header: dict[str, Any] = msgspec.json.decode(data[_PREFIX.size : end], type=dict)
        header.pop("__metadata__", None)
        spans = sorted(msgspec.convert(value, _Tensor).data_offsets for value in header.values())
    except (struct.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(f"{path} is not in the safetensors format: {error}") from error
    edges = [0, *(end for _, end in spans)]
    if [start for start, _ in spans] != edges[:-1] or edges[-1] != len(data) - _PREFIX.size - length:
        raise IntegrityError(f"{path} is cut or has bytes that belong to no tensor")


def _check_config(path: Path, data: bytes) -> None:
    try:
        config: dict[str, Any] = msgspec.json.decode(data, type=dict)
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"{path} is no JSON object: {error}") from error
    if config.get("peft_type") != "LORA":
        raise IntegrityError(
            f"{path} says peft_type {config.get('peft_type')!r}; only LORA adapters are known"
        )
