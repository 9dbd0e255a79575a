"""Runs one git command to its end: bounded in time and output, and never held up by what it leaves behind.

Output goes to memory files and not to pipes, so that a hook's background process which keeps them open cannot make us
wait. The command runs in its own session, so that a hook that hangs is ended with it.
"""

import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import msgspec

from longwatch.kernel.errors import LongwatchError

_TICK_S = 0.2
_GRACE_S = 3.0


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one command. `code` is negative for a signal."""

    code: int
    stdout: bytes
    stderr: bytes
    ended_by: str = ""
    """Why we ended it: `time`, `output`, or nothing."""

    @property
    def ok(self) -> bool:
        """True if it ended by itself with exit code 0."""
        return self.code == 0 and not self.ended_by

    @property
    def ending(self) -> str:
        """How it ended, for a sentence that begins with the command."""
        if self.ended_by == "time":
            return "did not end in time and was ended"
        if self.ended_by == "output":
            return "printed more than the limit and was ended"
        return f"was killed by signal {-self.code}" if self.code < 0 else f"failed with exit code {self.code}"


def finish(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    stdin: bytes,
    *,
    timeout_s: float,
    output_bytes: int,
) -> Finished:
    """Run a command to its end. It is ended, with its whole session, after `timeout_s` or beyond `output_bytes`.

    Raises `LongwatchError` if it cannot be started at all.
    """
    with ExitStack() as stack:
        fed, out, err = (stack.enter_context(_memory(name)) for name in ("stdin", "stdout", "stderr"))
        fed.write(stdin)
        fed.seek(0)
        child = _start(argv, cwd, environment, (fed, out, err))
        try:
            ended_by = _watch(child, (out, err), timeout_s, output_bytes)
        finally:
            _end(child)
        return Finished(
            code=child.wait(),
            stdout=_content(out, output_bytes),
            stderr=_content(err, output_bytes),
            ended_by=ended_by,
        )


def _start(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: tuple[BinaryIO, BinaryIO, BinaryIO],
) -> subprocess.Popen[bytes]:
    fed, out, err = streams
    try:
        return subprocess.Popen(
            argv, cwd=cwd, env=dict(environment), stdin=fed, stdout=out, stderr=err, start_new_session=True
        )
    except OSError as error:
        raise LongwatchError(
            f"cannot run {argv[0]} in {cwd}: {error.strerror}. Install it, or check the folder"
        ) from error


def _memory(name: str) -> BinaryIO:
    return os.fdopen(os.memfd_create(f"git-{name}"), "w+b")


def _content(file: BinaryIO, limit: int) -> bytes:
    file.seek(0)
    return file.read(limit)


def _watch(child: subprocess.Popen[bytes], outputs: Sequence[BinaryIO], timeout_s: float, limit: int) -> str:
    """Wait for the child; return why it has to be ended, or nothing if it ended by itself."""
    deadline = monotonic() + timeout_s
    while not _ended(child, min(_TICK_S, max(deadline - monotonic(), 0.0))):
        if any(os.fstat(file.fileno()).st_size > limit for file in outputs):
            return "output"
        if monotonic() >= deadline:
            return "time"
    return "output" if any(os.fstat(file.fileno()).st_size > limit for file in outputs) else ""


def _ended(child: subprocess.Popen[bytes], wait_s: float) -> bool:
    # A child that was not waited for keeps its pid, so the descriptor cannot name another process.
    descriptor = os.pidfd_open(child.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))
    finally:
        os.close(descriptor)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child's session if the child still runs: TERM, so that git removes its locks, then KILL."""
    if _ended(child, 0.0):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        if _ended(child, _GRACE_S):
            break
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
