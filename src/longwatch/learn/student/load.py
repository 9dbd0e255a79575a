"""A student in memory, ready to answer: any causal language model, on a processor or an accelerator."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from longwatch.kernel.errors import ConfigError
from longwatch.learn.adapters import CONFIG, WEIGHTS
from longwatch.learn.settings import Student
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.convert import verify
from longwatch.learn.student.model import EMBEDDED, folder_of


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model and its tokenizer. `device` and `dtype` say how it computes, and are part of every binding."""

    model: Any
    """A `PreTrainedModel`, or a `PeftModel` around one if there is an adapter; in evaluation mode."""
    tokenizer: Any
    adapter: Path | None
    device: torch.device
    dtype: torch.dtype

    @property
    def network(self) -> Any:
        """The base model itself; the adapter's layers are inside it."""
        return self.model.get_base_model() if self.adapter is not None else self.model


def load(student: Student, *, adapter: Path | None = None, cache: Path | None = None) -> Loaded:
    """Load the base model that the settings name, and an adapter on top of it. Nothing is downloaded.

    Raises:
        ConfigError: there is no such model or adapter, or they do not fit each other.
        NotReadyError: the embedded model has not been fetched yet.
        IntegrityError: the embedded model is not what was fetched.
    """
    device = choose_device(student.device)
    dtype = choose_dtype(device)
    folder = folder_of(student.model, cache or cache_folder())
    if student.model == EMBEDDED:
        verify(folder)
    model, tokenizer = _base(str(folder), dtype)
    model = model.to(device)
    if adapter is not None:
        model = _adapted(model, adapter)
    return Loaded(model=model.eval(), tokenizer=tokenizer, adapter=adapter, device=device, dtype=dtype)


def choose_device(wanted: str) -> torch.device:
    """Return the device that the settings mean.

    Raises:
        ConfigError: there is no such device here.
    """
    has_cuda = torch.cuda.is_available()
    if wanted == "auto":
        return torch.device("cuda" if has_cuda else "cpu")
    if wanted == "cpu" or (wanted == "cuda" and has_cuda):
        return torch.device(wanted)
    if wanted == "cuda":
        raise ConfigError(
            "[student] device is 'cuda', but torch sees no accelerator: check the driver, or use 'auto'"
        )
    raise ConfigError(f"[student] device is {wanted!r}: use 'auto', 'cpu' or 'cuda'")


def choose_dtype(device: torch.device, cpuinfo: Path = Path("/proc/cpuinfo")) -> torch.dtype:
    """Return bfloat16 where the device multiplies matrices in it, else float32: emulated, it is many times slower."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    try:
        flags = cpuinfo.read_text()
    except FileNotFoundError:
        return torch.float32
    return torch.bfloat16 if "amx_bf16" in flags.split() else torch.float32


def release(device: torch.device) -> None:
    """Give the accelerator's memory back, after the caller has let go of its models (L14)."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def cores() -> int:
    """Return how many threads answers are computed with: OMP_NUM_THREADS, or one for each core that this process may use."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() and int(wanted) else len(os.sched_getaffinity(0))


@contextmanager
def threads(count: int | None = None) -> Iterator[int]:
    """Compute with this many threads, and restore the old number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or cores())
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


@contextmanager
def measured() -> Iterator[None]:
    """Compute as every exam does, whatever training has set in this process: champion and challenger alike (L15)."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        with threads():
            yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=torch.cuda.is_available())


def _base(folder: str, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - takes seconds

    # Nothing that a folder holds is ever executed: no code of its own, and no pickle.
    safely: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    gguf = next(Path(folder).glob("*.gguf"), None)
    # A folder of one such file is what `export` makes; it holds configuration, tokenizer and weights.
    stored: dict[str, Any] = {"gguf_file": gguf.name} if gguf else {"use_safetensors": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, padding_side="left", **safely, **({"gguf_file": gguf.name} if gguf else {})
        )
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **stored, **safely)
    except (OSError, ValueError, SafetensorError) as error:
        raise ConfigError(f"[student] model {folder} cannot be loaded: {error}") from error
    return model, tokenizer


def _adapted(model: Any, adapter: Path) -> Any:
    from peft import PeftModel  # noqa: PLC0415 - takes seconds

    for name in (CONFIG, WEIGHTS):
        if not (adapter / name).is_file():  # peft would ask the network, or take a pickle
            raise ConfigError(f"{adapter} is no adapter: it has no {name}")
    try:
        return PeftModel.from_pretrained(model, str(adapter))
    except (RuntimeError, ValueError, KeyError, TypeError, OSError, SafetensorError) as error:
        raise ConfigError(f"the adapter {adapter} does not fit its base model: {error}") from error
