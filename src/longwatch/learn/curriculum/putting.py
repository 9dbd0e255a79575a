"""A problem in a language whose tests stand in one file with the answer: prompt, tests and reference. Pure."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from longwatch.learn.curriculum.dialects import DIALECTS, Dialect, Filled
from longwatch.learn.curriculum.heads import NoTypeError, function_name, head, parameter_name
from longwatch.learn.curriculum.literals import NoLiteralError, literal
from longwatch.learn.curriculum.shapes import Shape, shape_of
from longwatch.learn.curriculum.template import LEAST_CASES, Problem, tell_apart, telling
from longwatch.learn.sources.asking import ask
from longwatch.learn.tasks import Case, Cases, Language, OneFile


class UnsayableError(ValueError):
    """A problem that a language cannot put; the message says why, for all such problems alike."""


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """What a task of a problem has in one language."""

    entry_point: str
    prompt: str
    tests: Cases | OneFile
    reference: str


def put(problem: Problem, cases: Sequence[Case], language: Language) -> Put:
    """Put a problem in a language of the table.

    Raises:
        UnsayableError: too few of its values are values of that language, or it has no reference there.
    """
    dialect = DIALECTS[language]
    entry = function_name(dialect, problem.name)
    code = problem.references.get(dialect.like or language)
    if code is None:
        raise UnsayableError(f"no reference in {language}")
    sayable = [case for case in cases if _sayable(case, dialect)]
    if not tell_apart(sayable):
        raise UnsayableError(f"fewer than {LEAST_CASES} of its calls can be written in {language}")
    try:
        asked = head(dialect, problem.name, problem.parameters, _shapes(sayable))
    except NoTypeError as error:
        raise UnsayableError(f"{error} have no type in {language}") from error
    opened = f"{asked}{dialect.opening}\n"
    return Put(
        entry_point=entry,
        prompt=ask(language, asked, _sentence(problem, dialect), _examples(sayable, entry, dialect)),
        tests=OneFile(given=f"{dialect.before}{opened}", code=_tests(sayable, entry, dialect)),
        reference=re.sub(rf"^.*\b{entry}\(.*\n", lambda _: opened, code, count=1, flags=re.MULTILINE),
    )


def _sayable(case: Case, dialect: Dialect) -> bool:
    try:
        literal([*case.arguments], dialect.literals)
        literal(case.expected, dialect.literals)
    except NoLiteralError:
        return False
    return True


def _shapes(cases: Sequence[Case]) -> list[Shape]:
    columns = zip(*(case.arguments for case in cases), strict=True)
    return [*map(shape_of, columns), shape_of(case.expected for case in cases)]


def _sentence(problem: Problem, dialect: Dialect) -> str:
    """The sentence with the parameters' own names in it."""
    said = problem.sentence
    for name in problem.parameters:
        said = said.replace(f"`{name}`", f"`{parameter_name(dialect, name)}`")
    return said


def _arguments(case: Case, dialect: Dialect) -> str:
    return ", ".join(literal(argument, dialect.literals) for argument in case.arguments)


def _examples(cases: Iterable[Case], entry: str, dialect: Dialect) -> list[str]:
    return [
        f"`{entry}({_arguments(case, dialect)})` returns `{literal(case.expected, dialect.literals)}`"
        for case in telling(cases)
    ]


def _tests(cases: Iterable[Case], entry: str, dialect: Dialect) -> str:
    checks = (
        Filled(dialect.check).substitute(
            name=entry,
            arguments=_arguments(case, dialect),
            expected=literal(case.expected, dialect.literals),
        )
        for case in cases
    )
    return Filled(dialect.tests).substitute(name=entry, checks="\n".join(checks)).lstrip("\n")
