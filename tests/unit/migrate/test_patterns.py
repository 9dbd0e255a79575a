import pytest

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.patterns import (
    PROTECTED,
    TEST_FILES,
    Patterns,
    fold,
    may_change,
    patterns_of_tests,
    protected_patterns,
    refusal,
    unsafe,
)
from longwatch.migrate.settings import Repository

REPOSITORY = Repository(branch="main")
GUARDED = protected_patterns(REPOSITORY)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/*.py", "x/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("src/**", "src/b/c", True),
        ("src/**", "src", False),
        ("src/", "src/a/b", True),
        ("src/", "src", False),
        ("src/", "lib/src/a", False),
        ("src", "lib/src/a", True),
        ("/src", "lib/src/a", False),
        ("/src", "src/a", True),
        ("**/t/*.t", "t/a.t", True),
        ("**/t/*.t", "x/y/t/a.t", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a[bc]", "ab", True),
        ("a[!bc]", "ab", False),
        ("a[!b]c", "a/c", False),
        ("a[]]", "a]", True),
        ("a+b(c)", "a+b(c)", True),
        ("*", "a/b", True),
        ("a\u00e9", "a\u00e9", True),
        ("a\u00e9", "ae\u0301", False),
        ("a", "a\n", False),
    ],
)
def test_a_glob_matches_as_git_does(pattern: str, path: str, expected: bool) -> None:
    assert Patterns((pattern,)).matches(path) is expected


def test_no_pattern_matches_nothing() -> None:
    assert not Patterns(()).matches("a")
    assert not Patterns(()).matches("")


@pytest.mark.parametrize(
    "pattern", ["", "!a", "a/../b", "./a", "a//b", "a\\b", "a[b", "a[z-a]", "a\nb", "/", "[[:alpha:]]"]
)
def test_a_pattern_that_could_be_misread_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Patterns((pattern,))
    assert repr(pattern)[1:-1] in str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        *("test_a.py", "pkg/a_test.py", "tests/data/x.json", "test/a.js", "src/__tests__/b.js", "a.test.tsx"),
        *(
            "a.spec.ts",
            "pkg/a_test.go",
            "spec/a_spec.rb",
            "src/test/java/A.java",
            "FooTest.java",
            "conftest.py",
        ),
        *(
            "crates/x/tests/it.rs",
            "__snapshots__/a.snap",
            "t/basic.t",
            "src/tests.rs",
            "tests/CMakeLists.txt",
        ),
    ],
)
def test_test_files_of_the_known_runners_are_known(path: str) -> None:
    assert patterns_of_tests(REPOSITORY).matches(path)


@pytest.mark.parametrize(
    "path", ["src/a.py", "attest.py", "contest.go", "latest/x.js", "protest.rb", "testimony.md"]
)
def test_production_files_are_no_test_files(path: str) -> None:
    assert not Patterns(TEST_FILES).matches(path)


def test_configured_test_patterns_stand_alone() -> None:
    patterns = patterns_of_tests(Repository(branch="main", tests=("checks/**",)))
    assert patterns.matches("checks/a.py")
    assert not patterns.matches("tests/a.py")


HOSTILE = [
    *("MAKEFILE", "makefile", "Makefile.", "Makefile ", "Makefile::$DATA", "Make\u200bfile", "\uff2dakefile"),
    *("PyProject.toml", "sub/CONFTEST.py", ".GitHub/workflows/x.yml", "Tasks/0001.md", "Longwatch.toml"),
    *("Setup.py", "a/b/Package.JSON", ".NPMRC", "evil.PTH", "SiteCustomize.py", ".vscode/settings.json"),
]


@pytest.mark.guarantee("M18")
@pytest.mark.parametrize("path", HOSTILE)
def test_another_spelling_of_a_protected_file_is_protected_too(path: str) -> None:
    assert not may_change(path, (), GUARDED)
    assert not may_change(path, ("**", "*"), GUARDED)


GIT = [
    *(
        ".git/config",
        ".GIT/config",
        "a/.git/hooks/x",
        ".git",
        ".git /config",
        ".git./x",
        "git~1/config",
        "GIT~2",
    ),
    *(".git::$INDEX_ALLOCATION/config", ".g\u200cit/config", "\uff0egit/config", ".gi\u0074/x"),
]


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize("path", GIT)
def test_nothing_in_the_git_folder_may_change_even_when_owned(path: str) -> None:
    assert unsafe(path) is not None
    assert refusal(path, (path,), GUARDED) is not None


@pytest.mark.guarantee("K34")
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../a", "a/../b", "a//b", "./a", "", "a\\b", "a\0b", "a\nb", "a/", "a. "]
)
def test_a_path_of_a_strange_form_is_refused_even_when_owned(path: str) -> None:
    assert refusal(path, (path,), GUARDED) is not None


def test_git_files_that_are_not_the_git_folder_are_only_protected() -> None:
    assert unsafe(".gitignore") is None
    assert unsafe(".github/workflows/a.yml") is None
    assert unsafe("digit~1") is None
    assert not may_change(".gitignore", (), GUARDED)


def test_a_protected_file_is_owned_by_its_exact_name_only() -> None:
    assert may_change("Makefile", ("Makefile",), GUARDED)
    for glob in ("Make*", "*", "**", "/Makefile", "makefile"):
        assert not may_change("Makefile", (glob,), GUARDED), glob


def test_owned_patterns_bound_the_change_and_nothing_owned_means_the_rest() -> None:
    assert may_change("src/a.py", ("src/**",), GUARDED)
    assert may_change("src/a.py", (), GUARDED)
    reason = refusal("lib/a.py", ("src/**",), GUARDED)
    assert reason is not None
    assert "lib/a.py" in reason
    assert "src/**" in reason


def test_the_configuration_widens_and_narrows_what_is_protected() -> None:
    patterns = protected_patterns(
        Repository(branch="main", tasks="queue", protected=("oracle/**",), changeable=("pyproject.toml",))
    )
    assert may_change("pyproject.toml", (), patterns)
    assert not may_change("oracle/x", (), patterns)
    assert not may_change("queue/0001.md", (), patterns)
    assert may_change("tasks/0001.md", (), patterns)


def test_a_watch_never_lets_the_worker_change_its_own_configuration_by_a_pattern() -> None:
    patterns = protected_patterns(Repository(branch="main", changeable=("longwatch.toml",)))
    assert not may_change("longwatch.toml", (), patterns)


def test_an_unknown_changeable_entry_is_named() -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        protected_patterns(Repository(branch="main", changeable=("nonsense",)))


def test_every_built_in_pattern_is_well_formed() -> None:
    Patterns(PROTECTED)
    Patterns(TEST_FILES)


def test_folding_keeps_plain_names() -> None:
    assert fold("src/a.py") == "src/a.py"
    assert fold("Src/A.PY. ") == "src/a.py"
