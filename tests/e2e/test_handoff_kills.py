"""kill -9 at each point of a handoff, of its generator, its step's program and the supervisor, in one real migration.

Whatever is killed and whenever: the queue moves exactly once, and in the end everything is proved.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.support.migration import Migration, open_migration
from tests.support.repositories import git
from tests.support.shop import kill, settle

pytestmark = pytest.mark.e2e

HALF = """
import time
whole = pathlib.Path("migration/inventory.json").read_text()
pathlib.Path("migration/inventory.json").write_text(whole[:100])
while os.path.exists("FLAGS/generator"):
    time.sleep(0.05)
pathlib.Path("migration/inventory.json").write_text(whole)
"""
"""The generator can be held with its work half done."""
SUPERVISOR = """
import os, sys
import msgspec
from longwatch.cli.main import app
from longwatch.executors.local import LocalExecutor
from longwatch.migrate.line import MigrateLine

points, program = sys.argv.pop(1), sys.argv.pop(1)
start, job = LocalExecutor.start, MigrateLine.job


def point(name):
    if os.path.exists(f"{points}/{name}"):
        os.unlink(f"{points}/{name}")
        os.kill(os.getpid(), 9)


def sabotaged(self, folder, *rest):
    kind = folder.name.split(".")[-2] if ".handoff." in folder.name else ""
    point(f"supervisor before {kind}")
    running = start(self, folder, *rest)
    point(f"supervisor after {kind}")
    return running


def of_a_handoff(self, step, *, confirm):
    run = job(self, step, confirm=confirm)
    if not getattr(step, "job", "").endswith(".handoff"):
        return run
    python, isolated, _, module, *mode = run.argv
    return msgspec.structs.replace(run, argv=(python, isolated, "-c", program, points, module, *mode))


LocalExecutor.start, MigrateLine.job = sabotaged, of_a_handoff
app()
"""
"""The real supervisor; it kills itself at named points, and gives the programs of a handoff's steps theirs."""
PROGRAM = """
import os, sys
from longwatch.migrate import program
from longwatch.migrate.attempt import handoff
from longwatch.migrate.checks import verification
from longwatch.migrate.repository import harvest, publishing

points = sys.argv.pop(1)


def around(module, name, label):
    inner = getattr(module, name)

    def replaced(*given, **named):
        point(f"program before {label}")
        found = inner(*given, **named)
        point(f"program after {label}")
        return found

    setattr(module, name, replaced)


def point(name):
    if os.path.exists(f"{points}/{name}"):
        os.unlink(f"{points}/{name}")
        os.kill(os.getpid(), 9)


around(handoff, "_generate", "generators")
around(harvest, "candidate", "candidate")
around(verification, "_accept", "acceptance")
around(verification, "sign", "signing")
around(publishing, "publish", "commit")
sys.exit(program.entry())
"""
HOOK = """#!/bin/sh
test -e "POINTS/$(basename "$0")" || exit 0
rm "POINTS/$(basename "$0")"
parent() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f2; }
program=$PPID
until grep -q "longwatch.migrate.program" "/proc/$program/cmdline"; do program=$(parent "$program"); done
kill -9 $PPID "$program"
"""
POINTS = (
    "supervisor before attempt",
    "supervisor after attempt",
    "program before generators",
    "program after generators",
    "program after candidate",
    "supervisor after verify",
    "program before acceptance",
    "program before signing",
    "program after signing",
    "supervisor before commit",
    "program before commit",
    "pre-commit",
    "post-commit",
    "program after commit",
)


def begin(place: Migration, points: Path) -> "subprocess.Popen[bytes]":
    with place.printed.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, str(points), PROGRAM, "run"],
            cwd=place.root,
            env=place.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def generator(place: Migration, seen: set[int]) -> list[psutil.Process]:
    """Wait for a generator that was not seen before and holds a half-written file."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [
            one for one in place.workers() if one.pid not in seen and words(one)[-1:] == ["tools/handoff.py"]
        ]
        halves = (place.watch.hidden / "work").glob("*handoff*/repo/migration/inventory.json")
        if found and any(half.stat().st_size == 100 for half in halves):
            seen |= {one.pid for one in found}
            return found
        time.sleep(0.02)
    raise AssertionError(place.said())


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.guarantee("K1", "K5", "K6", "K18", "K23", "M5", "M16", "M28", "M29", "M32", "M35")
def test_killed_at_each_point_of_a_handoff_the_queue_moves_exactly_once(tmp_path: Path) -> None:
    flags, points = tmp_path / "flags", tmp_path / "points"
    place = open_migration(tmp_path, handoff=HALF.replace("FLAGS", str(flags)))
    for folder in (flags, points):
        folder.mkdir()
    place.configure(
        worker={"max_attempts": 1000}, backoff={"max_faults": 1000}, sandbox={"expose": [str(flags)]}
    )
    for name in ("pre-commit", "post-commit"):
        hook = place.root / f".git/hooks/{name}"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK.replace("POINTS", str(points)))
        hook.chmod(0o755)
    before = place.commit()

    # While the generator runs, its work half done.
    place.raise_flag("generator")
    supervisor, seen = begin(place, points), set[int]()
    for target in ("generator", "program", "supervisor", "all"):
        held, programs = generator(place, seen), place.programs()
        if target in {"supervisor", "all"}:
            supervisor.send_signal(signal.SIGKILL)
        if target in {"program", "all"}:
            kill(programs)
        if target in {"generator", "all"}:
            kill(held)
        if target in {"supervisor", "all"}:
            assert supervisor.wait() == -signal.SIGKILL
            supervisor = begin(place, points)
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    place.lower_flag("generator")
    assert place.done() == ["shapes.cube", "shapes.ball"], place.said()

    # Before and after everything that matters, and in the middle of the commit.
    for name in POINTS:
        (points / name).touch()
    for _ in POINTS:
        code = settle(place, begin(place, points), timeout_s=120)
        assert code in {0, -signal.SIGKILL}, place.said()
        if code == 0:
            break
    assert list(points.iterdir()) == [], place.said()
    assert place.status().phase == "complete", place.said()
    whole(place, before)


def whole(place: Migration, before: str) -> None:
    jobs = ["shapes.cube", "shapes.ball", "shapes.handoff", "colors", "colors.handoff"]
    assert place.done() == jobs
    assert git(place.root, "rev-list", "--count", f"{before}..HEAD") == str(len(jobs))
    handed = [text for kind, text in place.events() if kind == "task.handed_off"]
    assert [text.split(":")[0] for text in handed] == ["shapes.handoff", "colors.handoff"]
    for kind in ("job.committed", "job.done"):
        assert sorted(t.split(":")[0] for k, t in place.events() if k == kind) == sorted(jobs)
    inventory = json.loads((place.root / "migration/inventory.json").read_text())
    assert {unit["status"] for unit in inventory["units"]} == {"verified"}
    assert (
        "| none | none | migration/manifests/colors.json |" in (place.root / "migration/QUEUE.md").read_text()
    )
    assert place.call("verify").returncode == 0
    assert git(place.root, "status", "--porcelain") == ""
    assert place.living() == []
    assert list((place.watch.hidden / "work").iterdir()) == []
    assert git(place.root, "for-each-ref", "--format=%(refname)", "refs/longwatch/publishing") == ""
    assert [path.name for path in (place.root / ".git").rglob("*.lock")] == []
