import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.tree_living import living

from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.identity import alive, find_by_cookie, identify
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import end_tree, new_cookie, run

SUPPORT = Path(__file__).parents[1] / "support"
RUNAWAY = (sys.executable, str(SUPPORT / "tree_runaway.py"))
WAYS = (
    "setsid",
    "daemon",
    "daemon-without-environment",
    "holder",
    "respawn",
    "comet",
    "comet-in-new-sessions",
)


def wait_until(condition: Callable[[], object], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def token() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    left = living(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def supervise(
    folder: Path, *argv: str, should_stop: Callable[[], bool] = lambda: False, **limits: float
) -> ProcessRecord:
    command = Command(
        argv=argv,
        cwd=folder,
        environment={"PATH": os.environ["PATH"]},
        log=folder / "log",
        limits=Limits(**{"wall_s": 60, "grace_s": 0.3, **limits}),  # type: ignore[arg-type]
        phase="test",
    )
    return run(command, should_stop=should_stop)


@pytest.mark.guarantee("K18", "K20")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_a_child_that_ended(way: str, token: str, tmp_path: Path) -> None:
    record = supervise(tmp_path, *RUNAWAY, way, token)
    assert living(token) == []
    assert record.exit_code == 0
    assert record.limit is None
    assert record.left_behind > 0


@pytest.mark.guarantee("K18")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_outlives_a_child_without_control_groups(
    way: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longwatch.kernel.cgroup.create", lambda *_, **__: None)
    record = supervise(tmp_path, *RUNAWAY, way, token)
    assert living(token) == []
    assert record.left_behind > 0


@pytest.mark.guarantee("K18")
@pytest.mark.parametrize("way", ["term-ignored", "linger"])
def test_a_child_that_ignores_term_is_killed(way: str, token: str, tmp_path: Path) -> None:
    record = supervise(tmp_path, *RUNAWAY, way, token, wall_s=1)
    assert (record.limit, record.signal) == (LimitHit.WALL, signal.SIGKILL)
    assert living(token) == []


@pytest.mark.guarantee("K17", "K18")
def test_a_fork_bomb_is_bounded_and_ended(token: str, tmp_path: Path) -> None:
    record = supervise(tmp_path, *RUNAWAY, "bomb", token, wall_s=2, processes=40)
    assert record.limit in {LimitHit.WALL, LimitHit.PROCESSES}
    assert living(token) == []


@pytest.mark.guarantee("K17", "K18")
def test_too_many_processes_are_noticed_without_control_groups(
    token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longwatch.kernel.cgroup.create", lambda *_, **__: None)
    starter = f"for i in 1 2 3 4 5 6 7 8 9; do {' '.join(RUNAWAY)} linger {token} & done; wait"
    record = supervise(tmp_path, "/bin/sh", "-c", starter, processes=5)
    assert record.limit == LimitHit.PROCESSES or record.exit_code != 0
    assert living(token) == []


@pytest.mark.guarantee("K18")
def test_a_stop_in_the_middle_ends_everything(token: str, tmp_path: Path) -> None:
    starter = f"{' '.join(RUNAWAY)} daemon {token}; {' '.join(RUNAWAY)} respawn {token}; exec sleep 600"
    record = supervise(tmp_path, "/bin/sh", "-c", starter, should_stop=lambda: len(living(token)) >= 3)
    assert record.limit is LimitHit.STOPPED
    assert living(token) == []


@pytest.mark.guarantee("K20")
def test_an_orphan_that_holds_the_pipe_is_not_waited_for(token: str, tmp_path: Path) -> None:
    record = supervise(tmp_path, *RUNAWAY, "holder", token, wall_s=30)
    assert record.limit is None
    assert record.left_behind == 1


@pytest.mark.guarantee("K20")
def test_a_final_result_without_an_exit_is_used(token: str, tmp_path: Path) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.lines: list[bytes] = []

        def line(self, line: bytes, elapsed_s: float) -> None:
            self.lines.append(line)

        def reason_to_end(self, elapsed_s: float) -> str | None:
            return "it printed its result" if self.lines else None

    watcher = Watcher()
    command = Command(
        argv=(*RUNAWAY, "result-and-stays", token),
        cwd=tmp_path,
        environment={},
        log=tmp_path / "log",
        limits=Limits(wall_s=60, grace_s=0.2),
        phase="test",
    )
    record = run(command, monitor=watcher)
    assert watcher.lines == [b'{"type": "result"}']
    assert (record.limit, record.limit_detail) == (LimitHit.MONITOR, "it printed its result")
    assert living(token) == []


@pytest.mark.guarantee("K18", "K23")
@pytest.mark.parametrize("way", ["setsid", "daemon", "respawn", "daemon-without-environment"])
def test_a_new_supervisor_ends_what_a_killed_one_left(way: str, token: str, tmp_path: Path) -> None:
    from longwatch.kernel.cgroup import CgroupKind, detect  # noqa: PLC0415 - only this test needs it

    if way == "daemon-without-environment" and detect().kind is CgroupKind.NONE:
        pytest.skip("without control groups nothing marks a daemon that cleared its environment")
    cookie = new_cookie()
    with subprocess.Popen(
        [sys.executable, str(SUPPORT / "tree_supervisor.py"), str(tmp_path), cookie, way, token]
    ) as supervisor:
        wait_until(lambda: find_by_cookie(cookie) and living(token) and "started" in log_text(tmp_path))
        os.kill(supervisor.pid, signal.SIGKILL)
    script = f"from longwatch.kernel.process import end_tree; print(end_tree(None, {cookie!r}, grace_s=0.2))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(ended.stdout) >= 2
    assert living(token) == []
    assert find_by_cookie(cookie) == ()


def log_text(folder: Path) -> str:
    log = folder / "log"
    return log.read_text() if log.exists() else ""


@pytest.mark.guarantee("K19")
def test_end_tree_spares_a_stranger_under_the_recorded_pid(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        recorded = identify(stranger.pid, "0" * 32)
        other = type(recorded)(recorded.boot_id, recorded.pid, recorded.start_ticks - 1, recorded.cookie)
        elsewhere = type(recorded)("another-boot", recorded.pid, recorded.start_ticks, recorded.cookie)
        assert end_tree(other, other.cookie, grace_s=0.1) == 0
        assert end_tree(elsewhere, elsewhere.cookie, grace_s=0.1) == 0
        assert alive(recorded)
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.guarantee("K18", "K19")
def test_other_children_of_the_caller_are_spared(token: str, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as before:
        supervise(tmp_path, *RUNAWAY, "setsid", token)
        assert before.poll() is None
        before.kill()


@pytest.mark.guarantee("K18")
def test_no_descriptor_and_no_thread_is_left(token: str, tmp_path: Path) -> None:
    supervise(tmp_path, *RUNAWAY, "setsid", token)
    before = open_descriptors(), threading.active_count()
    supervise(tmp_path, *RUNAWAY, "holder", token)
    assert (open_descriptors(), threading.active_count()) == before


def open_descriptors() -> int:
    return len(tuple(Path("/proc/self/fd").iterdir()))
