"""Proves, before an hour is spent, that the watch can do its work; and the lines of `doctor` that say so."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from longwatch.kernel.errors import ConfigError, IntegrityError, NotReadyError
from longwatch.kernel.finding import Finding, Standing, fine, wrong
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.learn.settings import LearnSettings, Student
from longwatch.learn.sources import humaneval
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.fetch import SMOLLM2
from longwatch.learn.tasks import Language
from longwatch.sandbox import SANDBOXES, proof

_PACKAGES = ("torch", "transformers", "peft", "safetensors")
_RUNTIMES = {Language.PYTHON: "python3", Language.JAVASCRIPT: "node"}


def prove(watch: Watch, settings: LearnSettings) -> None:
    """Raise what keeps the watch from working.

    Raises:
        ConfigError: a package or a runtime is missing.
        NotReadyError: the student was not fetched, or the sandbox does not hold here.
    """
    SigningKey.load(watch.keys)
    problems = [finding for finding in findings(settings, watch.root) if finding.standing is Standing.WRONG]
    if problems:
        raise ConfigError("; ".join(f"{one.name}: {one.text} ({one.mend})" for one in problems))
    proof.prove(SANDBOXES["bubblewrap"](), watch.hidden / "sandbox-proof.json")


def findings(settings: LearnSettings, root: Path) -> Iterator[Finding]:
    """Yield one finding for each thing that is needed by the watch in `root`. Changes nothing and loads no model."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        yield wrong("packages", f"{', '.join(missing)} missing", "pip install 'longwatch[learn]'")
    else:
        yield fine("packages", "torch, transformers, peft and safetensors are there")
    for language in settings.curriculum.languages:
        yield _runtime(language)
    yield _student(settings)
    if settings.audit.humaneval:
        yield _benchmark(root / settings.audit.humaneval)


def _runtime(language: Language) -> Finding:
    program = shutil.which(_RUNTIMES[language])
    if program is None:
        return wrong(f"runtime {language}", f"{_RUNTIMES[language]} is not on PATH", "install it")
    return fine(f"runtime {language}", program)


def _student(settings: LearnSettings) -> Finding:
    embedded = Student().model
    if settings.student.model != embedded:
        return fine("student", f"{settings.student.model}: looked for when an experiment loads it")
    if (cache_folder() / f"{SMOLLM2.member_sha256}.gguf").is_file():
        return fine("student", f"{embedded}, fetched")
    return wrong("student", f"{embedded} was not fetched yet", "longwatch fetch")


def _benchmark(path: Path) -> Finding:
    try:
        count = len(humaneval.load(path))
    except (NotReadyError, IntegrityError) as error:
        return wrong("audit", str(error), "longwatch fetch humaneval, or take [audit] humaneval out")
    return fine("audit", f"HumanEval, {count} tasks, as published")
