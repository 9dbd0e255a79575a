import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import NotReadyError
from longwatch.kernel.pump import CappedLog, Lines


def write(path: Path, cap: int, pieces: list[bytes]) -> bytes:
    log = CappedLog(path, cap)
    for piece in pieces:
        log.write(piece)
        assert path.stat().st_size <= cap
    log.close()
    return path.read_bytes()


@pytest.mark.guarantee("K24")
@given(st.lists(st.binary(max_size=400), max_size=12), st.integers(0, 900))
def test_a_log_never_grows_beyond_its_cap(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cap: int
) -> None:
    written = write(tmp_path_factory.mktemp("log") / "log", cap, pieces)
    whole = b"".join(pieces)
    if len(whole) <= cap:
        assert written == whole
    else:
        assert len(written) <= cap


@pytest.mark.guarantee("K24")
def test_head_and_tail_are_kept_and_what_is_missing_is_told(tmp_path: Path) -> None:
    lines = [f"line {number}\n".encode() for number in range(100_000)]
    written = write(tmp_path / "log", 10_000, lines)
    assert written.startswith(b"line 0\nline 1\n")
    assert written.endswith(b"line 99998\nline 99999\n")
    head, rest = written.split(b"\n[longwatch: ")
    number, tail = rest.split(b" bytes are left out here]\n")
    assert len(head) + int(number) + len(tail) == sum(map(len, lines))


@pytest.mark.guarantee("K8")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    log = CappedLog(tmp_path / "log", 1000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(NotReadyError, match="log"):
            log.write(b"x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
        log.close()


def test_a_log_is_private_and_replaces_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "log").symlink_to(victim)
    assert write(tmp_path / "log", 100, [b"text"]) == b"text"
    assert victim.read_bytes() == b"mine"
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


@given(st.lists(st.binary(max_size=40)), st.integers(1, 20))
def test_lines_arrive_once_whole_or_cut(pieces: list[bytes], longest: int) -> None:
    taken: list[bytes] = []
    lines = Lines(taken.append, longest)
    for piece in pieces:
        lines.feed(piece)
    if lines.pending:
        lines.close()
    expected = b"".join(pieces).split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert taken == [line[:longest] for line in expected]
