"""A problem as a task in each language: the prompt in words, and tests with what our own reference returns."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from longwatch.learn.curriculum.dialects import DIALECTS
from longwatch.learn.curriculum.putting import Put, put
from longwatch.learn.curriculum.template import Arguments, Problem, Template, camel, tell_apart, telling
from longwatch.learn.sources.asking import ask
from longwatch.learn.tasks import Case, Cases, Json, Language, Task

Built = tuple[Problem, tuple[Case, ...]]
_TRIES = 20


def build(template: Template, number: int, random: Random) -> Built | None:
    """Build a problem with tests that a constant answer does not pass; `None` if these constants give none."""
    for _ in range(_TRIES):
        problem = template.build(template.constants(number), random)
        cases = _cases(problem)
        if tell_apart(cases):
            return problem, cases
    return None


def task(template: Template, built: Built, language: Language, *, name: str, row: str) -> Task:
    """One language's version of a problem; `name` is the problem's, `row` tells where in the source it stands.

    Raises:
        UnsayableError: there is none.
    """
    problem, cases = built
    shown = put(problem, cases, language) if language in DIALECTS else _plainly(problem, cases, language)
    return Task(
        id=f"{name}.{row}.{language.value}",
        problem=name,
        repository=f"{template.family}.{template.name}",
        family=template.family,
        language=language,
        level=template.level,
        split=template.split,
        prompt=shown.prompt,
        entry_point=shown.entry_point,
        tests=shown.tests,
        reference=shown.reference,
    )


def _plainly(problem: Problem, cases: tuple[Case, ...], language: Language) -> Put:
    """The version in a language that is judged in two processes, and whose tests are the values themselves."""
    entry = problem.name if language is Language.PYTHON else camel(problem.name)
    return Put(
        entry_point=entry,
        prompt=_prompt(problem, cases, language, entry),
        tests=Cases(cases=cases),
        reference=problem.references[language],
    )


def _cases(problem: Problem) -> tuple[Case, ...]:
    function = _compiled(problem)
    calls = {_text(call): call for call in problem.calls}.values()
    return tuple(Case(_plain(call), _plain(function(*_plain(call)))) for call in calls)


def _compiled(problem: Problem) -> Callable[..., Any]:
    space: dict[str, Any] = {}
    exec(compile(problem.references[Language.PYTHON], problem.name, "exec"), space)  # noqa: S102 - our own text, from this package
    function: Callable[..., Any] = space[problem.name]
    return function


def _plain(value: Any) -> Any:
    """The value as it looks after crossing between processes; a copy."""
    copied = msgspec.json.decode(msgspec.json.encode(value))
    return tuple(copied) if isinstance(value, tuple) else copied


def _text(value: Json | Arguments) -> str:
    return msgspec.json.encode(value).decode()


def _prompt(problem: Problem, cases: tuple[Case, ...], language: Language, entry: str) -> str:
    signature = f"{entry}({', '.join(problem.parameters)})"
    examples = [
        f"`{entry}({', '.join(_literal(argument, language) for argument in case.arguments)})` "
        f"returns `{_literal(case.expected, language)}`"
        for case in telling(cases)
    ]
    return ask(language, signature, problem.sentence, examples)


def _literal(value: Json, language: Language) -> str:
    return repr(value) if language is Language.PYTHON else json.dumps(value, ensure_ascii=False)
