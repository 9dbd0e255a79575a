"""Pause, resume, stop and signals, in every phase of a real migrate watch, with and without a living supervisor."""

import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.support.repositories import git
from tests.support.shop import PROGRAM, WORKER, Shop, open_shop, settle

from longwatch.kernel import lease
from longwatch.kernel.identity import read_stat
from longwatch.kernel.journal import Note
from longwatch.kernel.store import Store
from longwatch.observe.status import Status

pytestmark = pytest.mark.e2e

OBEYED_S = 10
"""The promise is a second; a busy machine is forgiven, a supervisor that does not listen is not."""


def at_rest(shop: Shop, seen: Status) -> None:
    """`paused` and `stopped` are said only when no child lives (specification K12)."""
    assert seen.phase in {"paused", "stopped"}
    assert shop.living() == []
    assert shop.programs() == []


def whole(shop: Shop, *jobs: str) -> None:
    assert shop.call("run").returncode == 0, shop.said()
    assert sorted(shop.done()) == sorted(jobs), shop.said()
    assert shop.call("verify").returncode == 0
    assert shop.living() == []


def hold(shop: Shop, phase: str) -> "subprocess.Popen[bytes]":
    """Run until the watch is in this phase, and keep it there."""
    flags = {"implementing": "worker", "verifying": "check", "committing": "commit"}
    if phase in flags:
        shop.raise_flag(flags[phase])
    if phase == "waiting":
        shop.record("a", patch="")
        shop.record("a", 2)
        shop.configure(worker={"retry_delay_s": 3600.0})
    supervisor = shop.begin()
    if phase == "surveying":
        shop.in_step("survey")
    elif phase == "implementing":
        shop.in_step("attempt", "worker")
    elif phase == "verifying":
        shop.in_step("verify", "check:test")
    elif phase == "committing":
        shop.in_step("commit", "git")
    else:
        shop.wait("waiting", lambda seen: seen.phase == "waiting")
    return supervisor


def release(shop: Shop) -> None:
    """Let go of whatever is held. longwatch.toml stays as it is: it must not change while a worker runs."""
    for flag in shop.flags.iterdir():
        flag.unlink()


def shop_for(folder: Path, phase: str) -> Shop:
    """Recordings can fail and then succeed; only a script can be held."""
    return open_shop(folder, ("a",), worker="" if phase == "waiting" else WORKER)


PHASES = ("surveying", "implementing", "verifying", "committing", "waiting")


@pytest.mark.guarantee("K11", "K12", "K13", "K15", "K18", "K27")
@pytest.mark.parametrize(
    ("phase", "verb"),
    [
        *((phase, "pause") for phase in PHASES),
        *((phase, "stop") for phase in PHASES[1::2]),
        ("waiting", "stop"),
    ],
)
def test_a_request_in_every_phase(tmp_path: Path, phase: str, verb: str) -> None:
    shop = shop_for(tmp_path, phase)
    supervisor = hold(shop, phase)
    asked = shop.json(verb)
    assert asked["supervised"] is True
    held = {"pause": ("pausing", "paused"), "stop": ("stopping", "stopped")}[verb]
    seen = shop.wait("obeyed", lambda seen: seen.phase in held, timeout_s=OBEYED_S)
    assert seen.desired == verb
    assert settle(shop, supervisor) == 0
    seen = shop.status()
    assert seen.phase == held[1]
    at_rest(shop, seen)
    release(shop)
    # It never wakes by itself: not by another run, not by the end of a wait.
    before = shop.done()
    assert shop.call("run").returncode == 0
    assert shop.status().phase == held[1]
    assert shop.done() == before
    assert shop.json("resume")["supervised"] is False
    whole(shop, "a")


@pytest.mark.guarantee("K16", "K5", "K18")
@pytest.mark.parametrize("phase", PHASES)
def test_a_signal_in_every_phase(tmp_path: Path, phase: str) -> None:
    shop = shop_for(tmp_path, phase)
    supervisor = hold(shop, phase)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(20) == 0, shop.said()
    assert shop.status().desired == "run"
    assert shop.living() == []
    assert shop.programs() == []
    release(shop)
    if phase == "waiting":
        shop.json("resume")
    # Nobody wished it to stay ended: the next run goes on by itself.
    whole(shop, "a")


@pytest.mark.guarantee("K16", "K5")
@pytest.mark.parametrize("phase", ["implementing", "verifying", "committing"])
def test_a_second_signal_ends_it_at_once(tmp_path: Path, phase: str) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.raise_flag("deaf")
    supervisor = hold(shop, phase)
    supervisor.send_signal(signal.SIGINT)
    shop.wait("stopping", lambda seen: seen.phase in {"stopping", "stopped"})
    supervisor.send_signal(signal.SIGINT)
    assert settle(shop, supervisor, timeout_s=10) == 0
    assert shop.living() == []
    release(shop)
    whole(shop, "a")


@pytest.mark.guarantee("K11", "K12", "K28")
def test_pause_after_the_step(tmp_path: Path) -> None:
    """The attempt may finish, also when its supervisor dies meanwhile; nothing begins after it."""
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    supervisor = hold(shop, "implementing")
    shop.json("pause", "--after-step")
    shop.wait("pausing", lambda seen: seen.phase == "pausing", timeout_s=OBEYED_S)
    supervisor.kill()
    supervisor.wait()
    again = shop.begin()
    shop.wait("taken over", lambda seen: seen.supervisor is not None and seen.supervisor.pid == again.pid)
    assert shop.status().phase == "pausing"
    release(shop)
    assert settle(shop, again) == 0
    at_rest(shop, shop.status())
    assert "attempt.claimed" in shop.kinds()
    assert "attempt.stopped" not in shop.kinds()
    assert not any(".verify." in text for text in shop.open_steps())
    assert shop.done() == []
    shop.json("resume")
    whole(shop, "a")
    assert shop.commits() == ["a.1"]


@pytest.mark.guarantee("K13", "K12")
def test_resume_is_refused_while_a_child_lives(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    supervisor = hold(shop, "implementing")
    program = shop.programs()[0]
    # A program that cannot obey: it stays until its grace is over.
    program.suspend()
    shop.json("pause")
    shop.wait("pausing", lambda seen: seen.phase == "pausing", timeout_s=OBEYED_S)
    supervisor.kill()
    supervisor.wait()
    refused = shop.call("resume", "--accept")
    assert refused.returncode == 2, refused
    assert "child of the previous run still lives" in refused.stderr
    assert shop.status().pending_requests == ()
    program.kill()
    program.wait()
    assert shop.call("run").returncode == 0
    at_rest(shop, shop.status())
    release(shop)
    shop.json("resume")
    whole(shop, "a")


@pytest.mark.guarantee("K11")
def test_the_newest_request_wins_while_nobody_listens(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",))
    for verb in ("stop", "resume", "pause"):
        assert shop.json(verb)["supervised"] is False
    assert shop.status().pending_requests == ("stop", "resume", "pause")
    assert shop.call("run").returncode == 0
    at_rest(shop, shop.status())
    assert shop.status().phase == "paused"
    assert shop.kinds().count("step.started") == 0
    for verb in ("stop", "pause", "resume"):
        shop.json(verb)
    whole(shop, "a")


@pytest.mark.guarantee("K13", "K15", "K12")
def test_blocked_is_left_by_a_persons_word_alone(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",))
    (shop.root / "tasks/a.md").write_text("no front matter\n")
    assert shop.call("run").returncode == 2
    assert shop.status().phase == "blocked"
    refused = shop.call("resume")
    assert refused.returncode == 2
    assert "resume --accept" in refused.stderr
    shop.card("a")
    assert shop.call("run").returncode == 2, "mended, but nobody said that they looked"
    shop.json("resume", "--accept")
    whole(shop, "a")


@pytest.mark.guarantee("K27", "K11")
def test_a_wait_survives_its_supervisor_with_its_reason_and_a_pause_cuts_it(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",))
    shop.record("a", patch="", claim="done")
    shop.configure(worker={"retry_delay_s": 3600.0})
    supervisor = shop.begin()
    seen = shop.wait("waiting", lambda seen: seen.phase == "waiting")
    assert "retry delay" in seen.reason
    supervisor.kill()
    supervisor.wait()
    again = shop.begin()
    shop.wait("taken over", lambda seen: seen.supervisor is not None and seen.supervisor.pid == again.pid)
    later = shop.wait("waiting on", lambda seen: seen.phase == "waiting")
    assert later.reason == seen.reason
    assert later.next_retry_s is not None
    assert 3000 < later.next_retry_s < 3600
    shop.json("pause")
    assert settle(shop, again) == 0
    at_rest(shop, shop.status())
    shop.record("a", 2)
    # `resume` forgets the wait, also the one between two attempts.
    shop.json("resume")
    whole(shop, "a")


# -- who owns the watch


@pytest.mark.guarantee("K1", "K2", "K15")
def test_a_second_supervisor_is_refused_by_name(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    supervisor = hold(shop, "implementing")
    for verb in ("run", "start"):
        refused = shop.call(verb, timeout_s=20)
        assert refused.returncode == 75, refused
        assert f"process {supervisor.pid} " in refused.stderr
        assert "since" in refused.stderr
    inode = shop.watch.lease.stat().st_ino
    for child in (*shop.programs(), *shop.workers()):
        assert inode not in open_inodes(child.pid), "a child holds the lease"
    supervisor.kill()
    supervisor.wait()
    release(shop)
    whole(shop, "a")


def open_inodes(pid: int) -> set[int]:
    folder = Path(f"/proc/{pid}/fd")
    found = set()
    for descriptor in folder.iterdir() if folder.is_dir() else ():
        try:
            found.add(descriptor.stat().st_ino)
        except OSError:
            continue
    return found


@pytest.mark.guarantee("K1", "K2", "K10")
def test_a_daemon_from_start_to_stop(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.raise_flag("worker")
    begun = shop.json("start")
    pid = int(str(begun["pid"]))
    held = lease.holder(shop.watch.lease)
    assert held is not None
    assert held.identity.pid == pid
    assert held.living
    refused = shop.call("run")
    assert refused.returncode == 75
    assert f"process {pid} " in refused.stderr
    following = subprocess.Popen(
        [*PROGRAM, "status", "--watch", "--json"],
        cwd=shop.root,
        env=shop.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    shop.in_step("attempt", "worker")
    shop.json("pause")
    until(following, "paused")
    at_rest(shop, shop.status())
    assert read_stat(pid) is not None, "a daemon waits in a pause for the resume"
    release(shop)
    assert shop.json("resume")["supervised"] is True
    shop.wait("complete", lambda seen: seen.phase == "complete")
    until(following, "complete")
    following.send_signal(signal.SIGINT)
    assert following.wait(10) == 0
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
    assert shop.done() == ["a"]


def until(following: "subprocess.Popen[str]", phase: str) -> None:
    """Read the lines of a follower until one shows this phase."""
    assert following.stdout is not None
    while json.loads(following.stdout.readline())["phase"] != phase:
        pass


@pytest.mark.guarantee("K10", "K12", "K16")
def test_stop_ends_a_daemon_at_work(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.raise_flag("worker")
    daemon = psutil.Process(int(str(shop.json("start")["pid"])))
    shop.in_step("attempt", "worker")
    shop.json("stop")
    gone, living = psutil.wait_procs([daemon], timeout=20)
    assert living == []
    assert gone == [daemon]
    at_rest(shop, shop.status())
    assert git(shop.root, "status", "--porcelain", "shop") == ""
    release(shop)
    shop.json("resume")
    whole(shop, "a")


@pytest.mark.guarantee("K1", "K2")
def test_many_starts_at_once_make_one_owner(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.raise_flag("worker")
    starts = [shop.begin("start", "--json") for _ in range(4)]
    codes = sorted(start.wait(60) for start in starts)
    assert codes == [0, 75, 75, 75], shop.said()
    shop.in_step("attempt", "worker")
    assert shop.kinds().count("supervisor.began") == 1
    shop.json("stop")
    shop.wait(
        "stopped", lambda seen: seen.phase == "stopped" and not (seen.supervisor and seen.supervisor.alive)
    )


@pytest.mark.guarantee("K3", "K5")
def test_a_look_while_the_supervisor_moves_on(tmp_path: Path) -> None:
    """Between any two statements of a reader the supervisor may commit: that is no damage."""
    shop = open_shop(tmp_path, ("a",))
    writer, reader = Store.open(shop.watch.database), Store.read(shop.watch.database)
    generation = writer.begin_generation(Note("supervisor.began", "This test supervises."))
    reader._sql.set_trace_callback(
        lambda _statement: writer.commit(generation, notes=(Note("test.moved", "It moves on."),))
    )
    seen = [reader.snapshot().seq for _ in range(5)]
    assert seen == sorted(set(seen)), "nothing was committed meanwhile"
    reader.close()
    writer.close()
