import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from longwatch.kernel import cgroup
from longwatch.kernel.cgroup import CgroupKind
from longwatch.kernel.child import Command, Monitor, ProcessRecord, Silent
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.identity import COOKIE_VARIABLE, find_by_cookie, open_pidfd
from longwatch.kernel.limits import MIB, LimitHit, Limits
from longwatch.kernel.process import end_tree, exit_code, new_cookie, run, spawn_detached, tail

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


class Reader:
    def __init__(self, reason: Callable[[float], str | None] = lambda _: None) -> None:
        self.lines: list[bytes] = []
        self.asked_s: list[float] = []
        self._reason = reason

    def line(self, line: bytes, elapsed_s: float) -> None:
        self.lines.append(line)

    def reason_to_end(self, elapsed_s: float) -> str | None:
        self.asked_s.append(elapsed_s)
        return self._reason(elapsed_s)


@pytest.fixture
def go(tmp_path: Path) -> Callable[..., ProcessRecord]:
    def start(
        *argv: str,
        stdin: bytes = b"",
        secrets: tuple[str, ...] = (),
        monitor: Monitor | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        environment: dict[str, str] = PATH,
        **limits: float,
    ) -> ProcessRecord:
        command = Command(
            argv=argv,
            cwd=tmp_path,
            environment=environment,
            log=tmp_path / "logs" / "log",
            limits=Limits(**{"wall_s": 60, "grace_s": 0.3, **limits}),  # type: ignore[arg-type]
            phase="test",
            stdin=stdin,
            secrets=secrets,
        )
        return run(command, monitor=monitor or Silent(), should_stop=should_stop)

    return start


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


Go = Callable[..., ProcessRecord]


@pytest.mark.guarantee("K22")
def test_a_record_tells_everything(go: Go, tmp_path: Path) -> None:
    record = go("sh", "-c", "echo out; echo err >&2; exit 3")
    log = Path(record.log)
    assert sorted(log.read_text().split()) == ["err", "out"]
    assert (record.exit_code, record.signal, record.limit, record.ok) == (3, None, None, False)
    assert record.log_sha256 == sha256(log.read_bytes()).hexdigest()
    assert record.log_bytes == log.stat().st_size == 8
    assert (record.cwd, record.phase, record.argv[0]) == (str(tmp_path), "test", "sh")
    assert record.started_at < record.ended_at
    assert record.first_output_s is not None
    assert 0 < record.first_output_s <= record.duration_s
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.guarantee("K22")
def test_a_signal_is_told_from_an_exit(go: Go) -> None:
    record = go("sh", "-c", "kill -KILL $$")
    assert (record.exit_code, record.signal, record.limit) == (None, signal.SIGKILL, None)


@pytest.mark.guarantee("K22")
def test_cpu_and_memory_of_grandchildren_count(go: Go) -> None:
    work = "x = bytearray(150_000_000); t = __import__('time'); e = t.process_time() + 0.5\nwhile t.process_time() < e: pass"
    record = go("sh", "-c", f'{sys.executable} -c "{work}"; true')
    assert record.cpu_s >= 0.5
    assert record.peak_memory_bytes > 140_000_000


@pytest.mark.guarantee("K17")
def test_input_is_fed_and_closed(go: Go) -> None:
    text = os.urandom(3 * MIB)
    reader = Reader()
    go("sha256sum", stdin=text, monitor=reader)
    assert reader.lines[0].split()[0].decode() == sha256(text).hexdigest()


@pytest.mark.guarantee("K17")
def test_a_child_that_prints_while_it_is_fed_does_not_hang(go: Go) -> None:
    record = go("cat", stdin=b"x" * (5 * MIB))
    assert record.log_bytes == 5 * MIB


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize("script", ["exit 0", "exec <&-; sleep 0.3", "sleep 0.3"])
def test_a_child_that_never_reads_its_input_does_not_hang(go: Go, script: str) -> None:
    assert go("sh", "-c", script, stdin=b"x" * (5 * MIB)).ok


@pytest.mark.guarantee("K17")
def test_without_input_there_is_none(go: Go) -> None:
    assert go("cat").log_bytes == 0


@pytest.mark.guarantee("K17")
def test_the_environment_is_exactly_what_was_given(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERVISOR_TOKEN", "leak")
    reader = Reader()
    go("/usr/bin/env", environment={"ONLY": "this"}, monitor=reader)
    names = {line.split(b"=")[0].decode() for line in reader.lines}
    assert names == {"ONLY", COOKIE_VARIABLE}


@pytest.mark.guarantee("K2", "K17")
def test_a_child_has_its_own_session_no_descriptors_and_dies_first(go: Go) -> None:
    # An inheritable descriptor of ours must stay ours.
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    script = """
import os, resource, signal
print(os.getsid(0) == os.getpid())
print(sorted(int(name) for name in os.listdir('/proc/self/fd'))[:-1])
print(open('/proc/self/oom_score_adj').read().strip())
print(resource.getrlimit(resource.RLIMIT_CORE)[0])
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    reader = Reader()
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        go(*python(script), monitor=reader)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
        os.close(read_end)
        os.close(write_end)
    assert reader.lines == [b"True", b"[0, 1, 2]", b"1000", b"0", b"True set()"]


@pytest.mark.guarantee("K17")
def test_files_cannot_grow_beyond_their_limit(go: Go, tmp_path: Path) -> None:
    record = go("sh", "-c", "head -c 3000000 /dev/zero > big", file_bytes=MIB)
    assert not record.ok
    assert (tmp_path / "big").stat().st_size == MIB


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize(
    ("script", "limits", "hit"),
    [
        ("echo hi; sleep 600", {"wall_s": 1}, LimitHit.WALL),
        ("sleep 600", {"start_s": 1}, LimitHit.START),
        ("echo hi; sleep 600", {"idle_s": 1}, LimitHit.IDLE),
        ("exec 1>&- 2>&-; sleep 600", {"idle_s": 1}, LimitHit.IDLE),
        ("sleep 600", {"free_disk_bytes": 2**62}, LimitHit.DISK),
    ],
)
def test_each_limit_ends_the_child_in_time(
    go: Go, script: str, limits: dict[str, float], hit: LimitHit
) -> None:
    record = go("sh", "-c", script, **limits)
    assert record.limit is hit
    assert record.limit_detail
    assert not record.ok
    assert record.duration_s < 60


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize(
    "script",
    [
        "e=$(($(date +%s)+3)); while [ $(date +%s) -lt $e ]; do :; done",
        "for i in 1 2 3 4 5 6; do sleep 0.5; done",
        "sh -c 'for i in 1 2 3 4 5 6; do sleep 0.5; echo $i; done'",
    ],
    ids=["cpu", "children", "output"],
)
def test_work_is_not_idle(go: Go, script: str) -> None:
    assert go("sh", "-c", script, idle_s=1.5).limit is None


@pytest.mark.guarantee("K17")
def test_a_heartbeat_without_work_is_idle(go: Go) -> None:
    script = "import time\nfor _ in range(3000): time.sleep(0.02)"
    assert go(*python(script), idle_s=2).limit is LimitHit.IDLE


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize("with_groups", [True, False])
def test_memory_is_limited(go: Go, monkeypatch: pytest.MonkeyPatch, with_groups: bool) -> None:
    if not with_groups:
        monkeypatch.setattr(cgroup, "create", lambda *_, **__: None)
    elif cgroup.detect().kind is CgroupKind.NONE:
        pytest.skip("no writable control groups on this host")
    script = "import time; x = b'x' * 300_000_000; time.sleep(600)"
    record = go(*python(script), memory_bytes=150_000_000)
    assert record.limit is LimitHit.MEMORY
    assert not record.ok


@pytest.mark.guarantee("K17")
def test_shared_memory_counts_once(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "create", lambda *_, **__: None)
    script = "import os, time; x = b'x' * 100_000_000; [os.fork() for _ in range(3)]; time.sleep(1)"
    assert go(*python(script), memory_bytes=300_000_000).limit is None


@pytest.mark.guarantee("K17", "K24")
@pytest.mark.parametrize("program", [("yes",), ("cat", "/dev/zero"), ("sh", "-c", "yes >&2")])
def test_output_without_end_does_no_harm(go: Go, program: tuple[str, ...]) -> None:
    record = go(*program, log_bytes=300_000)
    assert record.limit is LimitHit.LOG
    assert Path(record.log).stat().st_size <= 300_000


@pytest.mark.guarantee("K17", "K19")
def test_output_that_ignores_term_does_no_harm(go: Go) -> None:
    record = go("sh", "-c", "trap '' TERM; yes", log_bytes=MIB, grace_s=1)
    assert record.limit is LimitHit.LOG
    assert Path(record.log).stat().st_size <= MIB


@pytest.mark.guarantee("K17")
def test_too_much_output_counts_also_if_the_child_is_faster(go: Go) -> None:
    record = go("head", "-c", "5000", "/dev/zero", log_bytes=4000)
    assert (record.limit, record.ok, record.log_bytes) == (LimitHit.LOG, False, 5000)


@pytest.mark.guarantee("K24")
def test_secrets_reach_neither_log_nor_record_nor_reader(go: Go) -> None:
    reader = Reader(lambda elapsed: "saw hunter2-secret" if elapsed > 1 else None)
    script = "import sys,time\nfor c in 'key=hunter2-secret\\n': sys.stdout.write(c); sys.stdout.flush(); time.sleep(.01)\ntime.sleep(60)"
    record = go(*python(script), "hunter2-secret", secrets=("hunter2-secret",), monitor=reader)
    assert reader.lines == [b"key=[secret]"]
    assert Path(record.log).read_bytes() == b"key=[secret]\n"
    assert "hunter2" not in repr(record)
    assert record.argv[-1] == "[secret]"
    assert record.limit_detail == "saw [secret]"


@pytest.mark.guarantee("M8")
def test_long_lines_and_invalid_utf8_reach_the_reader(go: Go) -> None:
    script = "import sys; w = sys.stdout.buffer.write; w(b'a' * 8_388_608 + b'\\n'); w(b'b' * 9_000_000 + b'\\n'); w(b'\\xff\\xfe\\nend')"
    reader = Reader()
    go(*python(script), monitor=reader)
    assert [len(line) for line in reader.lines] == [8 * MIB, 8 * MIB, 2, 3]
    assert reader.lines[2:] == [b"\xff\xfe", b"end"]


def test_the_reader_is_asked_again_and_again_and_can_end_the_child(go: Go) -> None:
    reader = Reader(lambda _: "enough" if len(reader.asked_s) >= 8 else None)
    record = go("yes", "", monitor=reader, log_bytes=2**40)
    assert (record.limit, record.limit_detail) == (LimitHit.MONITOR, "enough")
    assert len(reader.asked_s) == 8, "however much the child prints"


def test_a_reader_that_breaks_leaves_nothing_behind(go: Go, tmp_path: Path) -> None:
    class Broken(Silent):
        def reason_to_end(self, elapsed_s: float) -> str | None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go("sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 600", monitor=Broken())
    pid_file = tmp_path / "pid"
    assert not pid_file.exists() or not Path("/proc", pid_file.read_text().strip()).exists()


@pytest.mark.guarantee("K16")
def test_a_stop_ends_the_child(go: Go) -> None:
    record = go("sleep", "600", should_stop=lambda: True)
    assert (record.limit, record.signal) == (LimitHit.STOPPED, signal.SIGTERM)


def test_last_words_after_term_are_taken(go: Go) -> None:
    script = "trap 'head -c 500000 /dev/zero; echo bye; exit 7' TERM; echo hi; while :; do sleep 0.05; done"
    record = go("sh", "-c", script, wall_s=1, grace_s=20)
    assert record.exit_code == 7
    assert Path(record.log).read_bytes().endswith(b"bye\n")


@pytest.mark.parametrize(
    "program", ["no-such-program", "/no/such/program", "/etc/passwd", "/etc", "nul\0byte", ""]
)
def test_a_program_that_cannot_start_is_named(go: Go, program: str) -> None:
    with pytest.raises(ConfigError) as error:
        go(program)
    assert program in str(error.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    command = Command(
        argv=("true",),
        cwd=tmp_path / "gone",
        environment={},
        log=tmp_path / "log",
        limits=Limits(wall_s=1),
        phase="test",
    )
    with pytest.raises(ConfigError, match="gone"):
        run(command)


def test_a_failed_start_leaves_no_group(go: Go) -> None:
    cookie = new_cookie()
    with pytest.raises(ConfigError):
        spawn_detached(("no-such",), cwd=Path("/"), environment={}, log=Path(os.devnull), cookie=cookie)
    assert cgroup.find(cookie) is None


@pytest.mark.guarantee("K23")
def test_a_detached_program_outlives_its_starter_and_is_ended_by_another(tmp_path: Path) -> None:
    cookie = new_cookie()
    starter = f"""
from pathlib import Path
from longwatch.kernel.process import spawn_detached
spawn_detached(("sh", "-c", "echo started; read line; echo end: $line; exec sleep 600"), cwd=Path({str(tmp_path)!r}),
    environment={PATH!r}, log=Path({str(tmp_path / "log")!r}), cookie={cookie!r})
"""
    subprocess.run([sys.executable, "-c", starter], check=True)
    deadline = time.monotonic() + 30
    while "end:" not in (tmp_path / "log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (identity,) = find_by_cookie(cookie)
    pidfd = open_pidfd(identity)
    assert pidfd is not None
    assert os.getsid(identity.pid) == identity.pid
    assert end_tree(identity, cookie, grace_s=5) == 1
    os.close(pidfd)
    assert find_by_cookie(cookie) == ()
    assert cgroup.find(cookie) is None
    assert (tmp_path / "log").read_text() == "started\nend:\n"


def test_the_exit_code_of_a_detached_child_is_taken_once(tmp_path: Path) -> None:
    cookie = new_cookie()
    identity = spawn_detached(
        ("sh", "-c", "exit 9"), cwd=tmp_path, environment=PATH, log=tmp_path / "log", cookie=cookie
    )
    os.waitid(os.P_PID, identity.pid, os.WEXITED | os.WNOWAIT)
    assert end_tree(identity, cookie, grace_s=1) == 0
    assert exit_code(identity) == 9
    assert exit_code(identity) is None


def test_the_exit_code_of_a_running_child_is_unknown(tmp_path: Path) -> None:
    cookie = new_cookie()
    identity = spawn_detached(
        ("sleep", "600"), cwd=tmp_path, environment=PATH, log=tmp_path / "log", cookie=cookie
    )
    assert exit_code(identity) is None
    assert end_tree(identity, cookie, grace_s=5) == 1
    assert exit_code(identity) == -signal.SIGTERM


def test_the_last_lines_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100_000 + b"\none\ntw\xff\nthree\n")
    assert tail(log, 2) == "tw\N{REPLACEMENT CHARACTER}\nthree"
    assert len(tail(log, 9)) < 20_000
