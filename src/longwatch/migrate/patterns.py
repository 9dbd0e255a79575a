"""Which path is what: git-style globs, the built-in lists, and who may change a path. Pure.

A pattern is a path below the repository's root. `*` and `?` stay inside a folder, `**` crosses folders, a pattern
without a slash matches a name in any folder, one that ends in a slash everything below that folder. A pattern that
matches a folder matches everything below it. `/name` means the root's own `name`. As in a `.gitignore`, except that
there is no negation and no escape: a pattern that an author would read differently is refused.
"""

import re
import unicodedata
from functools import lru_cache

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.settings import Repository

TEST_FILES = (
    *(
        "test/**",
        "tests/**",
        "Test/**",
        "Tests/**",
        "**/test/**",
        "**/tests/**",
        "**/__tests__/**",
        "**/spec/**",
    ),
    *("**/specs/**", "**/testing/**", "**/testdata/**", "**/fixtures/**", "**/src/test/**", "**/t/*.t"),
    *("test_*.py", "*_test.py", "*_tests.py", "tests.py", "conftest.py", "*.doctest"),
    *("*.test.*", "*.spec.*", "*-test.js", "*-test.ts", "*.snap", "**/__snapshots__/**", "**/__mocks__/**"),
    *("*_test.go", "*_test.rs", "tests.rs", "*_spec.rb", "*_test.rb", "test_*.rb", "*Test.php", "*_test.exs"),
    *(
        "*Test.java",
        "*Tests.java",
        "*IT.java",
        "*Test.kt",
        "*Test.scala",
        "*Spec.scala",
        "*Tests.cs",
        "*Test.cs",
    ),
    *(
        "*_test.c",
        "*_test.cc",
        "*_test.cpp",
        "test_*.c",
        "test_*.cc",
        "test_*.cpp",
        "*_test.dart",
        "*Tests.swift",
    ),
)
"""Where the known test runners look for tests, and what their tests compare with."""

PROTECTED = (
    "longwatch.toml",
    *(
        "Makefile",
        "GNUmakefile",
        "*.mk",
        "CMakeLists.txt",
        "CMakePresets.json",
        "*.cmake",
        "build.ninja",
        "justfile",
    ),
    *(
        ".github/**",
        ".gitlab-ci.yml",
        ".gitlab/**",
        ".ci/**",
        ".circleci/**",
        ".buildkite/**",
        ".woodpecker/**",
    ),
    *(
        "Jenkinsfile",
        "azure-pipelines.yml",
        ".travis.yml",
        "appveyor.yml",
        ".pre-commit-config.yaml",
        "codecov.yml",
    ),
    *(
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "noxfile.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.toml",
        "unittest.cfg",
        "conftest.py",
    ),
    *(
        ".coveragerc",
        "mypy.ini",
        ".mypy.ini",
        "ruff.toml",
        ".ruff.toml",
        ".flake8",
        "pyrightconfig.json",
        ".pylintrc",
    ),
    # What Python loads in the place of the source beside it, or because it lies on its path.
    *("*.pyc", "__pycache__", "*.dist-info", "*.egg-info", ".venv", "venv"),
    *("sitecustomize.py", "usercustomize.py", "*.pth", "requirements*.txt", "constraints*.txt", "Pipfile"),
    *(
        "*.lock",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "pnpm-lock.yaml",
        "bun.lockb",
        "go.sum",
        "gradle.lockfile",
    ),
    *(
        "package.json",
        "pnpm-workspace.yaml",
        ".pnpmfile.cjs",
        ".pnp.*",
        "node_modules",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".yarn/**",
    ),
    *("bunfig.toml", "deno.json", "deno.jsonc", ".nvmrc", ".node-version", ".tool-versions", "mise.toml"),
    *("jest.config.*", "jest.setup.*", "vitest.config.*", "vitest.workspace.*", "vite.config.*", ".mocharc*"),
    *(
        "karma.conf.*",
        "playwright.config.*",
        "cypress.config.*",
        "babel.config.*",
        ".babelrc*",
        "ava.config.*",
    ),
    *(
        "eslint.config.*",
        ".eslintrc*",
        ".prettierrc*",
        "prettier.config.*",
        "biome.json",
        "tsconfig*.json",
        ".swcrc",
    ),
    *(
        "Cargo.toml",
        "build.rs",
        ".cargo/**",
        "rust-toolchain",
        "rust-toolchain.toml",
        "clippy.toml",
        "rustfmt.toml",
    ),
    *("go.mod", "go.work", "build.gradle*", "settings.gradle*", "gradle.properties", "gradle/**", "gradlew*"),
    *("pom.xml", ".mvn/**", "mvnw*", "build.sbt", "build.xml", "*.csproj", "*.sln", "Directory.Build.*"),
    *(
        "Gemfile",
        "Rakefile",
        ".rspec",
        ".rubocop.yml",
        "composer.json",
        "phpunit.xml*",
        "mix.exs",
        "Package.swift",
    ),
    *(
        ".gitattributes",
        ".gitmodules",
        ".gitignore",
        ".envrc",
        ".env",
        ".vscode/**",
        ".idea/**",
        ".devcontainer/**",
    ),
    *("Dockerfile*", "docker-compose*.yml", "compose.yaml"),
)
"""What decides how the change is judged or what runs by itself on somebody's machine.

`.gitignore` is one of them: an ignored file is a file that no diff shows. The configuration may allow single entries
by name (`changeable`), a card may own single files by their exact path.
"""

_GIT_SHORT_NAMES = re.compile(r"git~\d+")
_IGNORABLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff\u00ad]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Patterns:
    """A set of globs. A malformed one is a `ConfigError` that names it."""

    def __init__(self, patterns: tuple[str, ...], paths: frozenset[str] = frozenset()) -> None:
        """`paths` are matched as they are: a set of many is quick where as many patterns are not."""
        self._patterns, self._paths = patterns, paths
        self._match = _compiled(patterns)

    def matches(self, path: str) -> bool:
        """True if a pattern matches the path or a folder that it lies in. Exact in case and in Unicode form."""
        return path in self._paths or self._match.fullmatch(path) is not None

    def with_paths(self, paths: frozenset[str]) -> "Patterns":
        """Return these patterns with further paths."""
        return Patterns(self._patterns, self._paths | paths)

    def __repr__(self) -> str:
        return f"Patterns({self._patterns!r})"


def protected_patterns(repository: Repository) -> Patterns:
    """Return what the worker must not touch: the built-in patterns less `changeable`, the configured ones, the cards.

    They match the folded form of a path: `MAKEFILE` is `Makefile` on a file system that ignores case.
    """
    unknown = sorted(set(repository.changeable) - set(PROTECTED))
    if unknown:
        raise ConfigError(
            f"longwatch.toml: [repository] changeable names {', '.join(unknown)}, which is no built-in protected "
            "pattern; a single file is allowed by naming its exact path in a card's `owned`"
        )
    built_in = (pattern for pattern in PROTECTED if pattern not in repository.changeable)
    cards = "/" + repository.tasks.strip("/") + "/"
    # The watch's own file can never be made changeable by itself.
    return Patterns(
        tuple(fold(pattern) for pattern in ("longwatch.toml", *built_in, *repository.protected, cards))
    )


def patterns_of_tests(repository: Repository) -> Patterns:
    """Return what counts as a test file: the configured patterns, else the built-in ones."""
    return Patterns(repository.tests or TEST_FILES)


def fold(path: str) -> str:
    """Return the name under which forgiving file systems (HFS+, NTFS) would find the same file.

    Case and compatibility forms go, invisible code points go, and so do trailing dots, blanks and NTFS streams.
    """
    visible = _IGNORABLE.sub("", unicodedata.normalize("NFKC", path)).casefold()
    return "/".join(_plain(component) for component in visible.split("/"))


def _plain(component: str) -> str:
    return component.partition(":")[0].rstrip(". ") if component not in {".", ".."} else component


def unsafe(path: str) -> str | None:
    """Return why nobody may write this path, whatever is owned; `None` if its form is harmless."""
    if not path or path.startswith("/") or _CONTROL.search(path) or "\\" in path:
        return f"{path!r} is no plain path below the repository's root"
    for component in path.split("/"):
        if component in {"", ".", ".."}:
            return f"{path!r} has the component {component!r}; write it without"
        if _is_git(component):
            return f"{path!r} reaches into the git folder"
        if component != component.rstrip(". ") or ":" in component:
            return f"{path!r} has a name that another file system reads as a different one"
    return None


def _is_git(component: str) -> bool:
    folded = _plain(_IGNORABLE.sub("", unicodedata.normalize("NFKC", component)).casefold())
    return folded == ".git" or _GIT_SHORT_NAMES.fullmatch(folded) is not None


def refusal(path: str, owned: tuple[str, ...], protected: Patterns) -> str | None:
    """Return why a change of this path isn't the worker's to make; `None` if it is.

    A protected path may change only if the card owns it by its exact name; any other must match an owned pattern. A
    card that owns nothing by name owns everything that isn't protected. `protected` is `protected_patterns(...)`.
    """
    reason = unsafe(path)
    if reason is not None or path in owned:
        return reason
    if protected.matches(fold(path)):
        return f"{path} is protected; a card may own it only by its exact path"
    if owned and not Patterns(owned).matches(path):
        return f"{path} lies outside the owned paths ({', '.join(owned)})"
    return None


def may_change(path: str, owned: tuple[str, ...], protected: Patterns) -> bool:
    """True if `refusal` has no objection."""
    return refusal(path, owned, protected) is None


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    for pattern in patterns:
        _check(pattern)
    anchored = [_anchored(pattern) for pattern in patterns if "/" in pattern]
    # The names share what stands around them: so many alternatives are compiled in a fraction of the time.
    names = "|".join(_last(pattern) for pattern in patterns if "/" not in pattern)
    anywhere = [f"(?:[^/]+/)*(?:{names})(?:/.+)?"] if names else []
    return re.compile("|".join((*anywhere, *anchored)) or "(?!)", re.DOTALL)


def _anchored(pattern: str) -> str:
    *folders, last = pattern.strip("/").split("/")
    middle = "".join("(?:[^/]+/)*" if part == "**" else _component(part) + "/" for part in folders)
    below = "/.+" if pattern.endswith("/") else "(?:/.+)?"
    return f"{middle}{_last(last)}{below}"


def _last(part: str) -> str:
    return "[^/]+(?:/[^/]+)*" if part == "**" else _component(part)


def _check(pattern: str) -> None:
    parts = pattern.strip("/").split("/")
    if pattern.startswith("!") or "\\" in pattern or _CONTROL.search(pattern):
        raise ConfigError(
            f"pattern {pattern!r}: negation, escapes and control characters aren't known; list what counts"
        )
    if any(part in {"", ".", ".."} for part in parts):
        raise ConfigError(
            f"pattern {pattern!r}: it must be a path below the repository's root, without `.` and `..`"
        )


def _component(glob: str) -> str:
    parts = re.findall(r"\*+|\?|\[[!^]?\]?[^\]]*\]|.", glob, re.DOTALL)
    return "".join(_token(part, glob) for part in parts)


def _token(part: str, glob: str) -> str:
    if part.startswith("*"):
        return "[^/]*"
    if part == "?":
        return "[^/]"
    if part == "[":
        raise ConfigError(f"pattern {glob!r}: the bracket isn't closed; name the file without it, or use `?`")
    return _class(part, glob) if part.startswith("[") else re.escape(part)


def _class(part: str, glob: str) -> str:
    negated = part[1] in "!^"
    inside = part[2 if negated else 1 : -1]
    if "[" in inside:
        raise ConfigError(f"pattern {glob!r}: named character classes aren't known; list the characters")
    ranges = re.sub(r"([\\\]^&~|])", r"\\\1", inside)
    text = f"[{'^' if negated else ''}{ranges}{'/' if negated else ''}]"
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"pattern {glob!r}: {part} is no range of characters ({error})") from error
    return text
