import hashlib
import os
import socket
from pathlib import Path

import pytest

from longwatch.kernel import digest, hashing
from longwatch.kernel.digest import Binding, Digest, Entry, Kind
from longwatch.kernel.errors import IntegrityError, LongwatchError, NotReadyError, PathError


def sha256(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).hexdigest())


def write(root: Path, **contents: bytes) -> None:
    for name, data in contents.items():
        (root / name).write_bytes(data)


@pytest.mark.guarantee("K29")
def test_a_digest_is_sha256(tmp_path: Path) -> None:
    write(tmp_path, a=b"abc" * 100_000)
    assert digest.of_file(tmp_path / "a") == digest.of_bytes(b"abc" * 100_000) == sha256(b"abc" * 100_000)
    assert digest.of_bytes(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("text", ["", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n", "\u0661" * 64])
@pytest.mark.guarantee("K29")
def test_text_that_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError, match="no SHA-256"):
        digest.digest(text)


def test_text_that_is_a_digest_is_taken() -> None:
    assert digest.digest(sha256(b"x")) == sha256(b"x")


def test_of_file_refuses_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for name in ("fifo", "link", "."):
        with pytest.raises(PathError, match="no regular file"):
            digest.of_file(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        digest.of_file(tmp_path / "nothing")


@pytest.mark.guarantee("K29")
def test_a_binding_names_everything_that_changed_is_missing_or_is_new(tmp_path: Path) -> None:
    write(tmp_path, same=b"1", edited=b"2", gone=b"3", swapped=b"4", turned=b"5")
    before = digest.bind("inputs", tmp_path)
    write(tmp_path, edited=b"changed", new=b"6")
    (tmp_path / "gone").unlink()
    (tmp_path / "swapped").chmod(0o755)
    (tmp_path / "turned").unlink()
    (tmp_path / "turned").symlink_to("same")
    after = digest.bind("inputs", tmp_path)
    found = digest.differences(before, after)
    assert found.changed == ("edited", "swapped", "turned")
    assert found.missing == ("gone",)
    assert found.new == ("new",)
    with pytest.raises(IntegrityError) as caught:
        digest.check(before, after)
    for path in ("inputs", "edited", "swapped", "turned", "gone", "new"):
        assert path in str(caught.value)
    assert "same" not in str(caught.value)


def test_equal_bindings_pass_and_have_equal_digests(tmp_path: Path) -> None:
    write(tmp_path, b=b"1", a=b"2")
    one, two = digest.bind("x", tmp_path), digest.bind("x", tmp_path, ["b", "a"])
    digest.check(one, two)
    assert not digest.differences(one, two)
    assert one.digest == two.digest
    write(tmp_path, a=b"3")
    assert digest.bind("x", tmp_path).digest != one.digest


@pytest.mark.guarantee("K29", "K34")
def test_links_are_bound_by_their_target_and_never_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    write(outside, secret=b"x")
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "broken").symlink_to("nowhere")
    bound = digest.bind("x", root)
    assert bound.entries == {
        "file": Entry(sha256(os.fsencode(outside / "secret")), Kind.LINK),
        "folder": Entry(sha256(os.fsencode(outside)), Kind.LINK),
        "broken": Entry(sha256(b"nowhere"), Kind.LINK),
    }
    write(outside, secret=b"changed")
    digest.check(bound, digest.rebind(bound, root))


@pytest.mark.guarantee("K29")
def test_a_file_that_holds_a_links_target_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("target")
    before = digest.bind("x", tmp_path)
    (tmp_path / "a").unlink()
    write(tmp_path, a=b"target")
    assert digest.differences(before, digest.bind("x", tmp_path)).changed == ("a",)


@pytest.mark.guarantee("K29")
def test_special_files_are_refused_by_name_and_nothing_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for bind in (lambda: digest.tree(tmp_path), lambda: digest.bind("x", tmp_path, ["fifo"])):
        with pytest.raises(PathError, match="fifo"):
            bind()
    (tmp_path / "fifo").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fsencode(tmp_path / "socket"))
        with pytest.raises(PathError, match="socket"):
            digest.tree(tmp_path)


def test_a_tree_leaves_out_what_it_is_told_to(tmp_path: Path) -> None:
    for folder in ("kept/.git", ".git/objects", "build/x"):
        (tmp_path / folder).mkdir(parents=True)
        write(tmp_path / folder, a=b"")
    write(tmp_path, log=b"")
    assert digest.tree(tmp_path, without=frozenset({".git", "build", "log"})) == ("kept/.git/a",)
    assert set(digest.bind("x", tmp_path, ["kept", "."]).entries) == set(digest.tree(tmp_path))


@pytest.mark.guarantee("K29")
def test_all_missing_paths_are_named(tmp_path: Path) -> None:
    write(tmp_path, a=b"")
    with pytest.raises(IntegrityError, match=r"gone.*lost"):
        digest.bind("x", tmp_path, ["a", "gone", "lost/deep", "a/below-a-file"])


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/..", "..", "out/passwd", "a\0"])
@pytest.mark.guarantee("K34")
def test_no_bound_path_leaves_the_root(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to("/etc")
    with pytest.raises(PathError):
        digest.bind("x", root, [path])


def test_a_name_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")).touch()
    with pytest.raises(PathError, match="UTF-8"):
        digest.bind("x", tmp_path)


def test_names_in_any_script_are_bound(tmp_path: Path) -> None:
    for name in ("größe", "日本", "a\nb", "-n", "a b"):
        (tmp_path / name).write_text(name)
    bound = digest.bind("x", tmp_path)
    assert bound.entries["日本"].digest == sha256("日本".encode())
    assert len(bound.entries) == 5


def test_a_root_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(LongwatchError, match="nowhere"):
        digest.bind("x", tmp_path / "nowhere")


def test_a_file_that_grows_while_it_is_read_is_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a=b"1" * 200_000)
    hash_large = hashing._hash_large

    def growing(descriptor: int) -> bytes:
        result = hash_large(descriptor)
        write(tmp_path, a=b"2" * 300_000)
        return result

    monkeypatch.setattr(hashing, "_hash_large", growing)
    with pytest.raises(NotReadyError, match="changed while it was read"):
        digest.bind("x", tmp_path)


@pytest.mark.guarantee("K29")
def test_a_file_that_becomes_a_fifo_after_the_scan_neither_blocks_nor_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, a=b"1")
    hash_files = digest.hash_files

    def swapped(paths: list[str]) -> list[hashing.Hashed]:
        (tmp_path / "a").unlink()
        os.mkfifo(tmp_path / "a")
        return hash_files(paths)

    monkeypatch.setattr(digest, "hash_files", swapped)
    with pytest.raises(PathError, match="no regular file"):
        digest.bind("x", tmp_path)


def test_rebind_leaves_out_what_is_gone(tmp_path: Path) -> None:
    write(tmp_path, a=b"1", b=b"2")
    bound = digest.bind("x", tmp_path)
    (tmp_path / "a").unlink()
    write(tmp_path, new=b"")
    assert digest.differences(bound, digest.rebind(bound, tmp_path)) == digest.Differences(missing=("a",))


def test_the_digest_of_a_binding_tells_kinds_apart() -> None:
    one = sha256(b"")
    plain = Binding(name="x", entries={"a": Entry(one)})
    assert plain.digest != Binding(name="x", entries={"a": Entry(one, Kind.EXECUTABLE)}).digest
    assert plain.digest == Binding(name="y", entries={"a": Entry(one)}).digest
