"""What a Python test file asserts, read from its syntax tree. Pure; nothing of the file is run or imported."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from longwatch.migrate.checks.weakening.python_assertions import (
    Assertion,
    Body,
    Definition,
    always,
    assertions_of,
    awaited,
    is_literal,
    never,
)

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for text that is no Python, or too deep for it."""

_MOCKING = re.compile(
    r"(?:.*\.)?(?:patch(?:\.\w+)?|setattr|setitem|setenv|create_autospec|MagicMock|Mock|AsyncMock)"
)


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One function or method of a test file."""

    name: str
    """With its classes: `TestK.test_m`."""
    is_test: bool
    assertions: tuple[Assertion, ...]
    calls: tuple[str, ...]
    """The statements that call something: what a test without assertions proves."""
    body: str
    trivial: bool
    decorators: tuple[str, ...]
    parameters: Mapping[str, tuple[str, ...]]
    """Cases of `parametrize` by argument names; one case `...` where they are computed."""
    loops: tuple[str, ...]
    """Elements of literal lists that it loops over."""
    mocks: tuple[str, ...]
    form: frozenset[str]
    """`async` or `generator`: some runners never run the body of such a test."""


class Class(msgspec.Struct, frozen=True):
    """A class that holds tests, and what decides whether they are collected."""

    name: str
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    hidden: tuple[str, ...]
    """Statements that keep a runner from collecting it."""


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One test file."""

    functions: Mapping[str, Function]
    classes: Mapping[str, Class]
    hidden: tuple[str, ...]
    """Statements at the top that skip, rebind or delete tests."""


def read(text: str) -> Module:
    """Return the model. `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` where it can't be read."""
    tree = ast.parse(text)
    constants = _constants(tree.body)
    functions = {found.name: found for found in _functions(tree.body, "", constants)}
    functions["<module>"] = _function("<module>", [], [s for s in tree.body if not _defines(s)], constants)
    classes = {found.name: found for found in _classes(tree.body, "")}
    return Module(functions=functions, classes=classes, hidden=tuple(_hidden(tree.body)))


def _defines(statement: ast.stmt) -> bool:
    return isinstance(statement, Definition | ast.ClassDef | ast.Import | ast.ImportFrom)


def _functions(
    body: Body, prefix: str, constants: Mapping[str, ast.expr], *, collected: bool = True
) -> Iterator[Function]:
    for statement in _flat(body):
        if isinstance(statement, Definition):
            is_async = isinstance(statement, ast.AsyncFunctionDef)
            name = prefix + statement.name
            found = _function(name, statement.decorator_list, statement.body, constants, is_async=is_async)
            yield found if collected else msgspec.structs.replace(found, is_test=False)
        elif isinstance(statement, ast.ClassDef):
            inner = {**constants, **_constants(statement.body)}
            counts = collected and (statement.name.startswith("Test") or bool(statement.bases))
            yield from _functions(statement.body, f"{prefix}{statement.name}.", inner, collected=counts)


def _flat(body: Body) -> Iterator[ast.stmt]:
    """Yield statements, also those under an `if` or `try` that can run."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _flat(() if never(statement.test) else statement.body)
            yield from _flat(() if always(statement.test) else statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _flat(statement.body)
        else:
            yield statement


def _function(
    name: str,
    decorators: list[ast.expr],
    body: Body,
    outer: Mapping[str, ast.expr],
    *,
    is_async: bool = False,
) -> Function:
    body = _without_docstring(body)
    constants = {**outer, **_constants(body)}
    nodes = [node for statement in body for node in ast.walk(statement)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return Function(
        name=name,
        is_test=name.rpartition(".")[2].startswith("test"),
        assertions=assertions_of(body, constants),
        calls=tuple(
            ast.unparse(s)
            for s in nodes
            if isinstance(s, ast.Expr) and isinstance(awaited(s.value), ast.Call)
        ),
        body="\n".join(ast.unparse(statement) for statement in body),
        trivial=all(_is_trivial(statement) for statement in body),
        decorators=tuple(ast.unparse(decorator) for decorator in decorators),
        parameters=dict(_parameters(decorators, outer)),
        loops=tuple(_loops(nodes, constants)),
        mocks=tuple(ast.unparse(call) for call in calls if _MOCKING.fullmatch(ast.unparse(call.func))),
        form=frozenset({"async"} if is_async else ()) | frozenset({"generator"} if _yields(body) else ()),
    )


def _yields(body: Body) -> bool:
    """True if the function itself yields; what functions inside it do is theirs."""
    left: list[ast.AST] = list(body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Definition | ast.Lambda | ast.ClassDef):
            left += ast.iter_child_nodes(node)
    return False


def _without_docstring(body: Body) -> Body:
    first = body[0] if body else None
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if is_docstring else body


def _is_trivial(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assert) and always(statement.test)


def _constants(body: Body) -> dict[str, ast.expr]:
    """Return names that are assigned once, and a literal: what is compared with is part of the assertion."""
    own = [statement for statement in body if not _defines(statement)]
    names = (node for statement in own for node in ast.walk(statement) if isinstance(node, ast.Name))
    stores = Counter(name.id for name in names if not isinstance(name.ctx, ast.Load))
    found = (_assigned(statement) for statement in own)
    return {
        name: value for name, value in found if value is not None and stores[name] == 1 and is_literal(value)
    }


def _assigned(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    if (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
    ):
        return statement.targets[0].id, statement.value
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id, statement.value
    return "", None


def _parameters(
    decorators: list[ast.expr], constants: Mapping[str, ast.expr]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for decorator in decorators:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            named = {word.arg: word.value for word in decorator.keywords}
            names = decorator.args[0] if decorator.args else named.get("argnames")
            values = decorator.args[1] if len(decorator.args) > 1 else named.get("argvalues")
            if names is not None and values is not None:
                yield ast.unparse(names), _elements(values, constants)


def _elements(values: ast.expr, constants: Mapping[str, ast.expr]) -> tuple[str, ...]:
    if isinstance(values, ast.Name):
        values = constants.get(values.id, values)
    if isinstance(values, ast.List | ast.Tuple | ast.Set):
        return tuple(ast.unparse(element) for element in values.elts)
    if isinstance(values, ast.Dict):
        return tuple(
            ast.unparse(ast.Dict([key], [value]))
            for key, value in zip(values.keys, values.values, strict=True)
        )
    return (f"... {ast.unparse(values)}",)


def _loops(nodes: list[ast.AST], constants: Mapping[str, ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            iterated = node.iter
            if (
                isinstance(iterated, ast.Call)
                and isinstance(iterated.func, ast.Attribute)
                and not iterated.args
            ):
                iterated = iterated.func.value  # CASES.items()
            if not _elements(iterated, constants)[:1] or not _elements(iterated, constants)[0].startswith(
                "... "
            ):
                yield from _elements(iterated, constants)


def _classes(body: Body, prefix: str) -> Iterator[Class]:
    for statement in _flat(body):
        if isinstance(statement, ast.ClassDef):
            name = prefix + statement.name
            yield Class(
                name,
                tuple(ast.unparse(base) for base in statement.bases),
                tuple(ast.unparse(decorator) for decorator in statement.decorator_list),
                tuple(_hidden(statement.body, in_class=True)),
            )
            yield from _classes(statement.body, f"{name}.")


def _hidden(body: Body, *, in_class: bool = False) -> Iterator[str]:
    for statement in body:
        text = ast.unparse(statement) if not isinstance(statement, ast.ClassDef) else ""
        if isinstance(statement, Definition):
            if in_class and statement.name in {"__init__", "__new__", "setUpClass"} and _may_hide(statement):
                yield f"def {statement.name}"
            if statement.name == "load_tests" or statement.name.startswith("pytest_"):
                yield f"def {statement.name}"
        elif re.match(r"(?:pytestmark|__test__|collect_ignore\w*|load_tests)\b", text) or _touches_tests(
            statement, text
        ):
            yield text


def _may_hide(statement: Definition) -> bool:
    return statement.name != "setUpClass" or "skip" in ast.unparse(statement).lower()


def _touches_tests(statement: ast.stmt, text: str) -> bool:
    if isinstance(statement, ast.Assign | ast.Delete | ast.AugAssign):
        targets = [statement.target] if isinstance(statement, ast.AugAssign) else statement.targets
        names = " ".join(ast.unparse(target) for target in targets)
        return re.search(r"\b[Tt]est\w*|\b__test__\b|globals\(\)", names) is not None
    ends = re.match(
        r"(?:pytest\.(?:skip|exit|importorskip)|raise (?:unittest\.)?SkipTest|(?:sys\.|os\.)?_?exit)\b", text
    )
    return ends is not None
