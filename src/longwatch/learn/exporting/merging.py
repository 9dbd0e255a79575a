"""The base model's weights with an adapter added: one tensor at a time, so that no model need fit into memory twice.

A LoRA adapter stands for W + s B A, with s = alpha / r (Hu et al., 2021, arXiv:2106.09685). The sum is computed in float32
and rounded once.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as tensors_from

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError
from longwatch.learn.adapters import CONFIG, MAX_BYTES, WEIGHTS

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
JSON_BYTES = 256 * 1024**2
_PREFIX = "base_model.model."
_UNKNOWN = (
    "use_dora",
    "fan_in_fan_out",
    "modules_to_save",
    "rank_pattern",
    "alpha_pattern",
    "layer_replication",
)
"""What makes an adapter more than the sum above, where it is set."""


class Merge:
    """All tensors of a base model's folder, those that an adapter changes with the change."""

    def __init__(self, base: Path, adapter: Path) -> None:
        """Read the names of all tensors, and the adapter.

        Raises:
            ConfigError: the base has no weights in safetensors, or the adapter is of a kind that is not merged here.
        """
        self._adapter = adapter
        self.shards = {name: _names(base / name) for name in _shards(base)}
        self._home = {tensor: base / name for name, tensors in self.shards.items() for tensor in tensors}
        self._scale = _scale(adapter)
        self._factors = _factors(adapter, frozenset(self._home))

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors, in the order of their files."""
        return tuple(self._home)

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield the number of elements and of bytes of each tensor, without reading any."""
        for name, path in self._home.items():
            with safe_open(path, framework="pt") as opened:
                part = opened.get_slice(name)
                yield math.prod(part.get_shape()), _BYTES.get(part.get_dtype(), 8)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, without reading it."""
        with safe_open(self._home[name], framework="pt") as opened:
            return tuple(opened.get_slice(name).get_shape())

    def tensor(self, name: str, dtype: torch.dtype | None) -> torch.Tensor:
        """Return a tensor, merged and rounded to `dtype`, by default to what the base stores; counts stay counts.

        Raises:
            ConfigError: a value does not fit the format.
        """
        stored = self._read(name)
        if not stored.is_floating_point():
            return stored
        wanted = dtype or stored.dtype
        merged = stored
        if name in self._factors:
            down, up = self._factors[name]
            merged = stored.float() + self._scale * (up.float() @ down.float())
        rounded = merged.to(wanted)
        if not bool(rounded.isfinite().all()):
            raise ConfigError(f"tensor {name} has values that {wanted} cannot hold: export with --type f32")
        return rounded.contiguous()

    def _read(self, name: str) -> torch.Tensor:
        with safe_open(self._home[name], framework="pt") as opened:
            tensor: torch.Tensor = opened.get_tensor(name)
            return tensor


_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def object_at(path: Path) -> dict[str, Any]:
    """Return a JSON object of the model's folder; an empty one if there is none.

    Raises:
        ConfigError: it is damaged.
    """
    try:
        return msgspec.json.decode(files.read_bounded(path.resolve(), JSON_BYTES), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path} is damaged: {error}") from error


def _shards(base: Path) -> tuple[str, ...]:
    """The files that transformers would load."""
    if (base / WHOLE).is_file():
        return (WHOLE,)
    named = object_at(base / INDEX).get("weight_map", {})
    found = tuple(dict.fromkeys(named.values())) if isinstance(named, dict) else ()
    if not found or not all(isinstance(name, str) and Path(name).name == name for name in found):
        raise ConfigError(f"{base} has neither {WHOLE} nor a usable {INDEX}: only safetensors are merged")
    return found


def _names(path: Path) -> tuple[str, ...]:
    try:
        with safe_open(path, framework="pt") as opened:
            return tuple(opened.keys())
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{path} cannot be read as safetensors: {error}") from error


def _scale(adapter: Path) -> float:
    config = object_at(adapter / CONFIG)
    odd = [name for name in _UNKNOWN if config.get(name)]
    if config.get("bias", "none") != "none":
        odd.append("bias")
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if odd or not isinstance(rank, int) or not isinstance(alpha, int | float) or rank < 1:
        raise ConfigError(
            f"the adapter {adapter} cannot be merged here: it sets {', '.join(odd) or 'no rank and alpha'}"
        )
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else rank)


def _factors(adapter: Path, known: frozenset[str]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return A and B by the name of the tensor that they change."""
    weights = tensors_from(files.read_bounded(adapter / WEIGHTS, MAX_BYTES))
    found = {}
    for name in [name for name in weights if name.endswith(".lora_A.weight")]:
        stem = name.removesuffix(".lora_A.weight")
        down, up = weights.pop(name), weights.pop(f"{stem}.lora_B.weight", None)
        target = f"{stem.removeprefix(_PREFIX)}.weight"
        if up is None or target not in known:
            raise ConfigError(
                f"the adapter {adapter} changes {stem}, which its base does not have under that name"
            )
        found[target] = (down, up)
    if weights:
        raise ConfigError(f"the adapter {adapter} holds {min(weights)}, which is no factor of a LoRA layer")
    return found
