"""The generation that is here now. Loads no torch, and of the files that did not change it reads none twice."""

import platform
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

import longwatch
from longwatch.kernel import digest
from longwatch.kernel.digest import Digest
from longwatch.kernel.settings import KernelSettings
from longwatch.learn.generations.values import Generation
from longwatch.learn.grading.identity import programs
from longwatch.learn.settings import Audit, LearnSettings
from longwatch.learn.student import model
from longwatch.learn.student.binding import driver
from longwatch.learn.tasks import Language

PACKAGE = Path(longwatch.__file__).parent
LOADED = ("__init__.py", "kernel", "learn", "sandbox")
"""What the program of a step can load of the package."""
FREE_TABLES = frozenset({*KernelSettings.__struct_fields__, "audit", "curriculum", "readiness", "teacher"})
"""Tables that change nothing in a running experiment: tasks and benchmarks are bound by their digests, examples carry who
taught them, and the rest says when to work."""
FREE_KEYS = frozenset({"student.model", "experiment.hours"})
"""The model is bound by its files, and `longwatch set-hours` changes the hours."""
LIBRARIES = ("numpy", "peft", "safetensors", "tokenizers", "torch", "transformers")


def present(settings: LearnSettings, root: Path) -> Generation:
    """Return what an experiment of the watch in `root` would be bound to now.

    Raises:
        ConfigError, NotReadyError, PathError: the base model is not here, or cannot be bound.
    """
    base, tokenizer = model.digests(settings.student.model)
    return Generation(
        sources=sources(PACKAGE),
        config=config(settings),
        model={"base": base, "tokenizer": tokenizer},
        data=dict(_data(settings.audit, root)),
        # Benchmarks in Python are always possible.
        runtimes=programs({Language.PYTHON, *settings.curriculum.languages}, settings.where),
        environment=_environment(),
    )


@cache
def sources(package: Path) -> Mapping[str, Digest]:
    """Return the digest of each file of the package that a step's program can load, by its path in the package.

    Read once a process: it runs what it has loaded.
    """
    every = digest.tree(package)
    wanted = [path for path in every if path.split("/")[0] in LOADED and "__pycache__" not in path]
    return {path: entry.digest for path, entry in digest.bind("sources", package, wanted).entries.items()}


def config(settings: LearnSettings) -> dict[str, str]:
    """Pure: return the settings that are bound, as JSON, by their keys."""
    tables = (name for name in settings.__struct_fields__ if name not in FREE_TABLES)
    values = {
        f"{table}.{key}": value
        for table in tables
        for key, value in msgspec.structs.asdict(getattr(settings, table)).items()
    }
    return {key: _text(value) for key, value in values.items() if key not in FREE_KEYS}


def _text(value: object) -> str:
    return value.value if isinstance(value, StrEnum) else msgspec.json.encode(value).decode()


def _data(audit: Audit, root: Path) -> Iterator[tuple[str, str]]:
    """Yield the digest of whatever stands at each path that the audit's settings name."""
    for key, value in msgspec.structs.asdict(audit).items():
        if isinstance(value, str) and value:
            yield f"audit.{key}", _content(root / value)


def _content(path: Path) -> str:
    if not path.exists():
        return "missing"
    return digest.bind("data", path).digest if path.is_dir() else digest.of_file(path.resolve())


def _environment() -> dict[str, str]:
    versions = {name: _version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), **versions, "driver": driver()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
