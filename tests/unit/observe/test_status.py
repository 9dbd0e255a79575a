"""The status is quick, takes no lock, and tells what is true."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from datetime import datetime

import pytest
from tests.support import repositories, toy, watches

from longwatch.kernel import lease
from longwatch.kernel.clock import now
from longwatch.kernel.instant import Deadline
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Lifecycle, Phase
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Store
from longwatch.observe import following, status

HEAVY = (
    "psutil",
    "rich",
    "yaml",
    "jsonschema",
    "securesystemslib",
    "cryptography",
    "asyncio",
    "torch",
    "transformers",
    "ray",
    "starlette",
    "longwatch.kernel.supervisor",
    "longwatch.kernel.process",
    "longwatch.migrate.attempt.conduct",
    "longwatch.migrate.repository.git",
)
PROBE = """
import sys
from longwatch.cli.main import app
try:
    app(["status"])
except SystemExit as end:
    assert not end.code, end.code
print([name for name in sys.argv[1:] if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture
def watch(tmp_path):
    return watches.migrate(tmp_path / "repo")


def test_a_status_loads_nothing_heavy(watch):
    watches.verified(watch)
    finished = subprocess.run(
        [sys.executable, "-c", PROBE, *HEAVY], cwd=watch.root, capture_output=True, text=True, check=True
    )
    assert finished.stderr.strip() == "[]"
    assert "greeting: done" in finished.stdout


def test_the_search_for_heavy_modules_can_find_one(watch):
    finished = subprocess.run(
        [sys.executable, "-c", f"import psutil\n{PROBE}", *HEAVY],
        cwd=watch.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "psutil" in finished.stderr


@pytest.mark.guarantee("K3")
def test_reading_the_owner_never_touches_the_lock(watch, monkeypatch):
    held = lease.acquire(watch.lease)

    def refuse(*_):
        raise AssertionError("the lock was probed")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(fcntl, "lockf", refuse)
    seen = status.read(watch)
    assert seen.supervisor
    assert (seen.supervisor.pid, seen.supervisor.alive) == (os.getpid(), True)
    monkeypatch.undo()
    held.close()


@pytest.mark.guarantee("K3")
def test_an_owner_whose_process_is_another_one_now_is_not_alive(watch):
    held = lease.acquire(watch.lease)
    held.close()
    record = lease.holder_path(watch.lease)
    told = json.loads(record.read_text())
    told["identity"]["start_ticks"] += 1
    record.write_text(json.dumps(told))
    seen = status.read(watch)
    assert seen.supervisor
    assert not seen.supervisor.alive


@pytest.mark.guarantee("K11", "K12")
def test_a_wish_is_shown_until_it_is_obeyed(watch):
    store = Store.open(watch.database)
    store.request(Request(verb=Verb.PAUSE))
    store.close()
    seen = status.read(watch)
    assert (seen.phase, seen.pending_requests) == ("idle", ("pause",))


@pytest.mark.guarantee("K10")
def test_json_and_a_broken_configuration(watch):
    watches.verified(watch)
    good = json.loads(watches.longwatch(watch.root, "status", "--json").stdout)
    assert (good["kind"], good["phase"], good["config_problem"]) == ("migrate", "idle", "")
    watch.config.write_text('kind = "migrate"\n[nonsense]\n')
    finished = watches.longwatch(watch.root, "status")
    assert finished.returncode == 0
    assert "nonsense" in finished.stdout


@pytest.mark.guarantee("K10")
def test_the_nearest_watch_above_is_meant(watch):
    below = watch.root / "src"
    assert json.loads(watches.longwatch(below, "status", "--json").stdout)["watch"] == str(watch.root)


@pytest.mark.guarantee("K15")
def test_without_a_watch_or_a_state_the_exit_code_says_so(tmp_path):
    finished = watches.longwatch(tmp_path, "status")
    assert finished.returncode == 2
    assert "longwatch init migrate" in finished.stderr
    repositories.write(tmp_path, "longwatch.toml", 'kind = "migrate"\n')
    finished = watches.longwatch(tmp_path, "status")
    assert finished.returncode == 2
    assert "no state" in finished.stderr


@pytest.mark.guarantee("K10")
def test_following_shows_each_change_once(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "POLL_S", 0.01)
    watch = toy.make(tmp_path, (toy.step("one"), toy.step("two")))
    watch.config.write_text('kind = "toy"\n')
    seen = following.statuses(watch, every=False)
    first = next(seen)
    thread = threading.Thread(target=later_request, args=(watch,))
    thread.start()
    second = next(seen)
    thread.join()
    assert (first.pending_requests, second.pending_requests) == ((), ("pause",))


def later_request(watch) -> None:
    store = Store.open(watch.database)
    store.request(Request(verb=Verb.PAUSE))
    store.close()


@pytest.mark.guarantee("K26", "K27")
@pytest.mark.parametrize(
    ("phase", "delay_s", "shown"),
    [
        (Phase.WAITING, 3600.0, True),
        (Phase.RUNNING, 3600.0, True),  # something else goes on, and nothing new begins
        (Phase.RUNNING, 0.0, False),
        (Phase.PAUSED, 3600.0, False),
    ],
)
def test_a_wait_is_shown_with_the_moment_of_its_end(tmp_path, phase, delay_s, shown):
    watch = toy.make(tmp_path, ())
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "A test."))
    life = Lifecycle(
        phase=phase, reason="quota: used up", wait=Deadline(since=now(), delay_s=delay_s), parked_s=delay_s
    )
    store.commit(generation, lifecycle=life)
    store.close()
    seen = status.read(watch)
    assert (seen.reason, seen.parked_s) == ("quota: used up", delay_s)
    assert (seen.next_retry_s is not None) == bool(seen.next_retry_at) == shown
    if shown:
        left_s = datetime.fromisoformat(seen.next_retry_at).timestamp() - now().wall_s
        assert delay_s - 30 < left_s < delay_s + 2
