import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwatch.migrate.patterns import Patterns, fold, may_change, protected_patterns, unsafe
from longwatch.migrate.settings import Repository

NAMES = st.text(alphabet="ab.x", min_size=1, max_size=4).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
GLOBS = st.one_of(NAMES, st.sampled_from(["*", "**", "*.x", "a*", "?", "a?", "[ab]", "[!a]", "*a*"]))


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = draw(st.lists(GLOBS, min_size=1, max_size=4))
    below = draw(st.booleans())
    # A lone `name/` is the root's own folder here and any folder in a .gitignore: compared with its anchor.
    anchor = "/" if draw(st.booleans()) or (below and len(parts) == 1) else ""
    return anchor + "/".join(parts) + ("/" if below else "")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    return root


def ignored(root: Path, pattern: str, paths: list[str]) -> set[str]:
    (root / ".gitignore").write_text(pattern + "\n")
    asked = "".join(path + "\0" for path in paths).encode()
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    answer = subprocess.run(command, cwd=root, input=asked, capture_output=True, check=False)
    assert answer.returncode in {0, 1}
    return set(answer.stdout.decode().split("\0")) - {""}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), paths=st.lists(PATHS, min_size=1, max_size=30, unique=True))
def test_git_and_we_agree_about_a_pattern(repository: Path, pattern: str, paths: list[str]) -> None:
    ours = Patterns((pattern,))
    assert {path for path in paths if ours.matches(path)} == ignored(repository, pattern, paths)


@given(path=st.text(max_size=20), owned=st.lists(PATHS, max_size=3))
@pytest.mark.guarantee("M18", "K34")
def test_what_may_change_is_never_unsafe_and_protected_only_by_its_name(path: str, owned: list[str]) -> None:
    guarded = protected_patterns(Repository(branch="main"))
    if may_change(path, tuple(owned), guarded):
        assert unsafe(path) is None
        assert path in owned or not guarded.matches(fold(path))


@given(st.sampled_from(["Makefile", "pyproject.toml", "conftest.py", ".npmrc"]), st.data())
@pytest.mark.guarantee("M18")
def test_no_change_of_case_frees_a_protected_file(path: str, data: st.DataObject) -> None:
    spelled = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in path)
    assert not may_change(spelled, (), protected_patterns(Repository(branch="main")))
