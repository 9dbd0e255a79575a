"""Texts and code without what does not matter: case, punctuation, names, comments, annotations. Pure."""

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from longwatch.learn.sources.asking import without_closing
from longwatch.learn.tasks import Language

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_JAVASCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)"
    r"|(?P<name>\.?[A-Za-z_$][\w$]*)|(?P<number>\d[\d.]*)|(?P<sign>[^\s\w])",
    re.DOTALL,
)
_KEYWORDS = frozenset(
    [
        "break",
        "case",
        "catch",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "else",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "in",
        "instanceof",
        "let",
        "new",
        "null",
        "of",
        "return",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "yield",
        "Array",
        "Boolean",
        "Date",
        "Infinity",
        "JSON",
        "Map",
        "Math",
        "NaN",
        "Number",
        "Object",
        "Set",
        "String",
        "parseInt",
        "parseFloat",
    ]
)
_BOUND = "v"


def words(text: str) -> tuple[str, ...]:
    """The words of a prompt in lower case; `camelCase` and `snake_case` are two words."""
    return tuple(_WORD.findall(_HUMP.sub(" ", without_closing(text)).lower()))


@lru_cache(maxsize=8192)
def tokens(language: Language, code: str) -> tuple[str, ...]:
    """The code as a sequence in which every name that it gives itself is the same."""
    return tuple(_parts(language, code, numbered=False))


def code_key(language: Language, code: str) -> str:
    """The code as a text that is the same for the same code with other names."""
    return " ".join(_parts(language, code, numbered=True))


def parse(code: str) -> ast.Module:
    """The syntax tree of somebody else's Python, without Python's remarks on its style.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(code)


def _parts(language: Language, code: str, *, numbered: bool) -> Iterator[str]:
    if language is Language.JAVASCRIPT:
        return _javascript(code, numbered=numbered)
    if language is not Language.PYTHON:
        return iter(words(code))
    try:
        return iter(tuple(_Python(parse(code), numbered=numbered).parts()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: it is nested too deeply
        return iter(words(code))


class _Python:
    """Walks a syntax tree in the order of the text."""

    def __init__(self, tree: ast.Module, *, numbered: bool) -> None:
        self._tree, self._numbered = tree, numbered
        self._names: dict[str, str] = {}
        self._own = {name for node in ast.walk(tree) for name in _bound(node)}

    def parts(self) -> Iterator[str]:
        for statement in self._tree.body:
            if not isinstance(statement, ast.Import | ast.ImportFrom):
                yield from self._of(statement)

    def _of(self, node: ast.AST) -> Iterator[str]:
        yield type(node).__name__
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "ctx", "type_comment", "kind", "type_params"}:
                continue
            parts = value if isinstance(value, list) else [value]
            for part in _without_docstring(node, field, parts):
                yield from self._of(part) if isinstance(part, ast.AST) else self._leaf(node, field, part)

    def _leaf(self, node: ast.AST, field: str, value: object) -> Iterator[str]:
        if value is None and not isinstance(node, ast.Constant):
            return
        if field in {"value", "attr"} or not isinstance(value, str):
            yield repr(value)
        elif value not in self._own:
            yield value
        else:
            yield self._names.setdefault(value, f"{_BOUND}{len(self._names)}") if self._numbered else _BOUND


def _bound(node: ast.AST) -> Iterator[str]:
    """Names that a piece of code gives."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _without_docstring(node: ast.AST, field: str, parts: list[object]) -> list[object]:
    first = parts[0] if parts else None
    if field != "body" or not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return parts
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return parts[1:] if documented else parts


def _javascript(code: str, *, numbered: bool) -> Iterator[str]:
    names: dict[str, str] = {}
    for found in _JAVASCRIPT.finditer(code):
        name = found["name"]
        if name is None:
            part = found["text"] or found["number"] or found["sign"]
            if part and part != ";":
                yield part
        elif name.startswith(".") or name in _KEYWORDS:
            yield name
        else:
            yield names.setdefault(name, f"{_BOUND}{len(names)}") if numbered else _BOUND
