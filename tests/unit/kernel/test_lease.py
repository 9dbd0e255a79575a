"""One owner per watch, at every moment (specification K1 to K3)."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from tests.support import repositories, toy

from longwatch.cli import daemon
from longwatch.kernel import lease
from longwatch.kernel.clock import boot_id
from longwatch.kernel.errors import LeaseHeldError, LongwatchError, StateError
from longwatch.kernel.identity import identify
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

HOLD = """
import sys, time
from pathlib import Path
from longwatch.kernel import lease
held = lease.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
INHERIT = """
import sys
from pathlib import Path
from longwatch.kernel import lease
held = lease.inherit(Path(sys.argv[1]), int(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""
CHILD = "import os, sys; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n != '3'])"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lease"


@pytest.fixture
def program():
    started = []

    def start(text, *argv, **how):
        process = subprocess.Popen(
            [sys.executable, "-c", text, *map(str, argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=toy.PROJECT,
            **how,
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait()


def free(path):
    """Whether nobody holds it; takes and releases it."""
    try:
        lease.acquire(path).close()
    except LeaseHeldError:
        return False
    return True


@pytest.mark.guarantee("K1")
def test_a_second_supervisor_is_refused_at_once_by_name(path, program):
    holder = program(HOLD, path)
    began = time.monotonic()
    with pytest.raises(LeaseHeldError) as refused:
        lease.acquire(path)
    assert time.monotonic() - began < 1
    record = lease.holder(path)
    assert str(holder.pid) in str(refused.value)
    assert record.since in str(refused.value)
    assert record.living
    assert holder.poll() is None, "it is never stolen"
    assert int(refused.value.exit_code) == 75


@pytest.mark.guarantee("K1")
def test_a_holder_that_has_not_signed_yet_is_no_reason_to_steal(path, program):
    program(HOLD, path)
    lease.holder_path(path).unlink()
    with pytest.raises(LeaseHeldError, match="has not signed yet"):
        lease.acquire(path)


@pytest.mark.guarantee("K1")
def test_one_process_cannot_hold_it_twice(path):
    held = lease.acquire(path)
    with pytest.raises(LeaseHeldError, match=f"process {os.getpid()} "):
        lease.acquire(path)
    held.close()
    assert free(path)


@pytest.mark.guarantee("K3")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_holder_frees_it_at_once_whatever_the_record_says(path, program, number):
    holder = program(HOLD, path)
    holder.send_signal(number)
    holder.wait()
    assert lease.holder(path).identity.pid == holder.pid
    assert not lease.holder(path).living
    # The record may even name a process that lives: it is for people, the lock is the truth.
    record = json.loads(lease.holder_path(path).read_text())
    record["identity"] = msgspec.to_builtins(identify(os.getpid(), ""))
    lease.holder_path(path).write_text(json.dumps(record))
    assert lease.holder(path).living
    assert free(path)


@pytest.mark.guarantee("K3")
@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"identity": 7}', b"\xff\xfe"])
def test_a_record_that_is_damaged_keeps_nobody_out(path, record):
    lease.acquire(path).close()
    lease.holder_path(path).write_bytes(record)
    assert lease.holder(path) is None
    assert free(path)
    assert lease.holder(path).identity.pid == os.getpid()


@pytest.mark.guarantee("K3")
def test_reading_the_owner_never_touches_the_lock(path, program, monkeypatch):
    holder = program(HOLD, path)

    def probed(*_):
        raise AssertionError("the lock was probed")

    monkeypatch.setattr(fcntl, "flock", probed)
    monkeypatch.setattr(fcntl, "lockf", probed)
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    assert lease.holder(path).living
    assert lease.holder(path).identity.pid == holder.pid
    assert str(path) not in opened


@pytest.mark.guarantee("K3")
@pytest.mark.parametrize("change", ["pid", "start", "boot", "host"])
def test_alive_means_pid_and_start_and_boot_and_host(path, change):
    held = lease.acquire(path)
    assert lease.holder(path).living
    text = lease.holder_path(path).read_text()
    mine = lease.holder(path)
    old, new = {
        "pid": (str(mine.identity.pid), "1"),
        "start": (str(mine.identity.start_ticks), str(mine.identity.start_ticks - 1)),
        "boot": (boot_id(), "another-boot"),
        "host": (mine.host, "another-host"),
    }[change]
    lease.holder_path(path).write_text(text.replace(old, new))
    assert not lease.holder(path).living
    held.close()


@pytest.mark.guarantee("K2")
def test_a_lease_is_handed_over_across_exec_and_owned_at_every_moment(path, program):
    held = lease.acquire(path)
    heir = program(INHERIT, path, held.descriptor, pass_fds=(held.descriptor,))
    assert not free(path)
    assert lease.holder(path).identity.pid == heir.pid
    held.close()
    assert not free(path), "closing our copy does not unlock the heir's"
    heir.stdin.close()
    heir.wait()
    assert free(path)


@pytest.mark.guarantee("K2")
def test_the_giver_may_die_at_any_moment_and_the_heir_still_owns(path, program):
    giver = f"""
import subprocess, sys
from pathlib import Path
from longwatch.kernel import lease
held = lease.acquire(Path(sys.argv[1]))
heir = subprocess.Popen([sys.executable, "-c", {INHERIT!r}, sys.argv[1], str(held.descriptor)],
                        stdin=0, stdout=1, pass_fds=(held.descriptor,))
heir.wait()
"""
    process = program(giver, path)
    owner = lease.holder(path).identity.pid
    assert owner != process.pid
    process.kill()
    process.wait()
    assert not free(path)
    process.stdin.close()


@pytest.mark.guarantee("K2")
def test_a_descriptor_that_is_not_the_leases_is_refused(path, tmp_path):
    lease.acquire(path).close()
    (tmp_path / "other").touch()
    other = os.open(tmp_path / "other", os.O_RDWR)
    with pytest.raises(StateError, match="was replaced"):
        lease.inherit(path, other)
    with pytest.raises(StateError, match="no lease was handed over"):
        lease.inherit(path, 10_000)


@pytest.mark.guarantee("K1", "K2")
def test_a_descriptor_of_the_lease_that_does_not_hold_it_is_refused(path, program):
    program(HOLD, path)
    mine = os.open(path, os.O_RDWR)
    with pytest.raises(LeaseHeldError):
        lease.inherit(path, mine)
    os.close(mine)


@pytest.mark.guarantee("K1")
def test_a_lease_file_that_was_replaced_is_refused(path, monkeypatch):
    real = fcntl.flock

    def replaced(descriptor, how):
        real(descriptor, how)
        path.unlink()
        path.touch()

    monkeypatch.setattr(fcntl, "flock", replaced)
    with pytest.raises(StateError, match="was replaced while the lease was taken"):
        lease.acquire(path)
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, how: (real(descriptor, how), path.unlink()))
    with pytest.raises(StateError, match="was replaced"):
        lease.acquire(path)
    monkeypatch.undo()
    assert free(path), "nothing of the failed tries is held"


@pytest.mark.guarantee("K1")
def test_the_lease_file_is_never_unlinked_and_a_link_is_not_followed(path, tmp_path):
    lease.acquire(path).close()
    inode = path.stat().st_ino
    lease.acquire(path).close()
    assert path.stat().st_ino == inode
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(LongwatchError, match="cannot be opened"):
        lease.acquire(tmp_path / "link")


@pytest.mark.guarantee("K8")
def test_a_folder_that_is_missing_is_a_clear_error(tmp_path):
    with pytest.raises(LongwatchError, match=r"no-such-folder/lease cannot be opened: No such file"):
        lease.acquire(tmp_path / "no-such-folder" / "lease")


@pytest.mark.guarantee("K2")
def test_no_other_child_inherits_the_descriptor(path):
    held = lease.acquire(path)
    assert not os.get_inheritable(held.descriptor)
    shown = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, close_fds=False
    )
    assert str(path) not in shown.stdout
    held.close()


@pytest.mark.guarantee("K2")
def test_the_heir_does_not_pass_it_on(path, program):
    heir = f"""
import subprocess, sys
from pathlib import Path
from longwatch.kernel import lease
lease.inherit(Path(sys.argv[1]), int(sys.argv[2]))
out = subprocess.run([sys.executable, "-c", {CHILD!r}], capture_output=True, text=True, close_fds=False).stdout
print("held")
print(out, flush=True)
sys.stdin.read()
"""
    held = lease.acquire(path)
    process = program(heir, path, held.descriptor, pass_fds=(held.descriptor,))
    assert str(path) not in process.stdout.readline()
    held.close()


@pytest.mark.guarantee("K2", "K17")
def test_a_step_program_does_not_see_the_lease(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=60),))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy", "supervise", str(tmp_path)], cwd=toy.PROJECT
    )
    try:
        until(lambda: any(watch.steps.glob("*/progress.json")))
        until(lambda: open_steps(watch)[0].identity)
        (left,) = open_steps(watch)
        assert str(watch.lease) in open_files(process.pid)
        assert open_files(left.identity.pid)
        assert str(watch.lease) not in open_files(left.identity.pid)
        assert str(watch.database) not in open_files(left.identity.pid)
    finally:
        process.terminate()
        assert process.wait(20) == 0


def open_steps(watch):
    store = Store.read(watch.database)
    try:
        return store.open_steps()
    finally:
        store.close()


def open_files(pid):
    return [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# -- start


LONGWATCH = [sys.executable, "-m", "longwatch.cli.main"]


@pytest.fixture
def paused(tmp_path):
    """A real watch that is paused, so that its daemon waits and spends nothing."""
    root = repositories.new_repository(tmp_path / "repository")
    repositories.write(root, "tests/test_one.py", "def test_one():\n    assert True\n")
    repositories.commit_all(root)
    longwatch(root, "init", "migrate", "--worker", "command", "--argv", "true")
    longwatch(root, "pause")
    watch = Watch(root)
    yield watch
    holder = lease.holder(watch.lease)
    if holder is not None and holder.living:
        longwatch(root, "stop")
        until(lambda: not holder.living)


def longwatch(root, *words):
    subprocess.run([*LONGWATCH, *words], cwd=root, check=True, capture_output=True)


@pytest.mark.guarantee("K1", "K2")
def test_of_many_starts_at_once_exactly_one_owns(paused):
    starts = [
        subprocess.Popen(
            [*LONGWATCH, "start"], cwd=paused.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    said = [(*process.communicate(timeout=120), process.returncode) for process in starts]
    assert sorted(code for _, _, code in said) == [0, 75, 75]
    assert sum(b"owns this watch already" in err or b"has not signed" in err for _, err, _ in said) == 2
    holder = lease.holder(paused.lease)
    assert holder.living
    assert f"Process {holder.identity.pid} supervises".encode() in b"".join(out for out, _, _ in said)
    assert not free(paused.lease)


@pytest.mark.guarantee("K2")
def test_a_watch_is_owned_at_every_moment_of_a_start(paused):
    process = subprocess.Popen([*LONGWATCH, "start"], cwd=paused.root, stdout=subprocess.PIPE)
    until(lambda: lease.holder(paused.lease) is not None)
    tries = 0
    while process.poll() is None:
        assert not free(paused.lease)
        tries += 1
    assert (process.returncode, free(paused.lease)) == (0, False)
    assert tries > 10
    owner = lease.holder(paused.lease).identity.pid
    assert str(owner).encode() in process.stdout.read()
    assert open_files(owner).count(str(paused.lease)) == 1


@pytest.mark.guarantee("K2")
def test_a_daemon_that_cannot_begin_leaves_the_watch_free_and_says_why(tmp_path):
    watch = Watch(tmp_path)
    watch.hidden.mkdir()
    with pytest.raises(LongwatchError, match=r"before it was ready.*says:(.|\n)*longwatch\.toml"):
        daemon.start(watch)
    assert free(watch.lease)
