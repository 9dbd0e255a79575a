"""Which tasks can be trusted to judge an answer (L2), and which runtimes to judge at all (L23)."""

from collections.abc import Callable, Iterable
from enum import StrEnum

import msgspec

from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.grader import grade, grade_all
from longwatch.learn.grading.known import known
from longwatch.learn.grading.place import HERE
from longwatch.learn.tasks import Grade, Language, Task, Verdict
from longwatch.sandbox.choice import Sandboxing

_STUBS = {
    Language.PYTHON: "def {name}(*arguments, **named):\n    return None\n",
    Language.JAVASCRIPT: "function {name}() {{}}\n",
    # These go on where what is given ends; what a type forbids is not built, and so does not pass either.
    Language.TYPESCRIPT: "    return null;\n}}\n",
    Language.JAVA: "        return null;\n",
    Language.CPP: "    return {{}};\n",
    Language.RUBY: "  nil\nend\n",
    Language.PHP: "    return null;\n}}\n",
    Language.LUA: "  return nil\nend\n",
}


class Finding(StrEnum):
    """What screening a task found. All but `usable` leave it out."""

    USABLE = "usable"
    NO_REFERENCE = "no reference"
    REFERENCE_FAILS = "reference fails"
    FLAKY = "flaky"
    """The reference passes sometimes: quarantined."""
    STUB_PASSES = "stub passes"
    EMPTY_PASSES = "empty answer passes"
    INFRA = "infra"
    """Our own trouble: nothing is known about the task."""


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """A screened task."""

    task: str
    finding: Finding
    why: str = ""


def screen(
    task: Task, *, repeats: int = 3, bounds: Bounds | None = None, where: Sandboxing = HERE
) -> Screened:
    """Find out whether its reference always passes, each time with another order of sets, and what does nothing fails."""
    if not task.reference:
        return Screened(task=task.id, finding=Finding.NO_REFERENCE)
    grades = [grade(task.reference, task, bounds=bounds, seed=seed, where=where) for seed in range(repeats)]
    finding = _of_reference([one.verdict for one in grades])
    if finding is not Finding.USABLE:
        return Screened(task=task.id, finding=finding, why=next(one.why for one in grades if one.why))
    return _of_nothing(task, bounds, where)


def _of_reference(verdicts: list[Verdict]) -> Finding:
    if Verdict.INFRA in verdicts:
        return Finding.INFRA
    if Verdict.PASS not in verdicts:
        return Finding.REFERENCE_FAILS
    return Finding.FLAKY if Verdict.FAIL in verdicts else Finding.USABLE


def _of_nothing(task: Task, bounds: Bounds | None, where: Sandboxing) -> Screened:
    for answer, finding in ((stub(task), Finding.STUB_PASSES), ("", Finding.EMPTY_PASSES)):
        seen = grade(answer, task, bounds=bounds, where=where)
        if seen.verdict is Verdict.INFRA:
            return Screened(task=task.id, finding=Finding.INFRA, why=seen.why)
        if seen.verdict is Verdict.PASS:
            return Screened(task=task.id, finding=finding)
    return Screened(task=task.id, finding=Finding.USABLE)


def stub(task: Task) -> str:
    """Return an answer that takes everything and does nothing."""
    return _STUBS[task.language].format(name=task.entry_point)


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a language's verdicts can be counted here and now."""

    language: Language
    tried: int
    broken: tuple[Grade, ...]
    """What was not judged as it must be."""

    @property
    def holds(self) -> bool:
        """False voids the language: its answers are not scored."""
        return self.tried > 0 and not self.broken


def proved(
    language: Language,
    tasks: Iterable[Task] = (),
    *,
    bounds: Bounds | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    where: Sandboxing = HERE,
) -> Proof:
    """Run what is known of a language first: the tasks' own references, and always what is built in, right and wrong.

    What was stopped proves nothing.
    """
    references = [(task.reference, task) for task in tasks if task.language is language and task.reference]
    built_in = known(language)
    answered = [*((one.answer, one.task) for one in built_in), *references]
    right = [*(one.verdict for one in built_in), *(Verdict.PASS for _ in references)]
    graded = grade_all(answered, bounds=bounds, should_stop=should_stop, where=where)
    broken = tuple(one for one, verdict in zip(graded, right, strict=False) if one.verdict is not verdict)
    return Proof(language=language, tried=len(answered), broken=broken)
