"""Checkpoints that survive any death: whole or not there, the newest good one is found, a damaged one is set aside (L12).

A checkpoint is a sealed folder `step-000040-00`: tensors in safetensors, the rest in JSON, nothing that is executed when it
is read. The second number counts setbacks, so that what was learned from one is not forgotten by a crash.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from
from safetensors.torch import save as bytes_of

from longwatch.kernel import files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn import sealed
from longwatch.learn.training.results import ForeignTrainingError, Setback

KEPT = 2
ADAPTER = "adapter_model.safetensors"
OPTIMISER = "optimiser.safetensors"
RANDOM = "random.safetensors"
PLACE = "place.json"
_NAME = re.compile(r"step-(\d{6})-(\d{2})")
_QUARANTINE = "quarantined-"


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far training is, without its tensors."""

    run: Digest
    """What is trained: base, start, rows, recipe and environment."""
    step: int = 0
    """Steps done or skipped; the schedule and the order follow from it."""
    micro_tokens: int
    first_probe: float
    """The probe's loss before the first step."""
    probe: float = 0.0
    """The probe's loss with these weights."""
    losses: tuple[float, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    last_s: float = 0.0
    """How long the last step took."""
    setbacks: tuple[Setback, ...] = ()

    @property
    def name(self) -> str:
        """The name of its checkpoint."""
        return step_name(self.step, len(self.setbacks))


class Tensors(msgspec.Struct, frozen=True, kw_only=True):
    """Everything else that training needs to go on as if nothing had happened."""

    adapter: Mapping[str, torch.Tensor]
    optimiser: Mapping[str, torch.Tensor]
    random: Mapping[str, torch.Tensor]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The newest good checkpoint, and what was wrong with newer ones."""

    place: Place | None
    tensors: Tensors | None
    lost_steps: int
    quarantined: tuple[str, ...]


def save(folder: Path, place: Place, tensors: Tensors) -> None:
    """Write a checkpoint, whole and durable, and remove all but the newest two. A repeat is harmless.

    Raises:
        NotReadyError: the disk is full; the older checkpoints stay.
        LongwatchError: it cannot be written.
    """
    if (folder / place.name).exists():
        return
    contents = {
        ADAPTER: bytes_of(dict(tensors.adapter)),
        OPTIMISER: bytes_of(dict(tensors.optimiser)),
        RANDOM: bytes_of(dict(tensors.random)),
        PLACE: msgspec.json.encode(place),
    }
    sealed.publish(folder / place.name, contents)
    for old in _newest_first(folder)[KEPT:]:
        files.remove_recorded(folder / old, folder)


def newest(folder: Path, run: Digest) -> Found:
    """Find the newest checkpoint that is whole; damaged ones are renamed out of the way, and half-written ones removed.

    Raises:
        ForeignTrainingError: a whole checkpoint belongs to another training.
    """
    sealed.sweep(folder)
    names = _newest_first(folder)
    faults: list[str] = []
    for name in names:
        try:
            place, tensors = _load(folder / name)
        except IntegrityError as error:
            faults.append(str(error))
            _quarantine(folder, name)
            continue
        _refuse_foreign(folder / name, place, run)
        lost = step_of(names[0]) - place.step
        return Found(place=place, tensors=tensors, lost_steps=lost, quarantined=tuple(faults))
    lost = step_of(names[0]) if names else 0
    return Found(place=None, tensors=None, lost_steps=lost, quarantined=tuple(faults))


def step_name(step: int, setbacks: int = 0) -> str:
    """The name of a checkpoint; names sort as their checkpoints follow each other."""
    return f"step-{step:06d}-{setbacks:02d}"


def step_of(name: str) -> int:
    """The number of steps in a checkpoint's name."""
    return int(name.split("-")[1])


def _newest_first(folder: Path) -> list[str]:
    return sorted((path.name for path in folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _load(path: Path) -> tuple[Place, Tensors]:
    contents = sealed.read(path)
    try:
        place = msgspec.json.decode(contents[PLACE], type=Place)
        tensors = Tensors(
            adapter=tensors_from(contents[ADAPTER]),
            optimiser=tensors_from(contents[OPTIMISER]),
            random=tensors_from(contents[RANDOM]),
        )
    except (KeyError, msgspec.MsgspecError, SafetensorError) as error:
        raise IntegrityError(f"{path} is sealed, but no checkpoint of this program: {error}") from error
    return place, tensors


def _quarantine(folder: Path, name: str) -> None:
    taken = sum(1 for _ in folder.glob(f"{_QUARANTINE}*"))
    sealed.rename(folder / name, folder / f"{_QUARANTINE}{taken:03d}-{name}")


def _refuse_foreign(path: Path, place: Place, run: Digest) -> None:
    if place.run != run:
        raise ForeignTrainingError(
            f"{path} belongs to another training: the base, rows, recipe, start adapter or environment (the number of"
            f" threads, too) changed; bring it back, or remove {path.parent} and train anew"
        )
