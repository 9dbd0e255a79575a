"""The program that repeats a recorded attempt, run as it is."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support import repositories
from tests.support.shop import new_file

from longwatch.migrate.attempt.workers import replay

PROGRAM = Path(replay.__file__).with_name("replay_program.py")
QUIET = {"print": [], "sleep_s": 0, "linger_s": 0, "leave_process": False, "exit_code": 0}


def test_a_change_that_cannot_be_made_is_told_with_gits_reason(tmp_path: Path) -> None:
    repositories.new_repository(tmp_path / "repo")
    (tmp_path / "repo/there.txt").write_text("already\n")
    patch = tmp_path / "change.patch"
    patch.write_text(new_file("there.txt", ["anew"]))
    script = {"behaviour": QUIET, "patch": str(patch), "result": "{}", "answer": str(tmp_path / "answer")}

    argv = (sys.executable, "-I", "-S", str(PROGRAM))
    done = subprocess.run(
        argv,
        input=json.dumps(script),
        cwd=tmp_path / "repo",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("the recorded change cannot be applied: error: there.txt: already exists")
    assert not (tmp_path / "answer").exists()
