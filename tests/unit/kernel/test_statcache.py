import hashlib
import os
import time
from pathlib import Path

import pytest

from longwatch.kernel import digest, hashing, treescan, walking
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import LongwatchError, PathError
from longwatch.kernel.statcache import StatCache

LONG_AGO = 1_000_000_000


def sha256(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).hexdigest())


def write(root: Path, **contents: bytes) -> None:
    for name, data in contents.items():
        (root / name).write_bytes(data)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour has passed since every file was written, so that none is too young for the cache."""
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 3600 * LONG_AGO)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose content was read."""
    names: list[str] = []
    hash_one = hashing._hash

    def noting(path: str) -> tuple[int, bytes, bytes]:
        names.append(Path(path).name)
        return hash_one(path)

    monkeypatch.setattr(hashing, "_hash", noting)
    return names


@pytest.mark.guarantee("K30")
def test_unchanged_files_are_not_read_again(tmp_path: Path, later: None, read: list[str]) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"1", b=b"2")
    first = digest.bind("x", root, cache=StatCache(cache))
    assert sorted(read) == ["a", "b"]
    read.clear()
    assert digest.bind("x", root, cache=StatCache(cache)) == first
    assert read == []


@pytest.mark.guarantee("K30")
def test_rehash_ignores_the_cache(tmp_path: Path, later: None, read: list[str]) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"1")
    digest.bind("x", root, cache=StatCache(cache))
    read.clear()
    digest.bind("x", root, cache=StatCache(cache), rehash=True)
    assert read == ["a"]


@pytest.mark.guarantee("K30")
def test_a_young_file_is_read_every_time(tmp_path: Path, read: list[str]) -> None:
    write(tmp_path, a=b"1")
    cache = StatCache(tmp_path.parent / f"{tmp_path.name}.cache")
    for _ in range(3):
        digest.bind("x", tmp_path, cache=cache)
    assert read == ["a"] * 3


@pytest.mark.guarantee("K30")
def test_an_edit_that_restores_size_and_mtime_is_seen(tmp_path: Path, later: None) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"good")
    os.utime(root / "a", ns=(LONG_AGO, LONG_AGO))
    before = digest.bind("x", root, cache=StatCache(cache))
    write(root, a=b"evil")
    os.utime(root / "a", ns=(LONG_AGO, LONG_AGO))
    assert digest.differences(before, digest.bind("x", root, cache=StatCache(cache))).changed == ("a",)


@pytest.mark.guarantee("K30")
def test_a_file_that_takes_the_place_of_another_is_seen(tmp_path: Path, later: None) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"good", b=b"evil")
    for name in "ab":
        os.utime(root / name, ns=(LONG_AGO, LONG_AGO))
    before = digest.bind("x", root, cache=StatCache(cache))
    (root / "b").replace(root / "a")
    found = digest.differences(before, digest.bind("x", root, cache=StatCache(cache)))
    assert (found.changed, found.missing) == (("a",), ("b",))


@pytest.mark.parametrize("age_ns", [0, 1_999_999_999, 2_000_000_000, -5_000_000_000])
@pytest.mark.guarantee("K30")
def test_a_file_of_two_seconds_or_from_the_future_has_no_stamp(tmp_path: Path, age_ns: int) -> None:
    write(tmp_path, a=b"")
    facts = (tmp_path / "a").stat()
    assert walking.stamp(facts, facts.st_ctime_ns + age_ns) == b""
    assert walking.stamp(facts, facts.st_ctime_ns + 2_000_000_001) != b""


@pytest.mark.guarantee("K30")
def test_an_old_mtime_alone_does_not_make_a_file_old(tmp_path: Path) -> None:
    write(tmp_path, a=b"")
    os.utime(tmp_path / "a", ns=(LONG_AGO, LONG_AGO))
    assert walking.stamp((tmp_path / "a").stat(), time.time_ns()) == b""


@pytest.mark.parametrize("name", ["cache", "cache.tree"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other", "append"])
@pytest.mark.guarantee("K30")
def test_a_damaged_cache_is_an_empty_one(
    tmp_path: Path, later: None, read: list[str], damage: str, name: str
) -> None:
    root, path = tmp_path / "root", tmp_path / name
    root.mkdir()
    write(root, a=b"1")
    first = digest.bind("x", root, cache=StatCache(tmp_path / "cache"))
    for other in {"cache", "cache.tree"} - {name}:
        (tmp_path / other).unlink()
    data = path.read_bytes()
    flipped = data[:60] + bytes([data[60] ^ 1]) + data[61:]
    path.write_bytes(
        {"flip": flipped, "cut": data[:-1], "empty": b"", "other": b"{}" * 99, "append": data + b"x"}[damage]
    )
    read.clear()
    assert digest.bind("x", root, cache=StatCache(tmp_path / "cache")) == first
    assert read == ["a"]


@pytest.mark.guarantee("K30")
def test_a_file_that_was_swapped_between_listing_and_reading_is_not_remembered(
    tmp_path: Path, later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good file comes back with all its times: nothing read in between may stand for it."""
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"good", b=b"other")
    (tmp_path / "evil").write_bytes(b"evil")
    hash_files = digest.hash_files

    def swapping(paths: list[str]) -> list[hashing.Hashed]:
        (root / "a").rename(tmp_path / "aside")
        (tmp_path / "evil").rename(root / "a")
        answers = hash_files(paths)
        (root / "a").rename(tmp_path / "evil")
        (tmp_path / "aside").rename(root / "a")
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(digest, "hash_files", swapping)
        digest.bind("x", root, cache=StatCache(cache))
    assert not (tmp_path / "cache.tree").exists()
    assert digest.bind("x", root, cache=StatCache(cache)).entries["a"].digest == sha256(b"good")


@pytest.mark.parametrize("change", ["edit", "mode", "rename", "new", "link"])
@pytest.mark.guarantee("K30")
def test_a_remembered_tree_is_not_taken_for_a_changed_one(tmp_path: Path, later: None, change: str) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    write(root, a=b"1", b=b"2")
    (root / "link").symlink_to("a")
    first = digest.bind("x", root, cache=StatCache(cache))
    assert (tmp_path / "cache.tree").exists()
    if change == "edit":
        write(root, a=b"3")
    elif change == "mode":
        (root / "a").chmod(0o755)
    elif change == "rename":
        (root / "a").rename(root / "c")
    elif change == "new":
        write(root, c=b"")
    else:
        (root / "link").unlink()
        (root / "link").symlink_to("b")
    now = digest.bind("x", root, cache=StatCache(cache))
    assert digest.differences(first, now)
    assert now == digest.bind("x", root)


@pytest.mark.guarantee("K30")
def test_many_files_are_hashed_by_helpers_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tmp_path / f"{number}-\u00fc\n").write_bytes(b"x" * number * 3000)
    by_threads = digest.bind("x", tmp_path)
    monkeypatch.setattr(hashing, "_MANY", 10)
    assert digest.bind("x", tmp_path) == by_threads
    assert by_threads.entries["49-\u00fc\n"].digest == sha256(b"x" * 49 * 3000)


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tree is a large one on a machine with three cores."""
    monkeypatch.setattr(treescan, "_LARGE", 0)
    monkeypatch.setattr(treescan, "_SHARES_PER_CORE", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})


def forest(root: Path) -> Path:
    for number in range(40):
        folder = root / f"part{number}" / "deep"
        folder.mkdir(parents=True)
        write(folder, one=b"%d" % number, two=b"")
    (root / "part0" / ".git").mkdir()
    write(root / "part0" / ".git", config=b"")
    return root


@pytest.mark.guarantee("K29", "K30")
def test_a_large_tree_is_walked_by_helpers_with_the_same_result(
    tmp_path: Path, later: None, helped: None, read: list[str]
) -> None:
    root, cache = forest(tmp_path / "root"), tmp_path / "cache"
    without = frozenset({"part0/.git", "part3"})
    alone = digest.bind("x", root, without=without)
    assert len(alone.entries) == 78
    assert digest.bind("x", root, without=without, cache=StatCache(cache)) == alone
    read.clear()
    assert digest.bind("x", root, without=without, cache=StatCache(cache)) == alone
    assert digest.bind("x", root, list(alone.entries), cache=StatCache(cache)) == alone
    assert read == []
    write(root / "part39" / "deep", one=b"!!")
    os.mkfifo(root / "part38" / "fifo")
    with pytest.raises(PathError, match="part38/fifo"):
        digest.bind("x", root, without=without, cache=StatCache(cache))
    (root / "part38" / "fifo").unlink()
    found = digest.differences(alone, digest.bind("x", root, without=without, cache=StatCache(cache)))
    assert found == digest.Differences(changed=("part39/deep/one",))


def test_a_folder_that_a_helper_cannot_read_is_named(
    tmp_path: Path, helped: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = forest(tmp_path / "root")
    step = walking.step

    def removing(*arguments: object) -> list[str]:
        folders = step(*arguments)  # type: ignore[arg-type]
        return [*folders, "gone/"] if len(folders) == 40 else folders

    monkeypatch.setattr(walking, "step", removing)
    with pytest.raises(LongwatchError, match="gone"):
        digest.bind("x", root, cache=StatCache(tmp_path / "cache"))


@pytest.mark.parametrize("many", [True, False])
def test_a_helper_that_dies_is_no_answer(
    tmp_path: Path, helped: None, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    root = forest(tmp_path / "root")
    monkeypatch.setattr(hashing, "_MANY", 10 if many else 10_000)
    monkeypatch.setattr(hashing if many else walking, "__file__", os.devnull + "/nothing")
    with pytest.raises(LongwatchError, match="helper process died"):
        digest.bind("x", root, cache=StatCache(tmp_path / "cache"))
