import errno
import os
import resource
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, LongwatchError, NotReadyError, PathError


class Point(msgspec.Struct):
    x: int


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".longwatch-")]


def test_replace_writes_content_and_mode_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        files.replace(tmp_path / "a", b"one", 0o644)
    finally:
        os.umask(old)
    assert (tmp_path / "a").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_replace_is_private_unless_asked_otherwise(tmp_path: Path) -> None:
    files.replace(tmp_path / "a", b"one")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.guarantee("K34")
def test_replace_never_writes_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "a").symlink_to(victim)
    files.replace(tmp_path / "a", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "a").is_symlink()


def test_replace_json_ends_with_a_newline(tmp_path: Path) -> None:
    files.replace_json(tmp_path / "a", Point(3))
    assert (tmp_path / "a").read_bytes() == b'{\n  "x": 3\n}\n'


def test_show_is_whole_too(tmp_path: Path) -> None:
    files.show(tmp_path / "a", b"1" * 5_000_000)
    assert (tmp_path / "a").stat().st_size == 5_000_000
    assert left_behind(tmp_path) == []


def test_create_is_harmless_when_repeated_and_refuses_other_content(tmp_path: Path) -> None:
    files.create(tmp_path / "a", b"one")
    files.create(tmp_path / "a", b"one")
    with pytest.raises(IntegrityError, match="not overwritten"):
        files.create(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert left_behind(tmp_path) == []


def test_create_does_not_take_a_link_to_equal_content_for_a_repeat(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"one")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityError):
        files.create(tmp_path / "a", b"one")


@pytest.mark.parametrize("write", [files.replace, files.show, files.create])
@pytest.mark.guarantee("K8")
def test_a_missing_folder_is_named_with_the_mend(tmp_path: Path, write: object) -> None:
    with pytest.raises(LongwatchError, match=r"nowhere.*folder does not exist"):
        write(tmp_path / "nowhere" / "a", b"")  # type: ignore[operator]


@pytest.mark.guarantee("K8")
def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(LongwatchError, match="a folder stands there"):
        files.replace(tmp_path / "a", b"")
    assert left_behind(tmp_path) == []


FULL_DISK = """
    import sys
    from pathlib import Path
    from longwatch.kernel import files
    from longwatch.kernel.errors import LongwatchError, NotReadyError
    folder = Path(sys.argv[1])
    files.replace(folder / "state", b"old" * 1000)
    for write, name in ((files.replace, "state"), (files.show, "state"), (files.create, "new")):
        try:
            write(folder / name, b"x" * 4_000_000)
        except NotReadyError as error:
            assert str(folder) in str(error) and "disk is full" in str(error), error
        else:
            raise SystemExit("a full disk went unnoticed")
    assert (folder / "state").read_bytes() == b"old" * 1000
    assert [path.name for path in folder.iterdir()] == ["state"], list(folder.iterdir())
    files.replace(folder / "state", b"new")
    assert (folder / "state").read_bytes() == b"new"
    print("held")
"""

READ_ONLY = """
    import subprocess, sys
    from pathlib import Path
    from longwatch.kernel import files
    from longwatch.kernel.errors import LongwatchError
    folder = Path(sys.argv[1])
    files.replace(folder / "state", b"old")
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    for step in (
        lambda: files.replace(folder / "state", b"new"),
        lambda: files.create(folder / "other", b"new"),
        lambda: files.make_folder(folder / "sub"),
        lambda: files.remove_recorded(folder / "state", folder),
    ):
        try:
            step()
        except LongwatchError as error:
            assert "read-only" in str(error) and str(folder) in str(error), error
        else:
            raise SystemExit("a read-only file system went unnoticed")
    assert (folder / "state").read_bytes() == b"old"
    print("held")
"""


def in_small_disk(folder: Path, program: str) -> None:
    """Run a program on a file system of one megabyte, in a mount namespace of its own."""
    script = folder / "program.py"
    script.write_text(textwrap.dedent(program))
    disk = folder / "disk"
    disk.mkdir()
    command = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" "$3" "$1"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", command, "sh", disk, sys.executable, script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "held\n", done.stderr


@pytest.mark.guarantee("K8")
def test_a_full_disk_leaves_the_old_content_and_the_next_write_works(tmp_path: Path) -> None:
    in_small_disk(tmp_path, FULL_DISK)


@pytest.mark.guarantee("K8")
def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    in_small_disk(tmp_path, READ_ONLY)


@pytest.mark.guarantee("K8")
def test_a_file_size_limit_is_named(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    files.replace(tmp_path / "a", b"old")
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(LongwatchError, match="file-size limit"):
            files.replace(tmp_path / "a", b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "a").read_bytes() == b"old"
    assert left_behind(tmp_path) == []


@pytest.mark.guarantee("K8")
def test_the_old_content_stays_when_the_disk_fails_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.replace(tmp_path / "a", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LongwatchError, match="device reports an error"):
        files.replace(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert left_behind(tmp_path) == []


def test_a_full_disk_is_a_reason_to_wait() -> None:
    assert NotReadyError.exit_code == 75


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a\0b", "\udfff\ud800"]
)
@pytest.mark.guarantee("K34")
def test_paths_that_would_leave_are_refused_by_name(tmp_path: Path, path: str) -> None:
    with pytest.raises(PathError):
        files.contained(tmp_path, path)


@pytest.mark.guarantee("K34")
def test_a_link_that_leads_outside_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a" / "out").symlink_to(tmp_path)
    (root / "last").symlink_to("/etc/passwd")
    (root / "dangling").symlink_to("../not-there-yet")
    (root / "twice").symlink_to("a/out")
    for path in ("a/out/x", "a/out", "last", "dangling", "twice/x", "a/./out//x"):
        with pytest.raises(PathError, match=path.split("/")[0]):
            files.contained(root, path)


@pytest.mark.guarantee("K34")
def test_a_folder_with_a_name_that_begins_like_the_root_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root" / "link").symlink_to("../root-evil")
    with pytest.raises(PathError):
        files.contained(tmp_path / "root", "link")


@pytest.mark.guarantee("K34")
def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(PathError):
        files.contained(tmp_path, "a/x")
    with pytest.raises(PathError):
        files.contained(tmp_path, "a")


def test_paths_inside_are_returned_also_through_links_and_before_they_exist(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    outer = tmp_path / "outer"
    outer.symlink_to(tmp_path)
    assert files.contained(tmp_path, "link/new") == tmp_path / "link/new"
    assert files.contained(outer, "real") == outer / "real"
    assert files.contained(tmp_path, ".") == tmp_path
    assert files.contained(tmp_path, "./real//x/./y") == tmp_path / "real/x/y"
    assert files.contained(tmp_path, "..a/b..") == tmp_path / "..a/b.."


def test_read_bounded_reads_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert files.read_bounded(tmp_path / "a", 5) == b"12345"
    with pytest.raises(PathError, match="5 bytes, more than the allowed 4"):
        files.read_bounded(tmp_path / "a", 4)
    with pytest.raises(FileNotFoundError):
        files.read_bounded(tmp_path / "b", 4)


@pytest.mark.guarantee("K34")
def test_read_bounded_refuses_everything_that_is_no_regular_file_and_never_blocks(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        for name, word in (
            ("link", "symbolic link"),
            ("fifo", "FIFO"),
            ("socket", "socket"),
            (".", "folder"),
        ):
            with pytest.raises(PathError, match=word):
                files.read_bounded(tmp_path / name, 10)
    with pytest.raises(PathError, match="device"):
        files.read_bounded(Path("/dev/zero"), 10)


@pytest.mark.guarantee("K34")
def test_read_bounded_stops_at_a_file_whose_size_lies() -> None:
    with pytest.raises(PathError, match="grew past"):
        files.read_bounded(Path("/proc/self/status"), 10)


def test_make_folder_makes_private_parents_and_is_harmless_when_repeated(tmp_path: Path) -> None:
    folder = files.make_folder(tmp_path / "a" / "b")
    assert files.make_folder(folder) == folder
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


@pytest.mark.guarantee("K8")
def test_make_folder_names_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises(LongwatchError, match="no folder"):
            files.make_folder(path)


def test_free_bytes_is_what_the_file_system_says(tmp_path: Path) -> None:
    assert 0 < files.free_bytes(tmp_path) < 2**60
    with pytest.raises(LongwatchError, match="not-there"):
        files.free_bytes(tmp_path / "not-there")
