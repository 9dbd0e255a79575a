"""Proves, before an hour is spent, that the watch can do its work; and the lines of `doctor` that say so."""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path

from longwatch.kernel.errors import ConfigError, IntegrityError, LongwatchError, NotReadyError
from longwatch.kernel.finding import Finding, Standing, fine, note, wrong
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.learn.auditing.benchmarks import chosen as benchmarks_of
from longwatch.learn.grading import scripts
from longwatch.learn.grading.identity import version
from longwatch.learn.grading.languages import RUNTIMES
from longwatch.learn.settings import FILE, Curriculum, LearnSettings, Student
from longwatch.learn.sources.choice import chosen
from longwatch.learn.student import model
from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.fetch import SMOLLM2
from longwatch.learn.tasks import Language
from longwatch.learn.teachers.helping import key_of
from longwatch.learn.teachers.provenance import Teacher
from longwatch.sandbox import proof, sandbox_of
from longwatch.sandbox.choice import ENGINES, Sandboxing

_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_PACKAGES = ("torch", "transformers", "peft", "safetensors")


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
    proof.prove(sandbox_of(settings.where), watch.hidden / "sandbox-proof.json")


def findings(settings: LearnSettings, root: Path) -> Iterator[Finding]:
    """Yield one finding for each thing that is needed by the watch in `root`. Changes nothing and loads no model."""
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        yield wrong("packages", f"{', '.join(missing)} missing", "pip install 'longwatch[learn]'")
    else:
        yield fine("packages", "torch, transformers, peft and safetensors are there")
    yield from _graders(settings)
    if not missing:
        yield _student(settings.student)
        yield _teacher(settings)
    yield _tasks(settings.curriculum, root)
    if settings.audit.wanted:
        yield from _benchmarks(settings, root)


def _graders(settings: LearnSettings) -> Iterator[Finding]:
    try:
        yield from _languages(settings.curriculum.languages, settings.where)
    except (ConfigError, NotReadyError) as error:
        # Only an engine of containers can fail like this: nothing can be said of what an image brings.
        yield wrong("languages", str(error), f"correct [sandbox] in {FILE}, or the engine")
    if settings.sandbox.kind not in ENGINES:
        for program in ("bwrap", "setpriv") if os.geteuid() == 0 else ("bwrap",):
            yield _program("grader", program)


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


def _languages(taught: Collection[Language], where: Sandboxing) -> Iterator[Finding]:
    """All languages in a line or two; one that is taught in has to be there."""
    here, lacking = [], []
    for language, runtime in RUNTIMES.items():
        missing = scripts.missing(language, where)
        if missing and language in taught:
            spot = f"in {where.image}" if where.image else "here"
            advice = f"apt-get install {' '.join(runtime.packages)}"
            yield wrong(f"runtime {language}", f"{', '.join(missing)} not {spot}", advice)
        elif missing:
            lacking.append(language)
        elif where.image:
            # What it says would take a start for each language, and the image's digest says all of it.
            here.append(runtime.name)
        else:
            number = _NUMBER.search(version(language))
            here.append(f"{runtime.name} {number[0] if number else 'of an unknown version'}")
    yield fine("languages", ", ".join(here))
    if lacking:
        names = ", ".join(RUNTIMES[language].name for language in lacking)
        packages = " ".join(package for language in lacking for package in RUNTIMES[language].packages)
        yield note(
            "languages", f"not here, so that no audit asks in them: {names}", f"apt-get install {packages}"
        )


def _benchmarks(settings: LearnSettings, root: Path) -> Iterator[Finding]:
    try:
        found = benchmarks_of(settings.audit, root)
    except (NotReadyError, IntegrityError) as error:
        yield wrong(
            "audit", str(error), "`longwatch fetch humaneval` or `multipl-e`, or take it out of [audit]"
        )
        return
    for name in dict.fromkeys(one.name for one in found):
        counts = [len(one.tasks) for one in found if one.name == name]
        languages = f" in {len(counts)} languages" if len(counts) > 1 else ""
        yield fine("audit", f"{name}, {sum(counts)} tasks{languages}, as published")
