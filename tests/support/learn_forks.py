"""Learn watches whose step programs are forks of one program that has imported torch: each starts in milliseconds.

Supervisor, store, steps and the grader's sandboxes are the real ones; only the start of Python and of its libraries is
left out, so that one experiment can be killed many times. A program that uses this is started with `PLACEHOLDER` as its
cookie, and calls `begin` first.

One fork, the nursery, makes the programs of the steps: they are no children of a supervisor and outlive it, and share
nothing with it, above all not its lease and its database.
"""

import ctypes
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from longwatch.executors.local import LocalExecutor, LocalRunning
from longwatch.kernel import files
from longwatch.kernel.identity import COOKIE_VARIABLE, identify, open_pidfd
from longwatch.kernel.ownership import owned
from longwatch.kernel.program import LOG, main
from longwatch.kernel.store import Store
from longwatch.kernel.supervisor import Supervisor
from longwatch.kernel.watch import Watch
from longwatch.learn import program, settings
from longwatch.learn.line import LearnLine
from longwatch.learn.steps import LearnStep

PLACEHOLDER = "0" * 32
"""A step's fork writes its own cookie over it, in the memory that the kernel shows as its environment."""
_libc = ctypes.CDLL(None)
_libc.getenv.restype = ctypes.c_void_p
_MARK = _libc.getenv(COOKIE_VARIABLE.encode())
_BYTES = 65536
_PDEATHSIG = 1
"""Of prctl(2): what this process gets when its parent ends."""

Hook = Callable[..., None]
"""Called in a step's program before it begins, with the kind of the step and what the trial says."""


def begin() -> None:
    """Import all that steps import, once for all forks; one thread leaves no pool that a fork would lose."""
    assert os.environ.pop(COOKIE_VARIABLE) == PLACEHOLDER
    import peft  # noqa: F401, PLC0415
    from transformers import AutoModelForCausalLM, LlamaForCausalLM  # noqa: F401, PLC0415

    from longwatch.learn.student import generate, load  # noqa: F401, PLC0415
    from longwatch.learn.training import loop  # noqa: F401, PLC0415

    torch.set_num_threads(1)


class Nursery:
    """Makes the programs of steps, in a fork of its own that lives as long as this program."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self.hooks = hooks
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = forked(self._serve)

    def bear(self, folder: Path, environment: dict[str, str], cookie: str, hook: tuple[str, ...]) -> int:
        """Start the program of the step in `folder`, and return its pid."""
        asked = {"folder": str(folder), "environment": environment, "cookie": cookie, "hook": hook}
        self._ours.send(json.dumps(asked).encode())
        return int(self._ours.recv(_BYTES))

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def _serve(self) -> int:
        _libc.prctl(_PDEATHSIG, signal.SIGKILL)
        # Nobody waits for the programs: what has ended shall be gone.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            asked = json.loads(self._theirs.recv(_BYTES))
            self._theirs.send(str(forked(lambda asked=asked: self._step(**asked))).encode())

    def _step(self, folder: str, environment: dict[str, str], cookie: str, hook: list[str]) -> int:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with files.log(Path(folder) / LOG) as log:
            os.dup2(log, 1)
            os.dup2(log, 2)
        os.closerange(3, 256)
        ctypes.memmove(_MARK, cookie.encode(), len(PLACEHOLDER))
        os.environ.update({**environment, COOKIE_VARIABLE: cookie})
        # A fork's pool of threads is broken until it is asked for: not by two threads at once.
        torch.set_num_threads(1)
        self.hooks[hook[0]](Path(folder).name.split(".")[0], *hook[1:])
        return main(Path(folder), LearnStep, program.perform)


class Forking(LocalExecutor):
    """Lets the nursery start the programs of steps."""

    def __init__(self, nursery: Nursery, hook: tuple[str, ...]) -> None:
        super().__init__({})
        self._nursery, self._hook = nursery, hook

    def start(self, folder, job, cookie):
        identity = identify(self._nursery.bear(folder, dict(job.environment), cookie, self._hook), cookie)
        pidfd = open_pidfd(identity)
        assert pidfd is not None
        return LocalRunning(identity, pidfd)


def supervised(root: Path, nursery: Nursery, *hook: str, cycles: int | None = 1) -> int:
    """Supervise a watch for so many cycles in a fork, as `longwatch run` does, and return its pid."""

    def supervise() -> int:
        nursery.hooks[hook[0]]("supervisor", *hook[1:])
        watch, known = Watch(root), settings.load(root)
        with owned(watch, known.host):
            store = Store.open(watch.database)
            line, executor = LearnLine(known, root), Forking(nursery, hook)
            code = Supervisor(watch, known, line, executor, store).run(max_cycles=cycles)
            store.close()
        return int(code)

    return forked(supervise)


def forked(act: Callable[[], int]) -> int:
    """Return the pid of a fork that does this in a session of its own, and ends with its code."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        code = act()
    except BaseException:  # noqa: BLE001 - a fork must never go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(pid: int) -> int:
    """Wait for a fork, and return its exit code; negative: the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
