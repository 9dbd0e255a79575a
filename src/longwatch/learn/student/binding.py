"""What a score is bound to, and which two scores may be compared (L15, L29).

Batched floating-point paths change greedy answers: another batch size, torch, processor or template is another
measurement, and a difference between the two says nothing about the student.
"""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.chat import template_digest

if TYPE_CHECKING:
    from longwatch.learn.student.load import Loaded

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
"""The two files of a PEFT adapter."""
_TOKENIZER_PREFIXES = ("tokenizer", "special_tokens_map", "added_tokens", "vocab", "merges", "chat_template")


class ScoreBinding(msgspec.Struct, frozen=True, kw_only=True):
    """All that must be equal before two scores are compared. The adapter is what is compared, so it is not in it."""

    base: Digest
    """The base model's files without the tokenizer's; for a model by name, its name and revision."""
    tokenizer: Digest
    template: Digest
    torch: str
    transformers: str
    peft: str
    device: str
    """The processor with its matrix instructions, or the accelerator with its driver's interface."""
    dtype: str
    threads: int
    """Of the processor; 0 on an accelerator."""
    batch: int
    sampling: Sampling

    @property
    def digest(self) -> Digest:
        """One digest for all of it."""
        return digest.of_bytes(msgspec.json.encode(self))


def comparable(one: ScoreBinding, other: ScoreBinding) -> tuple[str, ...]:
    """Pure: what differs, as `name: this, that`; empty if the scores may be compared."""
    before, after = (msgspec.structs.asdict(binding) for binding in (one, other))
    return tuple(f"{name}: {before[name]}, {after[name]}" for name in before if before[name] != after[name])


def require_comparable(one: ScoreBinding, other: ScoreBinding) -> None:
    """Return if the scores may be compared.

    Raises:
        IntegrityError: they were measured differently; the message names every difference and the mend.
    """
    found = comparable(one, other)
    if found:
        raise IntegrityError(
            f"two scores were measured differently ({'; '.join(found)}): restore the setting, or measure the baseline again"
        )


def bind(loaded: "Loaded", *, batch: int, sampling: Sampling) -> ScoreBinding:
    """Bind what is loaded, by reading all files of a local model.

    Raises:
        PathError, NotReadyError: the model's folder cannot be hashed.
    """
    import torch  # noqa: PLC0415 - only child programs load torch

    base, tokenizer = _model(loaded)
    return ScoreBinding(
        base=base,
        tokenizer=tokenizer,
        template=template_digest(loaded.tokenizer),
        torch=torch.__version__,
        transformers=version("transformers"),
        peft=version("peft"),
        device=_device(loaded),
        dtype=str(loaded.dtype).removeprefix("torch."),
        threads=0 if loaded.device.type == "cuda" else torch.get_num_threads(),
        batch=batch,
        sampling=sampling,
    )


def adapter_digest(folder: Path) -> Digest:
    """Return what an adapter is known by: its weights and its configuration.

    Raises:
        IntegrityError: one of the two files is missing.
    """
    return digest.bind("adapter", folder, ADAPTER_FILES).digest


def _model(loaded: "Loaded") -> tuple[Digest, Digest]:
    """Digests of the base model and of its tokenizer."""
    if loaded.folder is None:
        revision = getattr(loaded.network.config, "_commit_hash", None) or "unknown"
        known = digest.of_bytes(f"{loaded.name}@{revision}".encode())
        return known, known
    names = digest.tree(loaded.folder)
    of_tokenizer = [name for name in names if name.startswith(_TOKENIZER_PREFIXES)]
    others = [name for name in names if name not in of_tokenizer]
    return _digest(loaded.folder, others), _digest(loaded.folder, of_tokenizer)


def _digest(folder: Path, names: Sequence[str]) -> Digest:
    return digest.bind("student", folder, names).digest


def _device(loaded: "Loaded") -> str:
    import torch  # noqa: PLC0415 - as above

    if loaded.device.type == "cuda":
        properties = torch.cuda.get_device_properties(loaded.device)
        return f"{properties.name} sm_{properties.major}{properties.minor}, CUDA {torch.version.cuda}"
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, {_processor()}"


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model name, and whether it multiplies matrices in bfloat16."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown"
    )
    return model + (" with AMX" if any("amx_bf16" in line.split() for line in lines) else "")
