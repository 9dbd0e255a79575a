"""`grade`: recorded answers, graded here, and their verdicts beside those that were recorded. It needs no watch."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError, NotReadyError
from longwatch.learn import recordings
from longwatch.learn.grading import grade_all, proved, scripts
from longwatch.learn.grading.identity import version
from longwatch.learn.grading.languages import RUNTIMES
from longwatch.learn.recordings import Recorded
from longwatch.learn.sources import humaneval, multipl_e
from longwatch.learn.tasks import Grade, Language, Task, Verdict

MAX_BYTES = 256 * 1024 * 1024
Told = Callable[[int, int], None]
"""How many are done, of how many."""


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """One answer's verdict here, and the recorded one."""

    task: str
    verdict: Verdict
    why: str
    recorded: bool | None

    @property
    def same(self) -> bool:
        """True if both say the same."""
        return self.verdict is not Verdict.INFRA and (self.verdict is Verdict.PASS) == self.recorded


class Regraded(msgspec.Struct, frozen=True, kw_only=True):
    """A whole recording, graded here."""

    language: Language
    version: str
    passed: int
    failed: int
    infra: int
    """Not judged, by our own trouble."""
    recorded: int
    """How many have a recorded verdict."""
    same: int
    answers: tuple[Graded, ...]


def named(language: str) -> Language:
    """Return the language that a person means: its name, or what models call it in a fence.

    Raises:
        ConfigError: none is called so.
    """
    for one, runtime in RUNTIMES.items():
        if language.lower() in {one, *runtime.fences}:
            return one
    raise ConfigError(f"--language {language}: choose one of {', '.join(RUNTIMES)}")


def run(path: Path, language: Language, data: Path, *, told: Told) -> Regraded:
    """Grade the answers in a file; `data` is a folder of public files.

    Raises:
        ConfigError: there is no such file, or as `recordings.read`.
        NotReadyError: the benchmark is not in the folder, or the language does not judge right on this machine.
        IntegrityError: the benchmark's file is another one than the published one.
    """
    found = recordings.read(_content(path), str(path), _tasks(language, data))
    _refuse_unproved(language)
    pairs = [(one.answer, one.task) for one in found]
    grades = list(grade_all(pairs, progress=lambda done: told(done, len(pairs))))
    return _result(language, found, grades)


def _content(path: Path) -> bytes:
    try:
        return files.read_bounded(path, MAX_BYTES)
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}: name a file of recorded answers") from None


def _tasks(language: Language, data: Path) -> tuple[Task, ...]:
    return humaneval.load(data) if language is Language.PYTHON else multipl_e.load(language, data)


def _refuse_unproved(language: Language) -> None:
    missing = scripts.missing(language)
    if missing:
        raise NotReadyError(scripts.advice(language, missing))
    proof = proved(language)
    if not proof.holds:
        raise NotReadyError(
            f"{RUNTIMES[language].name} does not judge known answers right here: {proof.broken[0].why}; "
            "look with `longwatch doctor`"
        )


def _result(language: Language, found: tuple[Recorded, ...], grades: list[Grade]) -> Regraded:
    """Pure."""
    answers = tuple(
        Graded(task=grade.task, verdict=grade.verdict, why=grade.why, recorded=one.passed)
        for one, grade in zip(found, grades, strict=True)
    )
    verdicts = [one.verdict for one in answers]
    return Regraded(
        language=language,
        version=version(language),
        passed=verdicts.count(Verdict.PASS),
        failed=verdicts.count(Verdict.FAIL),
        infra=verdicts.count(Verdict.INFRA),
        recorded=sum(one.recorded is not None for one in answers),
        same=sum(one.same for one in answers),
        answers=answers,
    )


def text(seen: Regraded) -> str:
    """Return it for a person: the counts, and each answer that is judged otherwise than it was recorded. Pure."""
    name = RUNTIMES[seen.language].name
    counts = f"{seen.passed} pass, {seen.failed} fail, {seen.infra} not judged"
    lines = [f"{name} ({seen.version}): {len(seen.answers)} answers, {counts}."]
    if seen.recorded:
        lines.append(f"{seen.recorded} have a recorded verdict: {seen.same} the same.")
    lines += [_difference(one) for one in seen.answers if one.recorded is not None and not one.same]
    return "\n".join(lines)


def _difference(one: Graded) -> str:
    was = "passed" if one.recorded else "failed"
    return f"  {one.task}: {one.verdict} here, {was} there. {one.why}".rstrip()
