"""What a score is bound to, and which two scores may be compared (L15, L29).

Batched floating-point paths change greedy answers: another batch size, torch, processor or template is another
measurement, and a difference between the two says nothing about the student.
"""

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.settings import Student
from longwatch.learn.student import model
from longwatch.learn.student.answers import Sampling

if TYPE_CHECKING:
    import torch


class ScoreBinding(msgspec.Struct, frozen=True, kw_only=True):
    """All that must be equal before two scores are compared. The adapter is what is compared, so it is not in it."""

    base: Digest
    """The base model's files without the tokenizer's."""
    tokenizer: Digest
    """Its files, the chat template among them."""
    asking: Digest
    """Our own sources that ask the student and read what it says."""
    torch: str
    transformers: str
    peft: str
    device: str
    """The processor with its matrix instructions, or the accelerator with its driver."""
    dtype: str
    threads: int
    """Of the processor; 0 on an accelerator."""
    batch: int
    sampling: Sampling

    @property
    def digest(self) -> Digest:
        """One digest for all of it."""
        return digest.of_bytes(msgspec.json.encode(self))

    @property
    def environment(self) -> str:
        """The machine and its libraries, for a person."""
        threads = f", {self.threads} threads" if self.threads else ""
        return (
            f"torch {self.torch}, transformers {self.transformers}, peft {self.peft}, python {platform.python_version()}; "
            f"{self.device}, {self.dtype}{threads}"
        )


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


def bind(student: Student, *, batch: int, sampling: Sampling, cache: Path | None = None) -> ScoreBinding:
    """Return what an exam of this student is bound to, here and now. No model is loaded for it.

    Raises:
        ConfigError, NotReadyError, PathError: the base model is not here, or cannot be bound.
    """
    from longwatch.learn.student import load  # noqa: PLC0415 - brings torch, which only child programs load

    device = load.choose_device(student.device)
    base, tokenizer = model.digests(student.model, cache)
    return ScoreBinding(
        base=base,
        tokenizer=tokenizer,
        asking=_sources(),
        torch=version("torch"),
        transformers=version("transformers"),
        peft=version("peft"),
        device=_device(device),
        dtype=str(load.choose_dtype(device)).removeprefix("torch."),
        threads=0 if device.type == "cuda" else load.cores(),
        batch=batch,
        sampling=sampling,
    )


def base_digest(student: Student, cache: Path | None = None) -> Digest:
    """Return the digest of all files of the base model, those of its tokenizer among them.

    Raises:
        ConfigError, NotReadyError, PathError: as `bind`.
    """
    return digest.of_bytes(msgspec.json.encode(model.digests(student.model, cache)))


@cache
def _sources() -> Digest:
    """Once a process: it runs what it has loaded."""
    return digest.bind("asking", Path(__file__).parent, without=frozenset({"__pycache__"})).digest


def _device(device: "torch.device") -> str:
    import torch  # noqa: PLC0415 - as above

    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found = driver() or "of unknown version"
        return f"{properties.name} sm_{properties.major}{properties.minor}, CUDA {torch.version.cuda}, driver {found}"
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, {_processor()}"


def driver(path: Path = Path("/sys/module/nvidia/version")) -> str:
    """Return the version of the accelerator's driver; empty where none is loaded."""
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model name, and whether it multiplies matrices in bfloat16."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return name + (" with AMX" if any("amx_bf16" in line.split() for line in lines) else "")
