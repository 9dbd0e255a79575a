"""Real processes, live, dead, zombie and of another start, behind markers of every form; nothing foreign is touched."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longwatch.kernel.clock import boot_id
from longwatch.kernel.errors import LongwatchError, NotReadyError, PathError
from longwatch.kernel.identity import identify, read_stat
from longwatch.kernel.markers import (
    Marker,
    Standing,
    fence,
    inspect,
    living,
    publish,
    read_marker,
    withdraw,
)

pytestmark = pytest.mark.guarantee("K4")


@pytest.fixture
def tool() -> Iterator[int]:
    """The pid of a live process that is not ours."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def dead() -> int:
    """A pid that belonged to a process until now."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def ticks(pid: int) -> int:
    stat = read_stat(pid)
    assert stat is not None
    return stat.start_ticks


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


FORMS = {
    "a pid": "{pid}",
    "a pid and a newline": "{pid}\n",
    "a pid and ticks": "{pid} {ticks}\n",
    "a pid and seconds": "{pid}\n{created}\n",
    "a pid and other words": "{pid}\n/var/lib/data\n5432\n",
    "JSON": '{{"pid": {pid}}}',
    "JSON as text": '{{"pid": "{pid}"}}',
    "JSON with ticks": '{{"pid": {pid}, "start_ticks": {ticks}, "boot_id": "{boot}"}}',
    "JSON with seconds": '{{"pid": {pid}, "create_time": {created}}}',
    "JSON with milliseconds": '{{"pid": {pid}, "start": {created_ms}}}',
    "JSON with a later beginning of work": '{{"pid": {pid}, "started_at": "{later}"}}',
    "JSON with a time of an unknown zone": '{{"pid": {pid}, "started_at": "2001-01-01T00:00:00"}}',
    "JSON with an absurd start": '{{"pid": {pid}, "start": 1' + "0" * 400 + "}}",
    "JSON one level down": '{{"version": 3, "holder": {{"pid": {pid}, "host": "here"}}}}',
}


def content(form: str, pid: int) -> str:
    created = psutil.Process(pid).create_time()
    values = {
        "created": created,
        "created_ms": int(created * 1000),
        "later": iso(created + 60),
        "boot": boot_id(),
    }
    return FORMS[form].format(pid=pid, ticks=ticks(pid), **values)


@pytest.mark.parametrize("form", FORMS)
def test_a_marker_of_a_live_process_refuses_and_is_not_touched(tmp_path: Path, tool: int, form: str) -> None:
    path = tmp_path / "marker"
    path.write_text(content(form, tool))
    before = path.stat()

    with pytest.raises(NotReadyError, match=f"{path} names process {tool}"):
        fence([path])

    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("form", FORMS)
def test_a_marker_of_a_dead_process_is_reported_and_never_deleted(tmp_path: Path, form: str) -> None:
    path = tmp_path / "marker"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        text = content(form, process.pid)
        process.kill()
    path.write_text(text)

    (found,) = fence([path])

    assert found.standing is Standing.STALE
    assert str(path) in found.text
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "{pid} {wrong_ticks}",
        '{{"pid": {pid}, "start_ticks": {wrong_ticks}}}',
        '{{"pid": {pid}, "create_time": {before}}}',
        '{{"pid": {pid}, "started_at": "{before_iso}"}}',
        '{{"pid": {pid}, "boot_id": "another boot"}}',
    ],
)
def test_a_pid_that_was_given_to_another_process_is_stale(tmp_path: Path, tool: int, text: str) -> None:
    path = tmp_path / "marker"
    before = psutil.Process(tool).create_time() - 3600
    values = {"wrong_ticks": ticks(tool) - 1, "before": before, "before_iso": iso(before)}
    path.write_text(text.format(pid=tool, **values))

    assert [found.standing for found in fence([path])] == [Standing.STALE]


def test_a_zombie_is_dead() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert not living(Marker(pid=child))
    finally:
        os.waitpid(child, 0)


@pytest.mark.parametrize(
    "raw",
    [b"", b"\n", b"at work", b"{", b"[1]", b"null", b'{"pid": 0}', b'{"pid": true}', b'{"pid": -3}', b'{"pid": 1e400}',
     b"9999999", b"99999999999999999999", b"12abc", b"\xff\xfe\x00", b"[" * 60_000, b"x" * 100_000,
     b'{"pid": 1' + b"0" * 500 + b"}"],
)  # fmt: skip
def test_what_cannot_be_read_refuses_by_name_and_is_not_touched(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "marker"
    path.write_bytes(raw)

    with pytest.raises(NotReadyError, match=str(path)):
        fence([path])

    assert path.read_bytes() == raw


def test_links_folders_and_fifos_do_not_hang_or_mislead(tmp_path: Path, tool: int) -> None:
    (tmp_path / "real").write_text(str(tool))
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to(f"host:{tool}")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")

    standings = {
        name: found.standing if (found := inspect(tmp_path / name)) else None
        for name in ("link", "dangling", "circle", "folder", "fifo", "absent", "absent/deeper")
    }

    assert standings == {
        "link": Standing.LIVE,
        "dangling": Standing.UNREADABLE,
        "circle": Standing.UNREADABLE,
        "folder": Standing.UNREADABLE,
        "fifo": Standing.UNREADABLE,
        "absent": None,
        "absent/deeper": None,
    }


def test_all_reasons_are_told_at_once_and_absent_markers_are_none(
    tmp_path: Path, tool: int, dead: int
) -> None:
    paths = [tmp_path / name for name in ("live", "odd", "stale", "absent")]
    paths[0].write_text(str(tool))
    paths[1].write_text("?")
    paths[2].write_text(str(dead))

    with pytest.raises(NotReadyError) as caught:
        fence(paths)

    assert [str(path) in str(caught.value) for path in paths] == [True, True, False, False]
    assert fence([paths[3]]) == ()


def test_our_own_process_is_no_foreign_runner(tmp_path: Path) -> None:
    path = tmp_path / "marker"
    publish(path, tmp_path, identify(os.getpid(), "cookie"))

    assert fence([path]) == ()


def test_a_published_marker_is_readable_by_any_tool_and_tells_no_secret(tmp_path: Path, tool: int) -> None:
    path = tmp_path / "marker"
    publish(path, tmp_path, identify(tool, "the-cookie"))

    assert msgspec.json.decode(path.read_bytes())["pid"] == tool
    assert read_marker(path) == Marker(pid=tool, start=ticks(tool), boot_id=boot_id())
    assert path.stat().st_mode & 0o777 == 0o644
    assert "the-cookie" not in path.read_text()
    with pytest.raises(NotReadyError):
        fence([path])


def test_only_our_own_marker_is_removed(tmp_path: Path, tool: int) -> None:
    path = tmp_path / "marker"
    published = publish(path, tmp_path, identify(tool, ""))
    path.write_text("somebody else's")
    assert not withdraw(published)
    assert path.read_text() == "somebody else's"

    path.unlink()
    assert not withdraw(published)
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(published.content)
    assert not withdraw(published)
    assert path.is_symlink()

    path.unlink()
    assert withdraw(publish(path, tmp_path, identify(tool, "")))
    assert not path.exists()


def test_what_a_dead_run_of_this_watch_left_is_replaced(tmp_path: Path, tool: int) -> None:
    path = tmp_path / "marker"
    identity = identify(tool, "")
    publish(path, tmp_path, msgspec.structs.replace(identity, start_ticks=identity.start_ticks - 1))

    publish(path, tmp_path, identity)

    assert read_marker(path) == Marker(pid=tool, start=identity.start_ticks, boot_id=identity.boot_id)


@pytest.mark.parametrize(
    "whose", ["another tool, dead", "another tool, odd", "another watch", "this watch, alive"]
)
def test_nothing_else_is_ever_replaced(tmp_path: Path, tool: int, dead: int, whose: str) -> None:
    path = tmp_path / "marker"
    identity = identify(tool, "")
    gone = msgspec.structs.replace(identity, start_ticks=identity.start_ticks - 1)
    if whose == "another tool, dead":
        path.write_text(str(dead))
    elif whose == "another tool, odd":
        path.write_text('{"program": "longwatch"}')
    else:
        other = whose == "another watch"
        publish(path, tmp_path / "other" if other else tmp_path, gone if other else identity)
    before = path.read_bytes()

    with pytest.raises(NotReadyError, match=str(path)):
        publish(path, tmp_path, identify(os.getpid(), ""))

    assert path.read_bytes() == before


def test_a_folder_whose_name_is_no_utf8_can_be_published(tmp_path: Path) -> None:
    path = tmp_path / "marker"
    watch = Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))

    assert withdraw(publish(path, watch, identify(os.getpid(), "")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.binary(max_size=200)
    | st.from_regex(rb'\s*[0-9]{1,8}[ :,]?[0-9T:.+-]{0,30}|\{"pid": ?-?[0-9]{0,30}.{0,20}\}')
)
def test_any_content_is_a_marker_or_a_refusal(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "marker"
    path.write_bytes(raw)

    try:
        marker = read_marker(path)
    except PathError:
        return
    assert marker is not None
    assert living(marker) in {True, False}


def test_a_marker_that_may_not_be_read_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: int
) -> None:
    path = tmp_path / "marker"
    path.write_text(str(tool))

    def forbidden(path: Path, max_bytes: int) -> bytes:
        raise LongwatchError(f"cannot read {path}: permission is denied")

    # As root every file can be read, so the refusal itself is what has to be shown.
    monkeypatch.setattr("longwatch.kernel.files.read_bounded", forbidden)

    with pytest.raises(NotReadyError, match="permission is denied"):
        fence([path])


def test_a_process_that_ends_makes_its_marker_stale(tmp_path: Path) -> None:
    path = tmp_path / "marker"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        path.write_text(f'{{"pid": {process.pid}, "started_at": "{iso(time.time())}"}}')
        with pytest.raises(NotReadyError):
            fence([path])
        process.kill()
        process.wait()

    assert [found.standing for found in fence([path])] == [Standing.STALE]
