"""Templates composed of a source of items and three steps: keep, each, finish. Pure.

The steps are shared by all families, so what is learnt in one helps in another; a composition of steps is on one
side of the split in every family.
"""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from string import Template as Text

import msgspec

from longwatch.learn.curriculum.parts import (
    NUMBER_EACHES,
    NUMBER_FINISHES,
    NUMBER_KEEPS,
    WORD_EACHES,
    WORD_KEEPS,
    Each,
    Finish,
    Keep,
)
from longwatch.learn.curriculum.solutions import table
from longwatch.learn.curriculum.solutions.solution import Parts
from longwatch.learn.curriculum.template import Arguments, Constants, Problem, Template, camel
from longwatch.learn.curriculum.words import CHARACTER_EACHES, CHARACTER_KEEPS, TEXT_FINISHES
from longwatch.learn.splits import side_of
from longwatch.learn.tasks import Json, Language

_KEEPS = {"number": NUMBER_KEEPS, "word": WORD_KEEPS, "character": CHARACTER_KEEPS}
_EACHES = {"number": NUMBER_EACHES, "word": WORD_EACHES, "character": CHARACTER_EACHES}
_RANDOM_CALLS = 7


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pipeline's items come from."""

    family: str
    name: str
    cost: int
    """0: the items are there; 1: they have to be made; 2: that takes some thought."""
    kind: str
    """`number`, `word` or `character`."""
    noun: str
    where: str
    about: str = ""
    """A sentence about the parameters, where their names do not say it."""
    parameters: tuple[str, ...]
    item: str
    """The variable's name."""
    python: str
    javascript: str
    data: Callable[[Random], Arguments]
    edges: tuple[Arguments, ...]
    python_helper: str = ""
    javascript_helper: str = ""
    without: frozenset[str] = frozenset()
    """Names of steps that make no sense here."""


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with the items."""

    keep: Keep | None
    each: Each | None
    finish: Finish

    @property
    def name(self) -> str:
        """Tells one composition from every other."""
        return "-".join(
            [*(part.name for part in (self.keep, self.each) if part is not None), self.finish.name]
        )


def templates(items: Items) -> Iterator[Template]:
    """Every composition over these items, except those that do nothing."""
    for keep in (None, *_KEEPS[items.kind]):
        for each in (None, *_EACHES[items.kind]):
            for finish in _finishes(items, each):
                steps = Steps(keep=keep, each=each, finish=finish)
                if _sensible(items, steps):
                    yield _template(items, steps)


def _finishes(items: Items, each: Each | None) -> tuple[Finish, ...]:
    return NUMBER_FINISHES if _gives(items, each) == "number" else TEXT_FINISHES


def _gives(items: Items, each: Each | None) -> str:
    return each.gives if each else items.kind


def _sensible(items: Items, steps: Steps) -> bool:
    if set(steps.name.split("-")) & items.without or (steps.each is not None and steps.finish.plain):
        return False
    does_little = steps.finish.name == "list" or steps.finish.plain
    return steps.keep is not None or steps.each is not None or not does_little


def _template(items: Items, steps: Steps) -> Template:
    keep, each = steps.keep, steps.each
    weight = items.cost + (keep is not None) + (each is not None) + (steps.finish.name != "list")
    return Template(
        family=items.family,
        name=f"{items.name}.{steps.name}",
        level=1 if weight <= 2 else min(weight - 1, 3),
        split=side_of(f"{items.kind}.{steps.name}"),
        space={name: part.constants for name, part in (("k", keep), ("m", each)) if part and part.constants},
        build=partial(_build, items, steps),
    )


def _build(items: Items, steps: Steps, constants: Constants, random: Random) -> Problem:
    names = [*reversed(steps.name.split("-")), items.name]
    name = "_".join(names[: random.randint(2, len(names))])
    return Problem(
        name=name,
        parameters=items.parameters,
        sentence=_sentence(items, steps, constants, random),
        references={
            Language.PYTHON: _python(items, steps, constants, name),
            Language.JAVASCRIPT: _javascript(items, steps, constants, camel(name)),
            **table.composed(name, items.parameters, _parts(items, steps), constants),
        },
        calls=tuple(items.data(random) for _ in range(_RANDOM_CALLS)) + items.edges,
    )


def _parts(items: Items, steps: Steps) -> Parts:
    return Parts(
        items=f"{items.family}.{items.name}",
        item=items.item,
        kind=items.kind,
        keep=steps.keep.name if steps.keep else "",
        each=steps.each.name if steps.each else "",
        gives="number" if _gives(items, steps.each) == "number" else "text",
        finish=steps.finish.name,
    )


def _sentence(items: Items, steps: Steps, constants: Constants, random: Random) -> str:
    style = random.choice((_nested, _taken, _gone_through))
    values = {name: _said(value) for name, value in constants.items()}
    return Text(f"{style(items, steps)} {items.about}".strip()).substitute(values)


def _nested(items: Items, steps: Steps) -> str:
    kept = f"the {items.noun} {items.where}" + (f" {steps.keep.words}" if steps.keep else "")
    made = f"{steps.each.noun} {kept}" if steps.each else kept
    return "Return " + Text(steps.finish.noun).safe_substitute(i=made) + "."


def _taken(items: Items, steps: Steps, start: str = "Take") -> str:
    parts = [f"keep only those {steps.keep.words}"] if steps.keep else []
    parts += [steps.each.verb] if steps.each else []
    return f"{start} the {items.noun} {items.where}, {', '.join([*parts, f'and {steps.finish.verb}'])}."


def _gone_through(items: Items, steps: Steps) -> str:
    return _taken(items, steps, "Go through")


def _said(value: Json) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _code(constants: Constants) -> dict[str, str]:
    """Constants as they are written in both languages."""
    return {name: msgspec.json.encode(value).decode() for name, value in constants.items()}


def _python(items: Items, steps: Steps, constants: Constants, name: str) -> str:
    generator, listed = _python_items(items, steps)
    body = Text(steps.finish.python).safe_substitute(g=generator, l=listed)
    body = Text(body).substitute(_code(constants), x=items.item)
    helper = "".join(f"    {line}\n" for line in items.python_helper.splitlines())
    return f"def {name}({', '.join(items.parameters)}):\n{helper}    {body}\n"


def _python_items(items: Items, steps: Steps) -> tuple[str, str]:
    """The results as what a generator's brackets hold, and as a list."""
    source = items.python
    if steps.keep is None and steps.each is None:
        return source, source if source.startswith("[") else f"list({source})"
    made = steps.each.python if steps.each else "$x"
    condition = f" if {steps.keep.python}" if steps.keep else ""
    generator = f"{made} for {items.item} in {source}{condition}"
    return generator, f"[{generator}]"


def _javascript(items: Items, steps: Steps, constants: Constants, name: str) -> str:
    array = items.javascript
    array += f".filter({items.item} => {steps.keep.javascript})" if steps.keep else ""
    array += f".map({items.item} => {steps.each.javascript})" if steps.each else ""
    body = Text(steps.finish.javascript).safe_substitute(a=array)
    body = Text(body).substitute(_code(constants), x=items.item)
    helper = "".join(f"  {line}\n" for line in items.javascript_helper.splitlines())
    return f"function {name}({', '.join(items.parameters)}) {{\n{helper}  {body}\n}}\n"
