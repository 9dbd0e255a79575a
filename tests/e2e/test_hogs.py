"""Workers and checks that misbehave as processes, through the real command line: nothing may be accepted, nobody may be
harmed, and no process may be left."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support import arena, campaign
from tests.support.campaign import Campaign

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
"""A whole campaign runs before the first of these tests."""

MIB = 1024 * 1024
WORKERS: Mapping[str, tuple[str, ...]] = {
    "flood": ("log",),
    "flood_of_errors": ("log",),
    "long_line": ("left no result",),
    "silence": ("ended", "no output and no activity for 2 s"),
    "silence_after_result": ("ended", "no output and no activity for 2 s"),
    "busy_after_result": ("ended", "its whole time"),
    "ignores_term": ("ended", "no output and no activity for 2 s"),
    "escaped_daemon": ("tests/test_escaped_daemon.py: it was changed and not declared",),
    "daemon_keeps_writing": ("tests/test_daemon_keeps_writing.py: it was changed and not declared",),
    "fork_bomb": ("ended",),
    "thread_bomb": ("exit code 1",),
    "memory_hog": ("memory",),
    "memory_hog_in_children": ("memory",),
    "memory_hog_in_tmpfs": ("exit code 1",),
    "disk_filler": ("the worker's program",),
    "many_files_filler": ("bytes in all",),
    "kills_everything": ("the worker's program",),
    "kills_its_parents": ("the worker's program",),
    "stops_itself": ("ended", "no output and no activity for 2 s"),
    "closes_everything": ("ended", "no output and no activity for 2 s"),
    "result_of_a_daemon": ("left no result",),
}
CHECKS: Mapping[str, tuple[str, ...]] = {
    "check_hangs": ("it ran for 8 s, its whole time",),
    "check_leaves_daemon": ("check tests failed",),
    "check_fork_bomb": ("check tests failed: it was ended",),
    "check_eats_memory": ("check tests failed", "memory"),
    "check_writes_a_flood": ("check tests failed",),
}


@pytest.fixture(scope="module")
def hogs(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    mark = f"hog-{uuid.uuid4().hex}"
    place = arena.make(tmp_path_factory.mktemp("hogs"), arena.PYTEST, "hogs", mark=mark)
    place.configure(
        worker={
            "max_attempts": 1,
            "idle_s": 2.0,
            "wall_s": 6.0,
            "log_bytes": 20 * MIB,
            "memory_bytes": 200 * MIB,
            "processes": 60,
            "file_bytes": 50 * MIB,
        },
        sandbox={"check_memory_bytes": 300 * MIB, "check_processes": 60, "tmp_bytes": 20 * MIB},
    )
    place.checks({"name": "tests", "argv": ["pytest", "-q"], "timeout_s": 8.0})
    done = campaign.run(place, (*WORKERS, *CHECKS))
    assert arena.living(mark) == []
    return done


@pytest.mark.guarantee("K17", "K18", "K20", "K24", "M12", "M15")
@pytest.mark.parametrize(("hog", "reasons"), WORKERS.items(), ids=WORKERS)
def test_a_worker_that_misbehaves_is_ended_and_refused(
    hogs: Campaign, hog: str, reasons: tuple[str, ...]
) -> None:
    said = hogs.refusal(hog)
    assert not [reason for reason in reasons if reason not in said], said


@pytest.mark.guarantee("K17", "K18", "M19")
@pytest.mark.parametrize(("hog", "reasons"), CHECKS.items(), ids=CHECKS)
def test_a_check_that_misbehaves_is_ended_and_fails(
    hogs: Campaign, hog: str, reasons: tuple[str, ...]
) -> None:
    said = hogs.refusal(hog)
    assert not [reason for reason in reasons if reason not in said], said


@pytest.mark.guarantee("K18", "K19", "M28")
def test_hogs_harm_nobody_and_leave_no_process(hogs: Campaign) -> None:
    assert hogs.ran.code == 2, hogs.ran.err
    campaign.unharmed(hogs, ["zz_honest"])


@pytest.mark.guarantee("K24")
def test_a_flood_is_kept_within_its_bound(hogs: Campaign) -> None:
    logs = (hogs.arena.root / ".longwatch" / "attempts").glob("*/worker.log")
    assert {log.name: log.stat().st_size for log in logs if log.stat().st_size > 21 * MIB} == {}


@pytest.mark.guarantee("K22")
def test_each_ended_worker_leaves_a_log_that_the_reason_names(hogs: Campaign) -> None:
    said = hogs.refusal("silence")
    log = next(word for word in said.split() if word.endswith("worker.log.")).rstrip(".")
    assert Path(log).is_file()
