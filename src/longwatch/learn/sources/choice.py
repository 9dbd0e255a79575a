"""The source that a configuration names."""

from pathlib import Path

from longwatch.kernel.errors import ConfigError, RefusedError
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.settings import Curriculum
from longwatch.learn.sources.mbpp import Mbpp
from longwatch.learn.sources.mbxp import Mbxp
from longwatch.learn.sources.source import Source
from longwatch.learn.sources.taskfile import TaskFile
from longwatch.learn.tasks import Language

_NEVER = {
    "humaneval": "it is the benchmark of the audits",
    "multipl-e": "its licence forbids use as training data",
}


def chosen(curriculum: Curriculum, folder: Path, public: Path) -> Source:
    """The source of `[curriculum]`. A task file's path is relative to `folder`; public sets lie below `public`.

    Raises:
        ConfigError: it does not exist, or does not have what is asked of it.
        RefusedError: it must not be a curriculum.
        NotReadyError, IntegrityError: a public set is not there, or is not what was published.
    """
    name = curriculum.source
    if name.lower() in _NEVER:
        raise RefusedError(
            f"[curriculum] source: {name!r} never trains: {_NEVER[name.lower()]}; choose another"
        )
    if name == "generated":
        return Generated(curriculum.seed, curriculum.languages, curriculum.levels, curriculum.families)
    if name == "mbpp":
        return _mbpp(curriculum, public)
    if name == "mbxp":
        return Mbxp(public, curriculum.languages)
    return TaskFile(folder / name)


def _mbpp(curriculum: Curriculum, public: Path) -> Mbpp:
    if curriculum.languages != (Language.PYTHON,):
        raise ConfigError(
            "[curriculum] languages: MBPP is in Python only; write `mbxp` for other languages too"
        )
    return Mbpp(public)
