"""A folder that transformers loads: the merged weights, and the base's configuration and tokenizer as they are."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec
import torch
from safetensors.torch import save_file

from longwatch.kernel import files
from longwatch.learn.exporting.merging import INDEX, Merge, object_at
from longwatch.learn.student.convert import MANIFEST

Progress = Callable[[int, int], None]
_COPIED = frozenset({".json", ".txt", ".model", ".jinja", ".md", ""})
_NAMES_WITHOUT_SUFFIX = ("LICENSE", "NOTICE", "COPYING")
_OURS = frozenset({INDEX, MANIFEST, "config.json"})


class Number(StrEnum):
    """How weights are stored."""

    BASE = "base"
    """As the base model's own."""
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    Q8_0 = "q8_0"
    """Eight bits in blocks of 32 with a scale; GGUF only."""


DTYPES = {
    Number.BASE: None,
    Number.F32: torch.float32,
    Number.F16: torch.float16,
    Number.BF16: torch.bfloat16,
}


def write(merge: Merge, base: Path, folder: Path, number: Number, progress: Progress) -> None:
    """Fill an empty folder. Code that the base's folder may hold is left behind.

    Raises:
        ConfigError: a value does not fit the number format.
    """
    dtype, done, total = DTYPES[number], 0, len(merge.names)
    homes: dict[str, str] = {}
    size_bytes = 0
    for shard, names in merge.shards.items():
        tensors = {}
        for name in names:
            tensors[name] = merge.tensor(name, dtype)
            done += 1
            progress(done, total)
        save_file(tensors, folder / shard, metadata={"format": "pt"})
        homes |= dict.fromkeys(names, shard)
        size_bytes += sum(tensor.nbytes for tensor in tensors.values())
    if len(merge.shards) > 1:
        index = {"metadata": {"total_size": size_bytes}, "weight_map": homes}
        files.replace(folder / INDEX, msgspec.json.encode(index), 0o644)
    _config(base, folder, dtype)
    for path in sorted(base.iterdir()):
        if path.is_file() and _is_copied(path):
            files.replace(folder / path.name, path.read_bytes(), 0o644)


def _config(base: Path, folder: Path, dtype: torch.dtype | None) -> None:
    config = object_at(base / "config.json")
    if dtype is not None:
        config.pop("torch_dtype", None)
        config["dtype"] = str(dtype).removeprefix("torch.")
    files.replace(
        folder / "config.json", msgspec.json.format(msgspec.json.encode(config), indent=2) + b"\n", 0o644
    )


def _is_copied(path: Path) -> bool:
    if path.name in _OURS or path.name.startswith("."):
        return False
    return path.suffix in _COPIED and (bool(path.suffix) or path.name.startswith(_NAMES_WITHOUT_SUFFIX))
