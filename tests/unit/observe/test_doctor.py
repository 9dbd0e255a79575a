"""`doctor` proves by doing, tells the mend, and changes nothing."""

import json
import os
import shutil
import subprocess
import sys

import msgspec
import pytest
from tests.support import repositories, watches

from longwatch.kernel import lease
from longwatch.kernel.finding import Finding, Standing
from longwatch.kernel.identity import find_by_cookie
from longwatch.kernel.process import run
from longwatch.kernel.signing import PRIVATE_NAME
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.migrate import doctor as migrate_doctor
from longwatch.migrate.doctor import forecast
from longwatch.migrate.state import MigrateState
from longwatch.migrate.steps import CardRef, Surveyed
from longwatch.observe import doctor, host
from longwatch.observe.reports import examination_text

GIB = 1024**3


@pytest.fixture
def watch(tmp_path) -> Watch:
    return watches.migrate(tmp_path / "repo")


@pytest.fixture(autouse=True)
def _quick(request, monkeypatch):
    """The sandbox's self-test takes a second and has tests of its own; those marked `whole` run it."""
    if "whole" not in request.fixturenames:
        monkeypatch.setattr(host, "self_test", lambda _sandbox: ())


@pytest.fixture
def whole():
    """Nothing is left out."""


def found(watch: Watch, name: str) -> Finding:
    return next(finding for finding in doctor.examine(watch.root).findings if finding.name == name)


@pytest.mark.guarantee("K10", "K38")
def test_a_fresh_watch_is_looked_at_from_interpreter_to_queue(watch, whole):
    repositories.write(watch.root, "tasks/001-first.md", "---\nid: first\ntitle: Do it\n---\nDo it.\n")
    finished = watches.longwatch(watch.root, "doctor", "--json")
    findings = {one["name"]: one for one in json.loads(finished.stdout)["findings"]}
    expected = {
        "interpreter",
        "git",
        "git identity",
        "sandbox",
        "fork escape",
        "durable write",
        "control groups",
    }
    expected |= {"config", "state", "key", "lease", "service", "disk", "branch", "your changes", "queue"}
    expected |= {"checks", "check program", "receipts", "worker", "growth"}
    assert expected <= findings.keys()
    wrong = {name for name, one in findings.items() if one["standing"] == "wrong"}
    assert wrong <= {"sandbox", "check program"}, finished.stdout
    assert finished.returncode == (1 if wrong else 0)
    assert "next is first" in findings["queue"]["text"]


@pytest.mark.guarantee("K38")
def test_nothing_changes(watch, whole):
    watches.verified(watch)
    repositories.write(watch.root, "mine.txt", "dirty")
    before = watches.contents(watch.root)
    folders = {path for path in watch.root.rglob("*") if path.is_dir()}
    watches.longwatch(watch.root, "doctor")
    assert watches.contents(watch.root) == before
    assert {path for path in watch.root.rglob("*") if path.is_dir()} == folders


@pytest.mark.guarantee("K38")
def test_outside_a_watch_the_machine_is_looked_at(tmp_path):
    finished = watches.longwatch(tmp_path, "doctor")
    assert "fork escape" in finished.stdout
    assert "longwatch init migrate" in finished.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.guarantee("K38")
def test_a_broken_configuration_is_told_and_the_rest_is_looked_at(watch):
    watch.config.write_text('kind = "migrate"\n')
    seen = {one.name: one for one in doctor.examine(watch.root).findings}
    assert seen["config"].standing is Standing.WRONG
    assert {"state", "key", "fork escape", "durable write"} <= seen.keys()
    assert watches.longwatch(watch.root, "doctor").returncode == 1


def test_git_is_asked_for_only_where_something_commits(watch, tmp_path):
    student = tmp_path / "student"
    repositories.write(student, "longwatch.toml", 'kind = "learn"\n')
    both = {"git", "git identity"}
    assert both <= {one.name for one in doctor.examine(watch.root).findings}
    assert not both & {one.name for one in doctor.examine(student).findings}


@pytest.mark.guarantee("K38", "K18")
def test_a_fork_escape_is_caught():
    finding = host.fork_escape()
    assert finding.standing is Standing.FINE


@pytest.mark.guarantee("K38", "K18")
def test_a_fork_escape_that_is_not_caught_is_told(monkeypatch):
    """A stand-in for a machine where the tree cannot be ended: the escaped child lives on until the test ends it."""
    cookies = []

    def leaky(command, *, cookie):
        cookies.append(cookie)
        record = run(command, cookie=cookie)
        started.append(spawn_marked(cookie))
        return record

    started = []
    monkeypatch.setattr(host, "run", leaky)
    try:
        finding = host.fork_escape()
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stdout.close()
    assert finding.standing is Standing.WRONG
    assert str(started[0].pid) in finding.text
    assert find_by_cookie(cookies[0]) == ()


def spawn_marked(cookie):
    process = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(600)"],
        env={**os.environ, "LONGWATCH_COOKIE": cookie},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdout.readline()
    return process


@pytest.mark.guarantee("K38")
def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    finding = host.durable_write(tmp_path / "missing")
    assert finding.standing is Standing.WRONG
    assert finding.mend


@pytest.mark.guarantee("K38")
def test_a_tool_that_is_missing_is_told_with_its_mend(watch, monkeypatch, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "git").symlink_to(shutil.which("git"))
    monkeypatch.setenv("PATH", str(empty))
    assert found(watch, "check program").standing is Standing.WRONG
    assert found(watch, "worker").standing is Standing.WRONG
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert host.git().mend == "install git"


@pytest.mark.guarantee("K31", "K38")
def test_a_key_that_others_can_read_or_that_is_gone_is_told(watch):
    private = watch.keys / PRIVATE_NAME
    private.chmod(0o644)
    assert "chmod 600" in found(watch, "key").mend
    private.unlink()
    assert "missing" in found(watch, "key").text


@pytest.mark.guarantee("K33", "K38")
def test_a_state_that_is_damaged_or_missing_is_told(watch):
    watch.database.write_bytes(b"no database at all, but long enough to be one" * 100)
    assert found(watch, "state").standing is Standing.WRONG
    watch.database.unlink()
    assert "missing" in found(watch, "state").text


@pytest.mark.guarantee("K1", "K38")
def test_who_holds_the_lease_is_told(watch):
    held = lease.acquire(watch.lease)
    finding = found(watch, "lease")
    held.close()
    assert str(os.getpid()) in finding.text
    assert finding.standing is Standing.NOTE


@pytest.mark.guarantee("K4", "K38")
def test_a_marker_of_a_living_tool_is_told(watch):
    watch.config.write_text(watch.config.read_text() + '\n[host]\nmarkers = ["other.pid"]\n')
    (watch.root / "other.pid").write_text(f"{os.getppid()}\n")
    assert found(watch, "marker").standing is Standing.WRONG
    (watch.root / "other.pid").unlink()
    assert found(watch, "marker").standing is Standing.FINE


@pytest.mark.guarantee("M28", "K38")
def test_your_own_changes_are_listed_as_not_to_be_touched(watch):
    repositories.write(watch.root, "src/greet.py", "mine\n")
    finding = found(watch, "your changes")
    assert "src/greet.py" in finding.text
    assert "will not be touched" in finding.text


@pytest.mark.guarantee("K38", "M29")
def test_another_branch_a_moved_head_and_a_merge_in_progress_are_told(watch):
    watches.verified(watch)
    repositories.write(watch.root, "src/greet.py", "moved\n")
    repositories.commit_all(watch.root)
    assert "--refresh-baseline" in found(watch, "branch").mend
    (watch.root / ".git/MERGE_HEAD").write_text(repositories.git(watch.root, "rev-parse", "HEAD") + "\n")
    assert "merge" in found(watch, "repository").text
    repositories.git(watch.root, "checkout", "--quiet", "-b", "other")
    assert "git switch main" in found(watch, "branch").mend


@pytest.mark.guarantee("K38", "M14")
def test_a_check_that_may_not_be_one_is_told(watch):
    watches.configure(watch, '["pytest", "-q"]', '["python3", "-c", "print(1)"]')
    assert found(watch, "checks").standing is Standing.WRONG


@pytest.mark.guarantee("K38", "M1")
def test_a_wrong_card_is_told(watch):
    repositories.write(watch.root, "tasks/001-bad.md", "---\nid: Bad Id\ntitle: x\n---\nText\n")
    assert "001-bad.md" in found(watch, "queue").text


@pytest.mark.guarantee("M15", "K38")
def test_no_sandbox_is_said_loudly(watch):
    watches.configure(watch, 'kind = "bubblewrap"', 'kind = "none"')
    finding = found(watch, "sandbox")
    assert finding.standing is Standing.NOTE
    assert "nothing protects" in finding.text


@pytest.mark.guarantee("K8", "K38")
def test_less_than_the_reserve_is_wrong(watch, monkeypatch):
    monkeypatch.setattr(host, "free_bytes", lambda _path: GIB // 2)
    finding = found(watch, "disk")
    assert finding.standing is Standing.WRONG
    assert "0.5 GiB" in finding.text or "512.0 MiB" in finding.text


@pytest.mark.guarantee("K8")
def test_the_growth_is_forecast_from_what_done_jobs_left():
    got = forecast(used_bytes=10 * GIB, done=5, waiting=20, log_bytes=100 * GIB, room_bytes=30 * GIB)
    assert (got.each_bytes, got.expected_bytes) == (2 * GIB, 40 * GIB)
    assert forecast(used_bytes=1, done=0, waiting=20, log_bytes=1, room_bytes=1) is None


@pytest.mark.guarantee("K8")
def test_a_night_that_will_fill_the_disk_is_told_before(watch, monkeypatch):
    watches.verified(watch)
    patch = watch.hidden / "attempts" / "greeting.1" / "worker.log"
    patch.parent.mkdir(parents=True)
    patch.write_bytes(b"x" * 4 * 1024 * 1024)
    crowd(watch, cards=50)
    monkeypatch.setattr(migrate_doctor.files, "free_bytes", lambda _path: GIB + 1024)
    finding = found(watch, "growth")
    assert finding.standing is Standing.NOTE
    assert "before the night" in finding.mend


def crowd(watch: Watch, *, cards: int) -> None:
    """Let the state know so many cards."""
    store = Store.open(watch.database)
    snapshot = store.snapshot()
    state = msgspec.json.decode(snapshot.line, type=MigrateState)
    known = tuple(CardRef(id=f"card-{n}", title="t", digest="0" * 64) for n in range(cards))
    grown = msgspec.structs.replace(state, survey=Surveyed(head=state.head, cards=known))
    store.commit(snapshot.generation, line=msgspec.json.encode(grown))
    store.close()


@pytest.mark.guarantee("M36", "K38")
def test_a_finding_with_several_problems_is_told_line_by_line():
    found = Finding(
        name="queue", standing=Standing.WRONG, text="queue: 2 problems\n  a: b\n  c: \x1b[2Jd", mend="mend"
    )
    first, second, third, mend, verdict = examination_text(
        doctor.Examination(watch="", findings=(found,))
    ).splitlines()
    assert first == "WRONG  queue  queue: 2 problems"
    assert (second.strip(), third.strip()) == ("a: b", "c:  [2Jd")
    assert mend.strip() == "-> mend"
    assert verdict == "1 of 1 must be mended."
