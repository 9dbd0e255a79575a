"""No path leaves its root, whatever links lie about."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwatch.kernel import files
from longwatch.kernel.errors import PathError

NAMES = st.sampled_from(["a", "b", "c", "..", ".", "", "out"])
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
TARGETS = st.one_of(PATHS, st.sampled_from(["/", "/etc", "../outside", "a/b", "../root/a"]))


def plant(root: Path, links: dict[str, str], folders: list[str]) -> None:
    for folder in folders:
        if os.path.realpath(root / folder).startswith(f"{root}/"):
            try:
                (root / folder).mkdir(parents=True, exist_ok=True)
            except (OSError, RuntimeError):
                continue
    for name, target in links.items():
        place = root / name
        if target and not os.path.lexists(place):
            place.symlink_to(target)


@pytest.mark.guarantee("K34")
@settings(max_examples=300, deadline=None)
@given(
    path=PATHS,
    links=st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), TARGETS, max_size=4),
    folders=st.lists(st.sampled_from(["a/b", "b/c", "c", "out/a"]), max_size=3),
)
def test_a_contained_path_is_inside_and_opening_it_stays_inside(
    path: str, links: dict[str, str], folders: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(os.path.realpath(name)) / "root"
        root.mkdir()
        (root.parent / "outside").mkdir()
        plant(root, links, folders)
        try:
            found = files.contained(root, path)
        except PathError:
            return
        assert ".." not in path.split("/")
        assert Path(os.path.realpath(found)).is_relative_to(root)


@pytest.mark.guarantee("K34")
@settings(max_examples=300, deadline=None)
@given(path=st.text(max_size=20))
def test_any_text_is_a_plain_path_or_refused(path: str) -> None:
    try:
        normal = files.normal(path)
    except PathError:
        return
    parts = normal.split("/")
    assert ".." not in parts
    assert "" not in parts
    assert "\0" not in normal
    assert files.normal(normal) == normal


@pytest.mark.guarantee("K9")
@settings(max_examples=150, deadline=None)
@given(
    path=PATHS,
    links=st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), TARGETS, max_size=4),
    folders=st.lists(st.sampled_from(["a/b", "b/c", "c", "out/a"]), max_size=3),
)
def test_removing_touches_nothing_outside_the_root(
    path: str, links: dict[str, str], folders: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(os.path.realpath(name))
        root, outside = base / "root", base / "outside"
        for folder in (root, outside):
            folder.mkdir()
        (outside / "a").touch()
        plant(root, links, folders)
        try:
            files.remove_recorded(root / path, root)
        except PathError:
            pass
        else:
            assert not os.path.lexists(root / files.normal(path))
        assert root.is_dir()
        assert (outside / "a").exists()
