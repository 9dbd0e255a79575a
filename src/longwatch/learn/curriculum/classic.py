"""Templates written by hand: one function in each language, with constants marked `$k` and the like."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from string import Template as Text

import msgspec

from longwatch.learn.curriculum.solutions import table
from longwatch.learn.curriculum.template import Arguments, Constants, Problem, Template, side_at
from longwatch.learn.tasks import Json, Language

_SIGNATURE = re.compile(r"^def (\w+)\(([^)]*)\):", re.MULTILINE)
_RANDOM_CALLS = 6


class Classic(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, parametrised."""

    level: int
    sentence: str
    python: str
    """Its last top-level function is the entry point and gives the template its name."""
    javascript: str
    data: Callable[[Random], Arguments]
    edges: tuple[Arguments, ...] = ()
    constants: Mapping[str, tuple[Json, ...]] = {}


def templates(family: str, classics: tuple[Classic, ...]) -> tuple[Template, ...]:
    """The templates of a family, each on its side by its place."""
    return tuple(_template(family, place, classic) for place, classic in enumerate(classics))


def _template(family: str, place: int, classic: Classic) -> Template:
    return Template(
        family=family,
        name=_entry(classic)[0],
        level=classic.level,
        split=side_at(place),
        space=classic.constants,
        build=partial(_build, classic),
    )


def _entry(classic: Classic) -> tuple[str, str]:
    name, parameters = _SIGNATURE.findall(classic.python)[-1]
    return name, parameters


def _build(classic: Classic, constants: Constants, random: Random) -> Problem:
    name, parameters = _entry(classic)
    code = {key: msgspec.json.encode(value).decode() for key, value in constants.items()}
    return Problem(
        name=name,
        parameters=tuple(parameters.split(", ")),
        sentence=Text(classic.sentence).substitute(code),
        references={
            Language.PYTHON: Text(classic.python).substitute(code).strip("\n") + "\n",
            Language.JAVASCRIPT: Text(classic.javascript).substitute(code).strip("\n") + "\n",
            **table.classic(name, constants),
        },
        calls=tuple(classic.data(random) for _ in range(_RANDOM_CALLS)) + classic.edges,
    )
