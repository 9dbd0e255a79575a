"""What every executor promises (specification K41). One suite for all of them."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.support import toy

from longwatch.executors.local import LocalExecutor
from longwatch.kernel.child import Identity
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.identity import alive, find_by_cookie, identify
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Job
from longwatch.kernel.process import new_cookie
from longwatch.kernel.program import LOG

EXECUTORS = {"local": lambda: LocalExecutor({"PATH": os.environ["PATH"], "GIVEN": "by the executor"})}

ESCAPES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(os.path.join(sys.argv[1], "escaped"), "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
time.sleep({sleep_s})
"""
OBEYS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(600)
"""
DEAF = OBEYS.replace("lambda *_: sys.exit(7)", "signal.SIG_IGN")
PARENT = """
import sys
from pathlib import Path
import msgspec
from tests.contract.test_executor import EXECUTORS, job
running = EXECUTORS[sys.argv[1]]().start(Path(sys.argv[2]), job(sys.argv[3]), sys.argv[4])
sys.stdout.buffer.write(msgspec.json.encode(running.identity))
sys.stdout.flush()
import os
os.kill(os.getpid(), 9)
"""


def job(text: str, **environment: str) -> Job:
    return Job(
        argv=(sys.executable, "-c", text), cwd=Path("/"), limits=Limits(wall_s=60), environment=environment
    )


@pytest.fixture(params=EXECUTORS)
def name(request):
    return request.param


@pytest.fixture
def executor(name):
    return EXECUTORS[name]()


@pytest.fixture
def cookie():
    mark = new_cookie()
    yield mark
    for found in find_by_cookie(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)


def until(condition):
    deadline = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


def wait(running):
    assert select.select([running], [], [], 60)[0], "its descriptor never became readable"


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def log_of(folder):
    log = folder / LOG
    return log.read_text() if log.exists() else ""


@pytest.mark.guarantee("K41", "K17")
def test_a_program_runs_with_its_folder_its_environment_and_its_log(executor, cookie, tmp_path):
    text = "import os, sys; print(sys.argv[1:], dict(os.environ), os.getcwd()); print('err', file=sys.stderr)"
    running = executor.start(tmp_path, job(text, ASKED="by the job"), cookie)
    wait(running)
    running.end()
    said = log_of(tmp_path)
    for part in (str([str(tmp_path)]), "'GIVEN': 'by the executor'", "'ASKED': 'by the job'", cookie, "err"):
        assert part in said
    assert "HOME" not in said, "nothing else of our environment"


@pytest.mark.guarantee("K41")
def test_the_descriptor_is_readable_when_it_has_ended_and_not_before(executor, cookie, tmp_path):
    running = executor.start(
        tmp_path, job("import sys; sys.stdin.read(); import time; time.sleep(0.3)"), cookie
    )
    assert not running.ended()
    assert select.select([running], [], [], 0)[0] == []
    wait(running)
    assert running.ended()
    running.end()
    assert running.ended()


@pytest.mark.guarantee("K41", "K17")
def test_a_program_has_a_session_of_its_own_and_outlives_our_signals(executor, cookie, tmp_path):
    running = executor.start(
        tmp_path,
        job("import os; print(os.getsid(0), os.getpid(), flush=True); import time; time.sleep(600)"),
        cookie,
    )
    session, pid = until(lambda: log_of(tmp_path).split())
    assert session == pid == str(running.identity.pid)
    assert int(session) != os.getsid(0)
    assert running.end() >= 1


@pytest.mark.guarantee("K41", "K12")
def test_a_program_that_is_asked_to_stop_may_end_in_good_order(executor, cookie, tmp_path):
    running = executor.start(tmp_path, job(OBEYS), cookie)
    until(lambda: "ready" in log_of(tmp_path))
    running.ask_to_stop()
    wait(running)
    running.end()
    running.ask_to_stop()


@pytest.mark.guarantee("K41", "K18")
def test_a_program_that_does_not_listen_is_ended(executor, cookie, tmp_path):
    running = executor.start(tmp_path, job(DEAF), cookie)
    until(lambda: "ready" in log_of(tmp_path))
    running.ask_to_stop()
    assert not running.ended()
    assert running.end() == 1
    assert running.ended()
    assert running.end() == 0


@pytest.mark.guarantee("K41", "K18")
@pytest.mark.parametrize("sleep_s", [0, 600], ids=["after it ended", "while it runs"])
def test_its_end_ends_what_escaped(executor, cookie, tmp_path, sleep_s):
    running = executor.start(tmp_path, job(ESCAPES.format(sleep_s=sleep_s)), cookie)
    escaped = identify(
        int(until(lambda: (tmp_path / "escaped").exists() and (tmp_path / "escaped").read_text())), ""
    )
    if not sleep_s:
        wait(running)
    assert alive(escaped)
    assert running.end() >= 1
    assert not alive(escaped)
    assert find_by_cookie(cookie) == ()


@pytest.mark.guarantee("K41", "K18")
def test_no_zombie_and_no_descriptor_is_left(executor, cookie, tmp_path):
    before = descriptors()
    running = executor.start(tmp_path, job("pass"), cookie)
    pid = running.identity.pid
    wait(running)
    running.end()
    assert not Path(f"/proc/{pid}").exists()
    del running
    assert descriptors() == before


def orphan(name, folder, text, cookie) -> Identity:
    """A program whose parent died by kill -9 right after starting it."""
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, name, str(folder), text, cookie],
        cwd=toy.PROJECT, capture_output=True, check=False,
    )  # fmt: skip
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    return msgspec.json.decode(parent.stdout, type=Identity)


@pytest.mark.guarantee("K41", "K23")
def test_a_program_whose_starter_died_is_attached_and_waited_for(name, executor, cookie, tmp_path):
    identity = orphan(name, tmp_path, OBEYS, cookie)
    running = executor.attach(identity, cookie)
    assert running.identity == identity
    until(lambda: "ready" in log_of(tmp_path))
    assert not running.ended()
    running.ask_to_stop()
    wait(running)
    assert running.ended()
    running.end()
    until(lambda: executor.attach(identity, cookie) is None)


@pytest.mark.guarantee("K41", "K23", "K18")
def test_what_a_dead_starter_left_is_ended_by_its_mark(name, executor, cookie, tmp_path):
    identity = orphan(name, tmp_path, ESCAPES.format(sleep_s=600), cookie)
    until((tmp_path / "escaped").exists)
    assert executor.end_leftovers(None, cookie) >= 2
    assert not alive(identity)
    assert find_by_cookie(cookie) == ()
    assert executor.end_leftovers(identity, cookie) == 0


@pytest.mark.guarantee("K41", "K19")
def test_another_process_under_a_recorded_pid_is_neither_attached_nor_ended(executor, cookie):
    with subprocess.Popen(["sleep", "600"]) as stranger:
        mine = identify(stranger.pid, cookie)
        for recorded in (
            Identity(mine.boot_id, mine.pid, mine.start_ticks - 1, cookie),
            Identity("another boot", mine.pid, mine.start_ticks, cookie),
        ):
            assert executor.attach(recorded, cookie) is None
            assert executor.end_leftovers(recorded, cookie) == 0
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.guarantee("K41")
def test_a_program_that_cannot_be_started_is_a_clear_error(executor, cookie, tmp_path):
    missing = Job(argv=("no-such-program",), cwd=Path("/"), limits=Limits(wall_s=1))
    with pytest.raises(ConfigError, match="no-such-program cannot be started"):
        executor.start(tmp_path, missing, cookie)
    with pytest.raises(ConfigError, match="does not exist"):
        executor.start(tmp_path, Job(argv=("true",), cwd=tmp_path / "gone", limits=Limits(wall_s=1)), cookie)
    assert find_by_cookie(cookie) == ()
