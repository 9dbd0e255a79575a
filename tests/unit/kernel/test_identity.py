import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.identity import (
    COOKIE_VARIABLE,
    alive,
    find_by_cookie,
    identify,
    open_pidfd,
    read_stat,
    send,
)
from longwatch.kernel.process import new_cookie


@pytest.fixture
def cookie() -> str:
    return new_cookie()


@pytest.fixture
def sleeper(cookie: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, COOKIE_VARIABLE: cookie}) as child:
        yield child
        child.kill()


def test_a_process_is_alive_until_it_is_a_zombie(sleeper: "subprocess.Popen[bytes]", cookie: str) -> None:
    identity = identify(sleeper.pid, cookie)
    assert alive(identity)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert read_stat(sleeper.pid) is not None
    assert not alive(identity)


@pytest.mark.guarantee("K19")
@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}])
def test_another_process_under_the_same_pid_is_not_signalled(
    sleeper: "subprocess.Popen[bytes]", cookie: str, change: dict[str, object]
) -> None:
    other = msgspec.structs.replace(identify(sleeper.pid, cookie), **change)
    assert not alive(other)
    assert open_pidfd(other) is None
    assert not send(other, signal.SIGKILL)
    assert sleeper.poll() is None


@pytest.mark.guarantee("K19")
def test_a_pid_that_was_given_away_between_two_looks_is_not_signalled(
    sleeper: "subprocess.Popen[bytes]", cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = msgspec.structs.replace(identify(sleeper.pid, cookie), start_ticks=1)
    monkeypatch.setattr("longwatch.kernel.identity.alive", lambda _: True)
    assert not send(other, signal.SIGKILL)
    assert sleeper.poll() is None


def test_a_signal_arrives(sleeper: "subprocess.Popen[bytes]", cookie: str) -> None:
    identity = identify(sleeper.pid, cookie)
    assert send(identity, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM
    assert not send(identity, signal.SIGTERM)


def test_a_process_that_is_gone_has_no_identity(sleeper: "subprocess.Popen[bytes]", cookie: str) -> None:
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(LongwatchError, match=str(sleeper.pid)):
        identify(sleeper.pid, cookie)


@pytest.mark.guarantee("K23")
def test_the_cookie_finds_exactly_its_own(sleeper: "subprocess.Popen[bytes]", cookie: str) -> None:
    assert find_by_cookie(cookie) == (identify(sleeper.pid, cookie),)
    assert find_by_cookie(cookie[:-1]) == ()
    assert find_by_cookie(new_cookie()) == ()


@pytest.mark.guarantee("K23")
def test_the_cookie_of_a_step_finds_the_children_of_the_step(
    cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COOKIE_VARIABLE, cookie)
    nested = new_cookie()
    with subprocess.Popen(["sleep", "600"], env={COOKIE_VARIABLE: nested}) as child:
        assert [one.pid for one in find_by_cookie(cookie)] == [child.pid]
        assert [one.pid for one in find_by_cookie(nested)] == [child.pid]
        child.kill()


def test_a_name_with_parentheses_and_spaces_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600"]) as child:
        stat = read_stat(child.pid)
        child.kill()
    assert stat is not None
    assert stat.ppid == os.getpid()
