"""What `doctor` tries on the machine itself: programs, processes, durable writes, the sandbox."""

import os
import re
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from longwatch.kernel import cgroup, files, service
from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import ConfigError, LongwatchError, NotReadyError
from longwatch.kernel.files import free_bytes
from longwatch.kernel.finding import Finding, fine, note, wrong
from longwatch.kernel.identity import find_by_cookie
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import new_cookie, run
from longwatch.kernel.signing import PRIVATE_NAME, load_public
from longwatch.sandbox import ENGINES, sandbox_of
from longwatch.sandbox.choice import Sandboxing, pinned
from longwatch.sandbox.engine import look, program_of
from longwatch.sandbox.selftest import self_test

__all__ = ["durable_write", "examine", "fork_escape", "free_bytes", "git", "key", "size", "unit"]

PYTHON = (3, 11)
GIT = (2, 32)
"""The first that takes GIT_CONFIG_GLOBAL, by which a worker's folder is looked at without the person's settings."""
SQLITE = (3, 37)
"""The first with STRICT tables."""
_ESCAPE = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def examine(folder: Path, sandbox: Sandboxing, *, commits: bool) -> Iterator[Finding]:
    """Look at the machine.

    `folder` is where writes are tried, `sandbox` the one that is to hold; git is looked at where something `commits`.
    """
    yield _interpreter()
    if commits:
        yield git()
        yield from _identity(folder)
    yield from _sandbox(sandbox)
    yield from _engines(sandbox)
    yield fork_escape()
    yield durable_write(folder)
    yield _control_groups()


def key(folder: Path) -> Iterator[Finding]:
    """Look at the signing key: there, its owner's alone, and with its public half."""
    private = folder / PRIVATE_NAME
    try:
        mode = stat.S_IMODE(private.stat().st_mode)
    except FileNotFoundError:
        yield wrong(
            "key", f"{private} is missing", "restore it from a copy: receipts cannot be signed without it"
        )
        return
    if mode & 0o077:
        yield wrong("key", f"{private} can be read by others (mode {mode:04o})", f"chmod 600 {private}")
        return
    public = load_public(folder)
    yield fine("key", f"{public.keyid[:16]}, readable by its owner alone")


def unit(watch_root: Path) -> Path:
    """Return where the watch's service unit stands, if it does."""
    return service.unit_folder(os.environ) / service.unit_name(watch_root)


def size(size_bytes: float) -> str:
    """Return bytes as a person reads them."""
    for name in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.0f} {name}" if name == "B" else f"{size_bytes:.1f} {name}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def _interpreter() -> Finding:
    python, sqlite = sys.version_info[:3], sqlite3.sqlite_version_info
    text = f"Python {'.'.join(map(str, python))}, SQLite {sqlite3.sqlite_version}"
    if python < PYTHON or sqlite < SQLITE:
        return wrong("interpreter", text, "Python 3.11 and SQLite 3.37 or newer are needed")
    return fine("interpreter", text)


def git() -> Finding:
    """Find git, new enough."""
    program = shutil.which("git")
    if program is None:
        return wrong("git", "is not on PATH", "install git")
    said = _said(program, "--version")
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < GIT:
        return wrong("git", said, f"install git {'.'.join(map(str, GIT))} or newer")
    return fine("git", f"{said}, {program}")


def _identity(folder: Path) -> Iterator[Finding]:
    program = shutil.which("git")
    if program is None:
        return
    who = _said(program, "-C", str(folder), "var", "GIT_COMMITTER_IDENT")
    if who:
        yield fine("git identity", re.sub(r" \d+ [+-]\d+$", "", who))
    else:
        yield wrong(
            "git identity", "git does not know who commits", "git config --global user.name and user.email"
        )


def _said(*argv: str) -> str:
    """Return what a program prints, or nothing if it fails."""
    finished = subprocess.run(argv, capture_output=True, check=False, timeout=30, stdin=subprocess.DEVNULL)
    return finished.stdout.decode("utf-8", "replace").strip() if finished.returncode == 0 else ""


def _sandbox(chosen: Sandboxing) -> Iterator[Finding]:
    name, sandbox = chosen.kind, sandbox_of(chosen)
    if not sandbox.confines:
        text = f"sandbox.kind is {name}: nothing protects this machine and your files from the worker"
        yield note("sandbox", text, 'use "bubblewrap" where it can be installed')
        return
    probes = self_test(sandbox)
    failed = [probe for probe in probes if not probe.ok]
    for probe in failed:
        yield wrong(
            "sandbox", f"{name}, {probe.name}: {probe.detail}", "the worker must not run before this holds"
        )
    if not failed:
        yield fine("sandbox", f"{name} held in all of {len(probes)} attempts to break out")
    if chosen.image and not pinned(chosen.image):
        text = f"sandbox.image = {chosen.image!r} may mean another image tomorrow"
        yield note("sandbox", text, "write it with its digest, name@sha256:…")


def _engines(chosen: Sandboxing) -> Iterator[Finding]:
    """Say of each engine of containers whether it is here and answers; only the chosen one has to."""
    for name in ENGINES:
        if program_of(name) is None and name != chosen.kind:
            continue
        try:
            engine = look(name)
        except (ConfigError, NotReadyError) as error:
            say = wrong if name == chosen.kind else note
            yield say("containers", str(error), f"needed only for sandbox.kind = {name!r}")
        else:
            yield fine("containers", f"{name} {engine.version} answers, {engine.program}")


def fork_escape() -> Finding:
    """Let a real child leave its session by a double fork, and see that it is found and ended."""
    cookie = new_cookie()
    try:
        record = _escaping(cookie)
    except ConfigError as error:
        return wrong("fork escape", str(error), "processes cannot be started here")
    left = find_by_cookie(cookie)
    if left:
        pids = ", ".join(str(one.pid) for one in left)
        return wrong("fork escape", f"lived on: {pids}", "report it; end them by hand")
    if not record.left_behind:
        return wrong("fork escape", "the child that should escape was not seen", "report it")
    return fine("fork escape", "a child that left its session was found and ended")


def _escaping(cookie: str) -> ProcessRecord:
    with tempfile.TemporaryDirectory(prefix="longwatch-doctor-") as folder:
        command = Command(
            argv=(sys.executable, "-I", "-c", _ESCAPE),
            cwd=Path(folder),
            environment={"PATH": os.defpath},
            log=Path(folder) / "log",
            limits=Limits(wall_s=30.0, grace_s=1.0),
            phase="doctor",
        )
        return run(command, cookie=cookie)


def durable_write(folder: Path) -> Finding:
    """Write a file, durably, and take it away again."""
    probe = folder / f".longwatch-{secrets.token_hex(8)}.tmp"
    try:
        files.replace(probe, b"durable")
        files.remove_recorded(probe, folder)
    except LongwatchError as error:
        return wrong("durable write", str(error), "a watch needs a folder that it can write to")
    return fine("durable write", f"write, fsync and rename work in {folder}")


def _control_groups() -> Finding:
    support = cgroup.detect()
    if support.kind is cgroup.CgroupKind.NONE:
        return note("control groups", f"{support.reason}; memory and process limits are sampled instead")
    return fine("control groups", f"{support.kind.value}: {support.reason}")
