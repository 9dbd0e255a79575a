"""What functions and their parameters are called in a language, and how their definition begins. Pure."""

from collections.abc import Sequence

from longwatch.learn.curriculum.dialects import Dialect, Filled, Types
from longwatch.learn.curriculum.shapes import Shape
from longwatch.learn.curriculum.template import camel


class NoTypeError(ValueError):
    """Values that have no common type in a language."""


def function_name(dialect: Dialect, name: str) -> str:
    """The name of a function, given in snake case."""
    return camel(name) if dialect.camel else name


def parameter_name(dialect: Dialect, name: str) -> str:
    """The name of a parameter as it stands in code."""
    return f"{dialect.sigil}{name}_" if name in dialect.reserved else f"{dialect.sigil}{name}"


def head(dialect: Dialect, name: str, parameters: Sequence[str], shapes: Sequence[Shape] = ()) -> str:
    """What a definition begins with. `shapes` are those of the parameters and of the result, for a language with types.

    Raises:
        NoTypeError: one of them has no name in this language.
    """
    *taken, returned = [_type(dialect.types, shape) for shape in shapes] or [""] * (len(parameters) + 1)
    shown = (
        Filled(dialect.parameter).substitute(name=parameter_name(dialect, parameter), type=kind)
        for parameter, kind in zip(parameters, taken, strict=True)
    )
    return Filled(dialect.head).substitute(
        name=function_name(dialect, name), parameters=", ".join(shown), returns=returned
    )


def _type(types: Types | None, shape: Shape) -> str:
    if types is None:
        return ""
    if shape.of is not None:
        return (types.list_of if shape.kind == "list" else types.dict_of).format(_type(types, shape.of))
    if shape.kind not in types.names:
        raise NoTypeError(f"{shape.kind} values")
    return types.names[shape.kind]
