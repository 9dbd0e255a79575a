"""Handing a held lease to a daemon, so that the watch is owned at every moment (specification K2)."""

import os
import subprocess
import sys

import msgspec

from longwatch.kernel import files, lease
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.process import tail
from longwatch.kernel.watch import Watch


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon that said it is ready."""

    watch: str
    pid: int


def start(watch: Watch) -> Begun:
    """Start a daemon that owns the watch, or raise what it said before it ended."""
    held = lease.acquire(watch.lease)
    told, tell = os.pipe()
    try:
        process = _spawn(watch, held.descriptor, tell)
    finally:
        os.close(tell)
        held.close()
    with os.fdopen(told, "rb") as pipe:
        ready = pipe.read(1)
    if not ready:
        code = process.wait()
        said = tail(watch.daemon_log, 12)
        raise LongwatchError(
            f"The daemon ended with code {code} before it was ready. {watch.daemon_log} says:\n{said}"
        )
    return Begun(watch=str(watch.root), pid=process.pid)


def _spawn(watch: Watch, lease_descriptor: int, tell: int) -> "subprocess.Popen[bytes]":
    files.make_folder(watch.hidden)
    argv = [
        *(sys.executable, "-I", "-m", "longwatch.cli.main", "run", "--stay"),
        *("--watch-dir", str(watch.root), "--lease", str(lease_descriptor), "--ready", str(tell)),
    ]
    with files.log(watch.daemon_log) as log:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lease_descriptor, tell),
            cwd=watch.root,
        )
