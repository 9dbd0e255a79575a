"""Proves, before an hour is spent, that the watch can do its work; and the lines of `doctor` that say so."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from longwatch.kernel.errors import ConfigError, IntegrityError, LongwatchError, NotReadyError
from longwatch.kernel.finding import Finding, Standing, fine, note, wrong
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.learn.settings import FILE, Curriculum, LearnSettings, Student
from longwatch.learn.sources import humaneval
from longwatch.learn.sources.choice import chosen
from longwatch.learn.student import model
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.fetch import SMOLLM2
from longwatch.learn.tasks import Language
from longwatch.learn.teachers.helping import key_of
from longwatch.learn.teachers.provenance import Teacher
from longwatch.sandbox import SANDBOXES, proof

_PACKAGES = ("torch", "transformers", "peft", "safetensors")
_RUNTIMES = {Language.PYTHON: "python3", Language.JAVASCRIPT: "node"}


def prove(watch: Watch, settings: LearnSettings) -> None:
    """Raise what keeps the watch from working.

    Raises:
        ConfigError: a package, a runtime, the student or the tasks are missing or cannot be used.
        NotReadyError: the sandbox does not hold here.
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
        yield _program(f"runtime {language}", _RUNTIMES[language])
    for program in ("bwrap", "setpriv") if os.geteuid() == 0 else ("bwrap",):
        yield _program("grader", program)
    if not missing:
        yield _student(settings.student)
        yield _teacher(settings)
    yield _tasks(settings.curriculum, root)
    if settings.audit.humaneval:
        yield _benchmark(root / settings.audit.humaneval)


def _program(name: str, program: str) -> Finding:
    found = shutil.which(program)
    if found is None:
        return wrong(name, f"{program} is not on PATH", "install it")
    return fine(name, found)


def _student(student: Student) -> Finding:
    if student.model == model.EMBEDDED and not (cache_folder() / f"{SMOLLM2.member_sha256}.gguf").is_file():
        return wrong("student", f"{student.model} was not fetched yet", "longwatch fetch")
    try:
        if student.model != model.EMBEDDED:
            model.check(model.folder_of(student.model, cache_folder()))
        if student.device not in {"auto", "cpu"}:
            from longwatch.learn.student.load import choose_device  # noqa: PLC0415 - only torch knows an accelerator

            choose_device(student.device)
    except LongwatchError as error:
        return wrong("student", str(error), f"correct [student] in {FILE}")
    return fine("student", f"{student.model}, on {student.device}")


def _teacher(settings: LearnSettings) -> Finding:
    teaching, chosen = settings.teacher, settings.training.teacher
    try:
        if chosen is Teacher.MODEL:
            model.check(model.folder_of(teaching.model, cache_folder()))
        if chosen is Teacher.ENDPOINT:
            key_of(teaching.key)
    except LongwatchError as error:
        mend = f"correct [teacher] in {FILE}"
        text = str(error).replace("[student] model", "[teacher] model")
        return wrong("teacher", text, mend) if teaching.required else note("teacher", text, mend)
    where = f" at {teaching.origin}, which is not asked now" if chosen is Teacher.ENDPOINT else ""
    named = f", {teaching.model}{where}" if chosen in {Teacher.MODEL, Teacher.ENDPOINT} else ""
    return fine("teacher", f"{chosen.value}{named}")


def _tasks(curriculum: Curriculum, root: Path) -> Finding:
    try:
        source = chosen(curriculum, root, root / curriculum.public)
    except LongwatchError as error:
        return wrong("tasks", f"{curriculum.source}: {error}", f"correct [curriculum] in {FILE}, or its file")
    count = "without end" if source.length is None else f"{source.length} problems"
    return fine("tasks", f"{curriculum.source}, {count}")


def _benchmark(path: Path) -> Finding:
    try:
        count = len(humaneval.load(path))
    except (NotReadyError, IntegrityError) as error:
        return wrong("audit", str(error), "longwatch fetch humaneval, or take [audit] humaneval out")
    return fine("audit", f"HumanEval, {count} tasks, as published")
