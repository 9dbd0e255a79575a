"""The references of all languages of `dialects` that are not derived from JavaScript's."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from longwatch.learn.curriculum import heads
from longwatch.learn.curriculum.dialects import DIALECTS, Dialect, Filled
from longwatch.learn.curriculum.literals import literal
from longwatch.learn.curriculum.solutions import lua, php, ruby
from longwatch.learn.curriculum.solutions.solution import Parts, Solutions, body, indented
from longwatch.learn.curriculum.template import Constants
from longwatch.learn.grading.languages import NAME, SCRIPTS
from longwatch.learn.tasks import Language

SOLUTIONS: Mapping[Language, Solutions] = {
    Language.RUBY: ruby.SOLUTIONS,
    Language.PHP: php.SOLUTIONS,
    Language.LUA: lua.SOLUTIONS,
}
_HERE = Path(__file__).parent


def classic(name: str, constants: Constants) -> dict[Language, str]:
    """Return a function that is written by hand in each language that has it; `name` in snake case."""
    found = {}
    for language in SOLUTIONS:
        code = _classics(language).get(heads.function_name(DIALECTS[language], name))
        if code is not None:
            found[language] = Filled(code).substitute(_code(language, constants))
    return found


def composed(name: str, parameters: Sequence[str], parts: Parts, constants: Constants) -> dict[Language, str]:
    """Return a composed function in each language in which it can be had; `name` in snake case."""
    found = {}
    for language, solutions in SOLUTIONS.items():
        lines = body(solutions, _own(DIALECTS[language], parts), _code(language, constants))
        if lines is not None:
            found[language] = _function(language, name, parameters, lines)
    return found


def _own(dialect: Dialect, parts: Parts) -> Parts:
    return msgspec.structs.replace(parts, item=heads.parameter_name(dialect, parts.item))


def _code(language: Language, constants: Constants) -> dict[str, str]:
    return {name: literal(value, DIALECTS[language].literals) for name, value in constants.items()}


def _function(language: Language, name: str, parameters: Sequence[str], lines: str) -> str:
    dialect = DIALECTS[language]
    head = heads.head(dialect, name, parameters)
    return f"{head}{dialect.opening}\n{indented(lines, SOLUTIONS[language].indent)}\n{SCRIPTS[language].closer}\n"


@cache
def _classics(language: Language) -> Mapping[str, str]:
    """Return the functions that are written by hand, each with what it needs before it, by their names."""
    script = SCRIPTS[language]
    text = (_HERE / SOLUTIONS[language].classics).read_text(encoding="utf-8")
    head = re.compile(script.head.replace(NAME, r"(\w+)"), re.MULTILINE)
    found = {}
    for code in re.split(rf"(?<=\n{re.escape(script.closer)}\n)\n", text):
        outermost = next(one for one in head.finditer(code) if not one[0][0].isspace())
        found[next(name for name in outermost.groups() if name)] = code
    return found
