"""Workers and checks that misbehave as processes, through the real command line: nothing may be accepted, nobody may be
harmed, and no process may be left."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support import arena, campaign

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
"""It is one campaign: one watch, many hogs."""

MIB = 1024 * 1024
WORKERS: Mapping[str, tuple[str, ...]] = {
    "flood": ("log",),
    "flood_of_errors": ("log",),
    "long_line": ("left no result",),
    "silence": ("ended", "no output and no activity for 3 s"),
    "silence_after_result": ("ended", "no output and no activity for 3 s"),
    "busy_after_result": ("ended", "its whole time"),
    "ignores_term": ("ended", "no output and no activity for 3 s"),
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
    "stops_itself": ("ended", "no output and no activity for 3 s"),
    "closes_everything": ("ended", "no output and no activity for 3 s"),
    "result_of_a_daemon": ("left no result",),
}
CHECKS: Mapping[str, tuple[str, ...]] = {
    "check_hangs": ("it ran for 20 s, its whole time",),
    "check_leaves_daemon": ("check tests failed",),
    "check_fork_bomb": ("check tests failed: it was ended",),
    "check_eats_memory": ("check tests failed", "memory"),
    "check_writes_a_flood": ("check tests failed",),
}


@pytest.mark.guarantee("K17", "K18", "K19", "K20", "K22", "K24", "M12", "M15", "M19", "M28")
def test_what_misbehaves_is_ended_and_refused_and_harms_nobody(tmp_path: Path) -> None:
    mark = f"hog-{uuid.uuid4().hex}"
    place = arena.make(tmp_path, arena.PYTEST, "hogs", mark=mark)
    place.configure(
        worker={
            "max_attempts": 1,
            "idle_s": 3.0,
            "wall_s": 10.0,
            "log_bytes": 20 * MIB,
            "memory_bytes": 200 * MIB,
            "processes": 60,
            "file_bytes": 50 * MIB,
        },
        sandbox={"check_memory_bytes": 300 * MIB, "check_processes": 60, "tmp_bytes": 20 * MIB},
    )
    place.checks({"name": "tests", "argv": ["pytest", "-q"], "timeout_s": 20.0})
    done = campaign.run(place, (*WORKERS, *CHECKS))
    assert arena.living(mark) == []
    assert done.ran.code == 2, done.ran.err
    assert campaign.unnamed(done, {**WORKERS, **CHECKS}) == {}
    campaign.unharmed(done, ["zz_honest"])
    logs = list((place.root / ".longwatch" / "attempts").glob("*/worker.log"))
    assert {str(log): log.stat().st_size for log in logs if log.stat().st_size > 21 * MIB} == {}
    named = next(word for word in done.refusal("silence").split() if word.endswith("worker.log."))
    assert Path(named.rstrip(".")) in logs
