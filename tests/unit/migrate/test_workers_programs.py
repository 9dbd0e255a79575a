"""The `command` and `replay` workers, each in a real sandbox, and hostile answers."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from tests.support.agent_runs import NONCE, request, work
from tests.support.repositories import git, write

from longwatch.kernel.child import Command
from longwatch.kernel.errors import ConfigError, FailureClass, PathError
from longwatch.kernel.limits import LimitHit, Limits
from longwatch.kernel.process import run
from longwatch.migrate.attempt.result import Result, Status, read_result
from longwatch.migrate.attempt.trace import ClaudeTrace, CodexTrace, Ending, Patience, Trace, TraceMonitor
from longwatch.migrate.attempt.workers import WORKERS, WorkRequest
from longwatch.migrate.settings import WorkerSettings

PATCH = """\
diff --git a/hello.py b/hello.py
--- a/hello.py
+++ b/hello.py
@@ -1 +1 @@
-print(40 + 1)
+print(40 + 2)
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
"""


def replaying(tmp_path: Path, **given: object) -> WorkRequest:
    return request(tmp_path, WorkerSettings(adapter="replay", argv=("attempts",)), **given)


@pytest.mark.guarantee("M6", "M12")
def test_any_program_gets_the_prompt_and_writes_a_result(tmp_path: Path) -> None:
    program = (
        'cat > prompt.txt; printf \'{"nonce":"%s","status":"done","summary":"s","changed":["prompt.txt"],"reason":""}\' '
        '"$LONGWATCH_NONCE" > "$LONGWATCH_RESULT"; printf "%s" "$LONGWATCH_SCHEMA" > schema.json; echo "$SEEN"'
    )
    settings = WorkerSettings(adapter="command", argv=("sh", "-c"), options=(program,))
    ran = work(tmp_path, request(tmp_path, settings, environment={"SEEN": "by-the-worker"}))
    assert ran.failure is None, ran.log
    assert ran.answer is not None
    assert read_result(ran.answer, NONCE) == Result(status=Status.DONE, summary="s", changed=("prompt.txt",))
    assert (tmp_path / "repo" / "prompt.txt").read_text() == "Make hello.py print 42."
    assert json.loads((tmp_path / "repo" / "schema.json").read_text())["type"] == "object"
    assert ran.state.current == "by-the-worker"


@pytest.mark.guarantee("M12")
def test_a_program_that_fails_or_says_nothing(tmp_path: Path) -> None:
    settings = WorkerSettings(adapter="command", argv=("sh", "-c", "exit 4"))
    ran = work(tmp_path, request(tmp_path, settings))
    assert ran.failure is not None
    assert "exit code 4" in ran.failure.message
    assert ran.answer is None


def test_a_command_without_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="argv is empty"):
        WORKERS["command"]().prepare(request(tmp_path, WorkerSettings(adapter="command")))


@pytest.mark.guarantee("M6")
def test_replay_repeats_a_recorded_attempt(tmp_path: Path) -> None:
    write(tmp_path, "attempts/hello/1/change.patch", PATCH)
    write(tmp_path, "attempts/hello/1/attempt.toml", 'claim = "done"\nprint = ["working", "still"]\n')
    ran = work(tmp_path, replaying(tmp_path))
    assert ran.failure is None, ran.log
    assert ran.answer is not None
    found = read_result(ran.answer, NONCE)
    assert isinstance(found, Result)
    assert found.changed == ("hello.py", "new.txt")
    assert git(tmp_path / "repo", "status", "--porcelain") == " M hello.py\n?? new.txt"
    assert ran.log == "working\nstill"


@pytest.mark.guarantee("M12")
def test_replay_gives_an_old_nonce_if_the_recording_says_so(tmp_path: Path) -> None:
    for number, nonce in ((1, "@NONCE@"), (2, "an-old-one")):
        answer = {"nonce": nonce, "status": "no_change", "summary": "s", "changed": [], "reason": "r"}
        write(tmp_path, f"attempts/hello/{number}/result.json", json.dumps(answer))
    first = work(tmp_path, replaying(tmp_path))
    assert isinstance(read_result(first.answer or b"", NONCE), Result)
    later = msgspec.structs.replace(replaying_again(tmp_path), number=7)
    second = work(tmp_path / "again", later)
    assert "earlier attempt" in str(read_result(second.answer or b"", NONCE))


def replaying_again(tmp_path: Path) -> WorkRequest:
    folder = tmp_path / "again"
    folder.mkdir()
    return replaying(folder, base=tmp_path)


@pytest.mark.guarantee("K18")
def test_replay_leaves_a_process_and_nothing_of_it_lives(tmp_path: Path) -> None:
    write(
        tmp_path,
        "attempts/hello/1/attempt.toml",
        'leave_process = true\nexit_code = 3\nclaim = "blocked"\nreason = "r"\n',
    )
    ran = work(tmp_path, replaying(tmp_path))
    assert ran.record.exit_code == 3


def test_replay_with_a_patch_that_does_not_apply_fails(tmp_path: Path) -> None:
    write(tmp_path, "attempts/hello/1/change.patch", PATCH.replace("40 + 1", "7"))
    ran = work(tmp_path, replaying(tmp_path))
    assert ran.failure is not None
    assert ran.failure.kind is FailureClass.FAULT


@pytest.mark.parametrize(
    ("files", "settings", "word"),
    [
        ({}, WorkerSettings(adapter="replay", argv=("attempts",)), "no recorded attempt"),
        ({}, WorkerSettings(adapter="replay"), "must name the folder"),
        (
            {"attempts/hello/1/attempt.toml": "sleeps = 3"},
            WorkerSettings(adapter="replay", argv=("attempts",)),
            "sleeps",
        ),
        (
            {"attempts/hello/1/attempt.toml": "= 3"},
            WorkerSettings(adapter="replay", argv=("attempts",)),
            "attempt.toml",
        ),
    ],
)
def test_recordings_that_are_wrong_are_named(
    tmp_path: Path, files: dict[str, str], settings: WorkerSettings, word: str
) -> None:
    for path, content in files.items():
        write(tmp_path, path, content)
    with pytest.raises(ConfigError, match=word):
        WORKERS["replay"]().prepare(request(tmp_path, settings))


@pytest.mark.guarantee("M12", "K34")
@pytest.mark.parametrize("adapter", ["command", "replay"])
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "huge"])
def test_a_hostile_result_file_is_refused(tmp_path: Path, adapter: str, kind: str) -> None:
    path = tmp_path / "result.json"
    match kind:
        case "link":
            path.symlink_to("/etc/hostname")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "huge":
            path.write_bytes(b" " * (1024 * 1024 + 1))
    worker = WORKERS[adapter]()
    with pytest.raises(PathError):
        worker.answer(TraceMonitor(worker.trace(), None).state, path)


def test_no_result_file_is_no_answer(tmp_path: Path) -> None:
    worker = WORKERS["command"]()
    assert worker.answer(TraceMonitor(worker.trace(), None).state, tmp_path / "none.json") is None


@pytest.mark.guarantee("K20")
@pytest.mark.parametrize(
    ("trace", "last"),
    [
        (CodexTrace(), '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'),
        (ClaudeTrace(), '{"type":"result","subtype":"success","is_error":false,"structured_output":{"a":1}}'),
    ],
    ids=["codex", "claude"],
)
def test_a_program_that_gave_its_result_and_does_not_exit(tmp_path: Path, trace: Trace, last: str) -> None:
    monitor = TraceMonitor(trace, Patience(start_s=30, idle_s=30, finish_s=0.3))
    command = Command(
        argv=("sh", "-c", f"echo '{last}'; exec sleep 300"),
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        log=tmp_path / "log",
        limits=Limits(wall_s=60, grace_s=1),
        phase="worker",
    )
    record = run(command, monitor=monitor)
    assert record.limit is LimitHit.MONITOR
    assert "did not exit" in record.limit_detail
    assert monitor.state.ended is Ending.SUCCEEDED
