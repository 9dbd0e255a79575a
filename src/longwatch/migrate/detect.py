"""What a repository already says about its tests, builds and linters. It reads; it runs nothing.

Only tracked files count: a check runs in a clean checkout, where nothing else is. Programs are looked for on the
search path, and in a virtual environment or `node_modules` beside the code.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from longwatch.kernel.errors import PathError
from longwatch.kernel.files import read_bounded
from longwatch.migrate.settings import Census, Check

_FILE_BYTES = 1024 * 1024
_TEST_FILES_READ = 20
_ENVIRONMENTS = (".venv", "venv")
_SCRIPTS = {
    "test": "test",
    "build": "build",
    "lint": "lint",
    "typecheck": "typecheck",
    "type-check": "typecheck",
}
_TARGETS = {"test": "test", "check": "test", "build": "build", "lint": "lint", "typecheck": "typecheck"}
_MANAGERS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_PYTHON_TEST = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")
_PYTEST_SECTION = re.compile(r"^\[(?:tool:)?pytest\]|^\[tool\.pytest", re.MULTILINE)
_RULE = re.compile(r"^([A-Za-z0-9_.%/ -]+?)[ \t]*:(?!:?:?=)", re.MULTILINE)


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A repository as the detectors see it."""

    root: Path
    files: frozenset[str]
    """Tracked paths."""
    search_path: str | None = None
    """Where programs are looked for; `None`: PATH."""

    def has(self, *names: str) -> bool:
        """True if one of these paths is tracked."""
        return not self.files.isdisjoint(names)

    def text(self, name: str) -> str:
        """Return the content of a tracked file as far as it can be read as text, else nothing."""
        if name not in self.files:
            return ""
        try:
            return read_bounded(self.root / name, _FILE_BYTES).decode("utf-8", "replace")
        except (PathError, FileNotFoundError):
            return ""

    def finds(self, program: str) -> bool:
        """True if the program can be run: on the search path, or at its own path in the repository."""
        if "/" in program:
            return (self.root / program).is_file()
        return shutil.which(program, path=self.search_path) is not None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A check that the repository suggests, and what suggests it."""

    check: Check
    because: str


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found."""

    found: tuple[Found, ...]
    share: tuple[str, ...]
    """Folders that git ignores and checks need."""
    missing: tuple[str, ...]
    """Programs that a found check runs and that are not here."""
    hints: tuple[str, ...]


def detect(repository: Repository) -> Detected:
    """Return what the repository suggests; a Makefile speaks only for kinds that nothing else covers."""
    special = tuple(one for detector in _DETECTORS for one in detector(repository))
    covered = {one.check.kind for one in special}
    found = special + tuple(one for one in _make(repository) if one.check.kind not in covered)
    programs = dict.fromkeys(one.check.argv[0] for one in found)
    return Detected(
        found=found,
        share=tuple(_shared(repository)),
        missing=tuple(program for program in programs if not repository.finds(program)),
        hints=tuple(_hints(repository)),
    )


def _python(repository: Repository) -> Iterator[Found]:
    tests = sorted(name for name in repository.files if _PYTHON_TEST.fullmatch(PurePosixPath(name).name))
    configured = _pytest_configuration(repository)
    pytest = _pytest_program(repository)
    if configured or (tests and repository.finds(pytest)):
        check = Check(name="pytest", argv=(pytest, "-q"), census=Census.PYTEST)
        yield Found(check=check, because=configured or tests[0])
    elif any("unittest" in repository.text(name) for name in tests[:_TEST_FILES_READ]):
        folder = PurePosixPath(tests[0]).parts[0] if "/" in tests[0] else "."
        argv = ("python3", "-m", "unittest", "discover", "-s", folder)
        yield Found(check=Check(name="unittest", argv=argv, census=Census.UNITTEST), because=tests[0])


def _pytest_program(repository: Repository) -> str:
    """Prefer the virtual environment's: it has the project's own dependencies."""
    own = (f"{name}/bin/pytest" for name in _shared(repository))
    return next((program for program in own if repository.finds(program)), "pytest")


def _pytest_configuration(repository: Repository) -> str:
    """Return the file that shows that this repository uses pytest."""
    plain = [
        name
        for name in ("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py")
        if repository.has(name)
    ]
    others = ("pyproject.toml", "setup.cfg", "tox.ini")
    sections = [name for name in others if _PYTEST_SECTION.search(repository.text(name))]
    return next(iter(plain + sections), "")


def _node(repository: Repository) -> Iterator[Found]:
    try:
        package = msgspec.json.decode(repository.text("package.json") or "{}", type=_Package)
    except msgspec.DecodeError:
        return
    manager = next((program for lock, program in _MANAGERS.items() if repository.has(lock)), "npm")
    for script, kind in _SCRIPTS.items():
        command = package.scripts.get(script, "")
        if not command.strip() or "no test specified" in command:
            continue
        argv = (manager, "test") if script == "test" and manager != "bun" else (manager, "run", script)
        check = Check(name=f"{manager}-{script}", argv=argv, kind=kind)
        yield Found(check=check, because=f"package.json, script {script}")


class _Package(msgspec.Struct, frozen=True):
    scripts: dict[str, str] = {}
    dependencies: dict[str, str] = {}
    dev_dependencies: dict[str, str] = msgspec.field(default_factory=dict, name="devDependencies")


def _cargo(repository: Repository) -> Iterator[Found]:
    if repository.has("Cargo.toml"):
        check = Check(name="cargo-test", argv=("cargo", "test", "--offline"), census=Census.CARGO)
        yield Found(check=check, because="Cargo.toml")


def _go(repository: Repository) -> Iterator[Found]:
    if repository.has("go.mod"):
        test = Check(name="go-test", argv=("go", "test", "./..."), census=Census.GO)
        yield Found(check=test, because="go.mod")
        yield Found(check=Check(name="go-vet", argv=("go", "vet", "./..."), kind="lint"), because="go.mod")


_DETECTORS: tuple[Callable[[Repository], Iterator[Found]], ...] = (_python, _node, _cargo, _go)


def _make(repository: Repository) -> Iterator[Found]:
    file = next((name for name in ("GNUmakefile", "makefile", "Makefile") if repository.has(name)), "")
    targets = {word for rule in _RULE.findall(repository.text(file)) for word in rule.split()}
    kinds: set[str] = set()
    for target, kind in _TARGETS.items():
        if target in targets and kind not in kinds:
            kinds.add(kind)
            check = Check(name=f"make-{target}", argv=("make", target), kind=kind)
            yield Found(check=check, because=f"{file}, target {target}")


def _shared(repository: Repository) -> Iterator[str]:
    for name in _ENVIRONMENTS:
        if _is_private_folder(repository, name) and (repository.root / name / "pyvenv.cfg").is_file():
            yield name
    if _is_private_folder(repository, "node_modules"):
        yield "node_modules"


def _is_private_folder(repository: Repository, name: str) -> bool:
    path = repository.root / name
    tracked = any(file.startswith(f"{name}/") for file in repository.files)
    return path.is_dir() and not path.is_symlink() and not tracked


def _hints(repository: Repository) -> Iterator[str]:
    if repository.has("package.json") and not (repository.root / "node_modules").is_dir():
        yield (
            "There is no node_modules: install the packages, and name the folder in [sandbox] share; checks have no network."
        )
    if "enable_testing" in repository.text("CMakeLists.txt"):
        yield (
            "CMakeLists.txt enables tests: write a script that configures, builds and runs ctest --output-on-failure, and make "
            'it a check, like argv = ["sh", "tools/test.sh"] with census = "ctest".'
        )
