"""What both demonstrations need: to call the program, to find a step's process, and to end it as hard as it gets."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")


def call(root: Path, *arguments: str) -> int:
    """Run `longwatch` as a person would, and return its exit code."""
    sys.stdout.flush()
    return subprocess.run([*LONGWATCH, *arguments], cwd=root, check=False).returncode


def events(root: Path) -> list[dict[str, Any]]:
    """The watch's event log."""
    printed = subprocess.run([*LONGWATCH, "events", "--json"], cwd=root, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in printed.stdout.splitlines()]


def in_phase(root: Path, steps: str, phase: str, least: int = 0) -> Path | None:
    """The folder of a step that is in this phase and has done at least so much of it, or None."""
    for path in (root / ".longwatch" / "steps").glob(f"{steps}/progress.json"):
        progress = json.loads(path.read_bytes())
        if progress["phase"] == phase and (progress.get("done") or 0) >= least:
            return path.parent
    return None


def kill_both(supervisor: subprocess.Popen[bytes], step: Path) -> None:
    """Kill the supervisor and the program of a step with `kill -9`."""
    supervisor.send_signal(signal.SIGKILL)
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and str(step).encode() in words(process):
            os.kill(int(process.name), signal.SIGKILL)
    supervisor.wait()


def words(process: Path) -> list[bytes]:
    """The command line of a process; empty if it is gone."""
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def leftovers(root: Path) -> int:
    """Processes of a demonstration that still live."""
    count = 0
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                mark = b"LONGWATCH_COOKIE=" in (process / "environ").read_bytes()
                count += mark and str(root).encode() in os.readlink(process / "cwd").encode()
            except OSError:
                continue
    return count


def fresh(root: Path) -> Path:
    """An empty folder, whatever was there."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    return root


def say(text: str) -> None:
    """Print a heading."""
    print(f"\n=== {text}", flush=True)
