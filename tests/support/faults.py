"""Death at a chosen system call, through strace; and a file system of a chosen size, through bubblewrap."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import toy


def needs(name: str) -> str:
    """The path of a program; a test that needs it and lacks it fails, because a skip would look like a pass."""
    found = shutil.which(name)
    if found is None:
        pytest.fail(f"{name} is not here: run scripts/install-debian test")
    return found


def run_and_kill_at(call: str, number: int, *argv: str) -> "subprocess.CompletedProcess[str]":
    """Run a Python program and kill it as it enters its `number`-th call of this kind; its children live on."""
    killed = subprocess.run(
        [
            *(needs("strace"), "--quiet=all", "--signal=none", "-o", "/dev/null"),
            *("-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"),
            *(sys.executable, *argv),
        ],
        cwd=toy.PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "ptrace" in killed.stderr.lower() or "not permitted" in killed.stderr:
        pytest.fail(f"strace may not trace here, so crashes cannot be tested: {killed.stderr}")
    assert killed.returncode in {0, -signal.SIGKILL, 128 + signal.SIGKILL}, killed.stderr
    return killed


def was_killed(process: "subprocess.CompletedProcess[str]") -> bool:
    return process.returncode != 0


def run_on(folder: Path, *argv: str, size_bytes: int | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a Python program that sees `folder` read-only, or as an empty file system of `size_bytes`."""
    mount = (
        ("--ro-bind", folder, folder)
        if size_bytes is None
        else ("--size", str(size_bytes), "--tmpfs", folder)
    )
    return subprocess.run(
        [needs("bwrap"), "--dev-bind", "/", "/", *map(str, mount), sys.executable, *argv],
        cwd=toy.PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
