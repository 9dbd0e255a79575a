"""Runs the programs of steps as processes of this machine."""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from longwatch.kernel.child import Identity
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.executor import Running
from longwatch.kernel.identity import alive, open_pidfd, send
from longwatch.kernel.line import Job
from longwatch.kernel.process import spawn_detached
from longwatch.kernel.program import LOG
from longwatch.kernel.tree import end_tree


class LocalRunning:
    """A program in a session of its own: it may outlive this supervisor, and the next one finds it."""

    def __init__(self, identity: Identity, pidfd: int) -> None:
        """Own `pidfd` from now on."""
        self.identity = identity
        self._pidfd = pidfd

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when it has ended."""
        return self._pidfd

    def ended(self) -> bool:
        """Return whether it has ended; never blocks."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def ask_to_stop(self) -> None:
        """Send TERM to the program alone: it ends its own children in good order."""
        send(self.identity, signal.SIGTERM)

    def end(self) -> int:
        """Kill it and everything that carries its owner mark."""
        left = end_tree(self.identity if alive(self.identity) else None, self.identity.cookie, grace_s=0.0)
        if self.ended():
            self._reap()
        return left

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            # An adopted program is not our child; init reaps it.
            os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG)

    def __del__(self) -> None:
        """Let go of the descriptor with the last reference to it."""
        with suppress(OSError):
            os.close(self._pidfd)


class LocalExecutor:
    """The executor of one machine."""

    def __init__(self, environment: dict[str, str]) -> None:
        """`environment` is all that the programs see of ours."""
        self._environment = environment

    def start(self, folder: Path, job: Job, cookie: str) -> Running:
        """Start a step's program; its output goes to the log in the step's folder."""
        identity = spawn_detached(
            (*job.argv, str(folder)),
            cwd=job.cwd,
            environment={**self._environment, **job.environment},
            log=folder / LOG,
            cookie=cookie,
        )
        pidfd = open_pidfd(identity)
        if pidfd is None:
            # Our own child stays a zombie until we reap it, so this is somebody else's doing.
            raise LongwatchError(
                f"process {identity.pid} was reaped by another part of this program: report it"
            )
        return LocalRunning(identity, pidfd)

    def attach(self, identity: Identity, cookie: str) -> Running | None:  # noqa: ARG002 - the protocol's signature
        """Return a program that still runs, or `None`; a zombie that nobody reaped is dead."""
        pidfd = open_pidfd(identity) if alive(identity) else None
        return None if pidfd is None else LocalRunning(identity, pidfd)

    def end_leftovers(self, identity: Identity | None, cookie: str) -> int:
        """End whatever carries this owner mark; returns how many there were."""
        return end_tree(identity, cookie, grace_s=0.0)
