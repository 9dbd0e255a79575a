"""A binding notices every edit, with and without the cache."""

import hashlib
import os
import tempfile
import time
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwatch.kernel import digest
from longwatch.kernel.digest import Binding, Digest, Entry, Kind
from longwatch.kernel.statcache import StatCache

PATHS = st.sampled_from(["a", "b", "x/a", "x/b", "x/y/c", "z/ü"])
CONTENTS = st.sampled_from([b"", b"1", b"2", b"target", b"1" * 70_000, b"2" * 70_000])
ENTRIES = st.builds(
    Entry,
    st.sampled_from([Digest(hashlib.sha256(bytes([n])).hexdigest()) for n in range(3)]),
    st.sampled_from(Kind),
)
BINDINGS = st.dictionaries(PATHS, ENTRIES, max_size=5).map(lambda entries: Binding(name="x", entries=entries))
EDITS = st.lists(
    st.tuples(PATHS, st.one_of(CONTENTS, st.sampled_from(["remove", "chmod", "link"]))), max_size=6
)


def apply(root: Path, path: str, edit: bytes | str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    if edit == "chmod":
        if place.is_file() and not place.is_symlink():
            place.chmod(place.stat().st_mode ^ 0o100)
    elif isinstance(edit, str):
        place.unlink(missing_ok=True)
        if edit == "link":
            place.symlink_to("target")
    else:
        if place.is_symlink():
            place.unlink()
        place.write_bytes(edit)
        os.utime(place, ns=(1, 1))


def model(root: Path) -> dict[str, Entry]:
    """The same by other means: slowly, with `Path` and nothing remembered."""
    found = {}
    for place in root.rglob("*"):
        if place.is_symlink():
            found[str(place.relative_to(root))] = Entry(
                digest.of_bytes(os.fsencode(place.readlink())), Kind.LINK
            )
        elif place.is_file():
            kind = Kind.EXECUTABLE if place.stat().st_mode & 0o100 else Kind.FILE
            found[str(place.relative_to(root))] = Entry(digest.of_bytes(place.read_bytes()), kind)
    return found


@pytest.mark.guarantee("K29", "K30")
@settings(max_examples=100, deadline=None)
@given(rounds=st.lists(EDITS, min_size=1, max_size=4), hours=st.sampled_from([0, 1]))
def test_a_cached_binding_is_the_binding(rounds: list[list[tuple[str, bytes | str]]], hours: int) -> None:
    """Edits that keep size and mtime, on young files and on files an hour old."""
    with tempfile.TemporaryDirectory() as name:
        root, cache = Path(name) / "root", Path(name) / "cache"
        root.mkdir()
        for edits in rounds:
            for path, edit in edits:
                apply(root, path, edit)
            with mock.patch("time.time_ns", return_value=time.time_ns() + hours * 3600 * 10**9):
                bound = digest.bind("x", root, cache=StatCache(cache))
            assert bound.entries == model(root)
            assert set(digest.tree(root)) == set(bound.entries)


@pytest.mark.guarantee("K29")
@given(before=BINDINGS, after=BINDINGS)
def test_differences_account_for_every_path(before: Binding, after: Binding) -> None:
    found = digest.differences(before, after)
    named = [*found.changed, *found.missing, *found.new]
    assert len(named) == len(set(named))
    same = (before.entries.keys() | after.entries.keys()) - set(named)
    assert all(before.entries[path] == after.entries[path] for path in same)
    assert all(before.entries.get(path) != after.entries.get(path) for path in named)
    assert bool(found) == (before.digest != after.digest)
