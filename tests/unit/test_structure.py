"""Rules of the house that no linter knows, held over the whole source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/longwatch"
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(), str(path)) for path in FILES}

WRITERS = {
    "kernel/files.py": "the one writer of files",
    "kernel/pump.py": "appends a child's output to its log while it runs",
    "kernel/lease.py": "opens the lease file to lock it",
    "kernel/bell.py": "rings through a FIFO",
    "kernel/cgroup.py": "sets limits in the kernel's own file system",
    "kernel/spawn.py": "sets a child's oom_score_adj in /proc",
    "learn/readiness/turns.py": "opens the lock that the watches of all users share, and signs it in place",
    "learn/student/fetch.py": "unpacks a large wheel in a stream, into a staging folder that is renamed when it is whole",
    "migrate/attempt/workers/replay_program.py": "is the worker itself, and has nothing of ours to import",
}
WRITING_METHODS = {"write_text", "write_bytes"}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"}
COPYING = {
    "shutil.copy",
    "shutil.copy2",
    "shutil.copyfile",
    "shutil.copytree",
    "shutil.move",
    "shutil.rmtree",
}


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def mode_of(call: ast.Call, position: int) -> ast.expr | None:
    named = (keyword.value for keyword in call.keywords if keyword.arg == "mode")
    return next(named, call.args[position] if len(call.args) > position else None)


def writes(call: ast.Call, name: str, constants: dict[str, ast.expr]) -> bool:
    method = name.rpartition(".")[2]
    if method in WRITING_METHODS or name in COPYING:
        return True
    if name == "os.open":
        return bool(attributes(call, constants) & WRITING_FLAGS)
    if method != "open":
        return False
    # The built-in and the module functions take the path first, a Path's method only the mode.
    mode = mode_of(call, 1 if name in {"open", "io.open", "gzip.open"} else 0)
    return (
        isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wax+"))
    )


def attributes(node: ast.AST, constants: dict[str, ast.expr]) -> set[str]:
    """The names of all attributes in an expression, those behind names that the module assigns included."""
    inner = list(ast.walk(node))
    names = {part.id for part in inner if isinstance(part, ast.Name)} & constants.keys()
    deeper = {name: value for name, value in constants.items() if name not in names}
    behind = [attributes(constants[name], deeper) for name in names]
    return {part.attr for part in inner if isinstance(part, ast.Attribute)}.union(*behind)


def assigned(tree: ast.AST) -> dict[str, ast.expr]:
    return {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def places(tree: ast.AST) -> list[int]:
    constants = assigned(tree)
    return [call.lineno for call, name in calls(tree) if writes(call, name, constants)]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("open(p, 'w')", True),
        ("open(p, mode='ab')", True),
        ("p.open('r+')", True),
        ("p.write_text('')", True),
        ("os.open(p, os.O_WRONLY | os.O_CREAT)", True),
        ("FLAGS = os.O_CREAT\nMORE = FLAGS | os.O_EXCL\nos.open(p, MORE)", True),
        ("FLAGS = os.O_RDONLY | os.O_CLOEXEC\nos.open(p, FLAGS)", False),
        ("shutil.rmtree(p)", True),
        ("open(p)", False),
        ("p.open('rb')", False),
        ("os.open(p, os.O_RDONLY)", False),
        ("files.replace(p, b'')", False),
        ("webbrowser.open(url)", False),
    ],
)
def test_the_search_for_writers_can_find_one(code: str, found: bool) -> None:
    assert bool(places(ast.parse(code))) is found


@pytest.mark.parametrize("name", [name for name in TREES if name not in WRITERS])
def test_files_are_written_through_the_one_writer(name: str) -> None:
    assert [f"{name}:{line}" for line in places(TREES[name])] == [], "use longwatch.kernel.files"


def test_each_exception_of_the_writers_is_still_needed() -> None:
    assert [name for name in WRITERS if not places(TREES[name])] == []


def swallows(handler: ast.ExceptHandler) -> bool:
    """True if it takes any exception and then does nothing about it."""
    caught = ast.unparse(handler.type) if handler.type else "BaseException"
    idle = all(
        isinstance(statement, ast.Pass | ast.Continue | ast.Break)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in handler.body
    )
    return bool(re.search(r"\b(Base)?Exception\b", caught)) and idle


def test_the_search_for_swallowed_errors_can_find_one() -> None:
    sources = ("except Exception: pass", "except: ...", "except (ValueError, BaseException): continue")
    handlers = [ast.parse(f"while 1:\n try: x\n {source}") for source in sources]

    assert all(any(map(swallows, handlers_of(tree))) for tree in handlers)


def handlers_of(tree: ast.AST) -> Iterator[ast.ExceptHandler]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))


@pytest.mark.parametrize("name", TREES)
def test_no_error_is_swallowed(name: str) -> None:
    assert [f"{name}:{handler.lineno}" for handler in handlers_of(TREES[name]) if swallows(handler)] == []
    suppressed = [
        f"{name}:{call.lineno}"
        for call, function in calls(TREES[name])
        if function in {"suppress", "contextlib.suppress"}
        and any(ast.unparse(argument) in {"Exception", "BaseException"} for argument in call.args)
    ]
    assert suppressed == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_module_is_longer_than_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_is_left_to_do_and_each_exception_has_its_reason(path: Path) -> None:
    text = path.read_text()

    assert re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", text) == []
    assert [
        line
        for line in text.splitlines()
        if "# noqa" in line and not re.search(r"# noqa: [A-Z0-9, ]+ - \w", line)
    ] == []


@pytest.mark.parametrize("path", sorted((ROOT / "docs/spec").glob("*.md")), ids=lambda path: path.name)
def test_every_behaviour_has_one_id(path: Path) -> None:
    ids = re.findall(r"^- ([A-Z]\d+[a-z]?) ", path.read_text(), re.MULTILINE)

    assert ids
    assert len(ids) == len(set(ids))
