"""Which assertions of a Python function can be reached and can fail. Pure."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

_ASSERTING = re.compile(
    r"_?(?:assert|expect|should|check|verify|ensure|fail|must|raises|warns|deprecated_call)", re.IGNORECASE
)
_ENDING = re.compile(r"(?:pytest\.(?:skip|exit|xfail)|self\.skipTest|(?:sys\.|os\.)?_?exit|quit|skip|xfail)")
_SWALLOWED = frozenset({"AssertionError", "Exception", "BaseException", "Failed", "pytest.fail.Exception"})
_SUPPRESSING = re.compile(r"(?:contextlib\.)?suppress|(?:pytest\.)?raises|self\.assertRaises\w*")
Body = Sequence[ast.stmt]
Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Assertion(msgspec.Struct, frozen=True):
    """One thing that a function proves. `guards` counts the conditions, loops and inner functions around it."""

    text: str
    guards: int
    effective: bool
    """False where it can't be reached or its failure is swallowed."""


def assertions_of(body: Body, constants: Mapping[str, ast.expr]) -> tuple[Assertion, ...]:
    """Return what a body asserts, in order, with literals in the place of the names that hold them."""
    return tuple(_Collector(constants).of(body))


def awaited(value: ast.expr) -> ast.expr:
    """Return the expression without its `await`."""
    return value.value if isinstance(value, ast.Await) else value


def is_literal(value: ast.expr) -> bool:
    """True if the expression is made of constants alone."""
    allowed = (
        ast.Constant,
        ast.List,
        ast.Tuple,
        ast.Set,
        ast.Dict,
        ast.UnaryOp,
        ast.unaryop,
        ast.expr_context,
    )
    return all(isinstance(node, allowed) for node in ast.walk(value))


def never(test: ast.expr) -> bool:
    """True if the condition can be seen to be false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return always(test.operand)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(never(value) for value in test.values)
    if isinstance(test, ast.Name | ast.Attribute):
        return ast.unparse(test).rpartition(".")[2] == "TYPE_CHECKING"
    return is_literal(test) and not _truth(test)


def always(test: ast.expr) -> bool:
    """True if the condition can be seen to be true."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return never(test.operand)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(always(value) for value in test.values)
    return is_literal(test) and _truth(test)


def _truth(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return bool(value.value)
    if isinstance(value, ast.Dict):
        return bool(value.keys)
    return bool(value.elts) if isinstance(value, ast.List | ast.Tuple | ast.Set) else True


class _Inliner(ast.NodeTransformer):
    """Puts literals in the place of the names that hold them."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._constants.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


class _Collector:
    """Walks a body in order and keeps account of what can be reached."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self._constants = constants

    def of(self, body: Body, guards: int = 0, *, effective: bool = True) -> Iterator[Assertion]:
        """Yield the assertions of a block."""
        for statement in body:
            yield from self._statement(statement, guards, effective=effective)
            effective = effective and not _ends(statement)

    def _statement(self, statement: ast.stmt, guards: int, *, effective: bool) -> Iterator[Assertion]:
        if isinstance(statement, ast.Assert):
            yield self._assertion("assert " + self._text(statement.test), guards, effective=effective)
        elif isinstance(statement, ast.If | ast.While):
            test = statement.test
            more = 0 if always(test) and isinstance(statement, ast.If) else 1
            yield from self.of(statement.body, guards + more, effective=effective and not never(test))
            yield from self.of(statement.orelse, guards + 1, effective=effective and not always(test))
        elif isinstance(statement, ast.For | ast.AsyncFor):
            empty = is_literal(statement.iter) and not _truth(statement.iter)
            yield from self.of(statement.body, guards + 1, effective=effective and not empty)
            yield from self.of(statement.orelse, guards, effective=effective)
        elif isinstance(statement, ast.Try | ast.TryStar):
            yield from self._try(statement, guards, effective=effective)
        elif isinstance(statement, ast.With | ast.AsyncWith):
            yield from self._with(statement, guards, effective=effective)
        elif isinstance(statement, Definition):
            yield from self.of(statement.body, guards + 1, effective=effective)
        elif isinstance(statement, ast.ClassDef):
            yield from self.of(statement.body, guards, effective=effective)
        elif isinstance(statement, ast.Match):
            for case in statement.cases:
                yield from self.of(case.body, guards + 1, effective=effective)
        else:
            yield from self._simple(statement, guards, effective=effective)

    def _try(self, statement: ast.Try | ast.TryStar, guards: int, *, effective: bool) -> Iterator[Assertion]:
        swallows = any(_swallows(handler) for handler in statement.handlers)
        yield from self.of(statement.body, guards, effective=effective and not swallows)
        for handler in statement.handlers:
            yield from self.of(handler.body, guards + 1, effective=effective)
        yield from self.of(statement.orelse, guards + bool(statement.handlers), effective=effective)
        yield from self.of(statement.finalbody, guards, effective=effective)

    def _with(
        self, statement: ast.With | ast.AsyncWith, guards: int, *, effective: bool
    ) -> Iterator[Assertion]:
        contexts = [item.context_expr for item in statement.items]
        for context in contexts:
            if _asserts(context):
                yield self._assertion("with " + self._text(context), guards, effective=effective)
        swallows = any(_suppresses(context) for context in contexts)
        yield from self.of(statement.body, guards, effective=effective and not swallows)

    def _simple(self, statement: ast.stmt, guards: int, *, effective: bool) -> Iterator[Assertion]:
        if isinstance(statement, ast.Raise):
            if statement.exc is not None and "AssertionError" in ast.unparse(statement.exc):
                yield self._assertion(ast.unparse(statement), guards, effective=effective)
        elif any(_asserts(node) for node in ast.walk(statement)):
            yield self._assertion(self._text(statement), guards, effective=effective)

    def _assertion(self, text: str, guards: int, *, effective: bool) -> Assertion:
        return Assertion(text, guards, effective)

    def _text(self, node: ast.stmt | ast.expr) -> str:
        # A round trip through text is a copy: the tree itself stays as it was read.
        copy = ast.parse(ast.unparse(node))
        return ast.unparse(_Inliner(self._constants).visit(copy))


def _asserts(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    name = (
        function.attr
        if isinstance(function, ast.Attribute)
        else function.id
        if isinstance(function, ast.Name)
        else ""
    )
    return _ASSERTING.match(name) is not None


def _ends(statement: ast.stmt) -> bool:
    """True if nothing behind it in the same block is reached."""
    if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.If):
        taken = statement.body if always(statement.test) else ()
        both = bool(statement.orelse) and _block_ends(statement.body) and _block_ends(statement.orelse)
        return _block_ends(taken) or both
    if isinstance(statement, ast.With | ast.AsyncWith):
        catches = any(_catches(item.context_expr) for item in statement.items)
        return not catches and _block_ends(statement.body)
    if isinstance(statement, ast.Try | ast.TryStar):
        return _block_ends(statement.finalbody) or (not statement.handlers and _block_ends(statement.body))
    if isinstance(statement, ast.While):
        return always(statement.test) and not any(isinstance(node, ast.Break) for node in ast.walk(statement))
    value = awaited(statement.value) if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and _ENDING.fullmatch(ast.unparse(value.func)) is not None


def _block_ends(body: Body) -> bool:
    return any(_ends(statement) for statement in body)


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = "BaseException" if handler.type is None else ast.unparse(handler.type)
    names = {name.strip() for name in caught.strip("()").split(",")}
    return bool(names & _SWALLOWED) and not any(isinstance(node, ast.Raise) for node in ast.walk(handler))


def _catches(context: ast.expr) -> bool:
    return isinstance(context, ast.Call) and _SUPPRESSING.fullmatch(ast.unparse(context.func)) is not None


def _suppresses(context: ast.expr) -> bool:
    if not isinstance(context, ast.Call) or not _catches(context):
        return False
    caught = {
        name.strip() for argument in context.args for name in ast.unparse(argument).strip("()").split(",")
    }
    return bool(caught & (_SWALLOWED - {"Exception", "BaseException"})) or (
        ast.unparse(context.func).endswith("suppress") and bool(caught & _SWALLOWED)
    )
