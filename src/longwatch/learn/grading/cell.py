"""One sandboxed process: no network, no privileges, no files but /usr and a small folder in memory.

Or, where the settings ask for it, a container: no files but those of its image, and a few small folders in memory.

Slimmer than the sandbox of a worker, because two are started for every answer: no /proc, no /etc, no home. The process
is the first of its own pid namespace, so that whatever it started ends with it.
"""

import contextlib
import functools
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError, LongwatchError, NotReadyError, TransientError
from longwatch.kernel.identity import COOKIE_VARIABLE, read_stat
from longwatch.kernel.spawn import new_cookie
from longwatch.kernel.tree import end_tree
from longwatch.learn.grading.bounds import Bounds
from longwatch.learn.grading.languages import Script
from longwatch.learn.grading.place import FOLDER, HERE, contained, container
from longwatch.learn.grading.wire import ClosedError, Frames, LateError, Patience, Tree
from longwatch.sandbox.choice import Sandboxing

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_NOBODY = "65534"
_INSIDE = "1000"
_KILLED = 128 + signal.SIGKILL
_POLITE_S = 0.1
_KILL_AGAIN_S = 0.05
_KILLS = 200
_ENGINE_S = 60.0
_ERROR_BYTES = 2000


class InfraError(TransientError):
    """Our own trouble: the answer was not judged."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell ended and what it used."""

    status: int
    """Its exit status; minus a signal's number."""
    cpu_s: float
    from_outside: bool
    """Its launcher was killed, and not by us."""
    killed: bool
    """It was killed by the kernel, or says so: the first process of a namespace can't be killed from inside."""


class Cell:
    """A started process and its two pipes."""

    def __init__(
        self,
        argv: tuple[str, ...],
        bounds: Bounds,
        *,
        seed: int,
        patience: Patience,
        script: Script | None = None,
        where: Sandboxing = HERE,
    ) -> None:
        self._cookie = new_cookie()
        self._contained = contained(where)
        words = (
            _in_container(argv, bounds, seed, script, where)
            if self._contained
            else _in_bubblewrap(argv, bounds, seed, script, self._cookie)
        )
        self._process = _start(words, self._cookie)
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018 - for mypy
        self._frames = Frames(
            self._process.stdout.fileno(),
            self._process.stdin.fileno(),
            largest_bytes=bounds.frame_bytes,
            patience=patience,
        )
        self._patience = patience
        self._ended_by_us = False
        self._began_s = time.monotonic()

    def boot(self, code: bytes) -> None:
        """Hand our own program over, before any frame."""
        with self._starting():
            self._frames.write(code)

    def await_ready(self) -> None:
        """Wait until our own code runs inside. Until then every trouble is ours."""
        with self._starting():
            message = self._frames.receive()
        if message != ["ready"]:
            raise InfraError("the sandboxed process did not say that it is ready")
        self._began_s = time.monotonic()

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        try:
            yield
        except (ClosedError, LateError) as error:
            raise InfraError(f"the sandbox did not start: {self.last_words() or error}") from error

    def send(self, message: Tree) -> None:
        """Write one frame."""
        self._frames.send(message)

    def receive(self) -> list[Tree]:
        """Read one frame."""
        return self._frames.receive()

    def output(self) -> bytes:
        """Read what it writes until it ends."""
        written = self._frames.rest()
        pidfd = os.pidfd_open(self._process.pid)
        try:
            self._patience.wait(pidfd, select.POLLIN)
        finally:
            os.close(pidfd)
        return written

    def last_words(self) -> str:
        """End it, and return what it said about its end."""
        self._kill()
        assert self._process.stderr is not None  # noqa: S101 - for mypy
        with contextlib.suppress(BlockingIOError):
            os.set_blocking(self._process.stderr.fileno(), False)
            return os.read(self._process.stderr.fileno(), _ERROR_BYTES).decode("utf-8", "replace").strip()
        return ""

    def end(self) -> Ended:
        """End it with all that it started, and return when nothing of it lives."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if not self._gone(_POLITE_S):
            self._kill()
        wall_s = time.monotonic() - self._began_s
        _, status, used = os.wait4(self._process.pid, 0)
        from_outside = os.WIFSIGNALED(status) and not self._ended_by_us
        if from_outside:
            # bubblewrap ties its child's life to its own a moment after it started it: until then it leaves it behind.
            end_tree(None, self._cookie, grace_s=0.0)
        return Ended(
            status=os.waitstatus_to_exitcode(status),
            # What a container used, its engine does not tell: it cannot have been more than the time that passed.
            cpu_s=wall_s if self._contained else used.ru_utime + used.ru_stime,
            from_outside=from_outside,
            killed=os.waitstatus_to_exitcode(status) == _KILLED and not self._ended_by_us,
        )

    def _kill(self) -> None:
        """KILL what is inside: its launcher then ends, and the kernel tells us what both used."""
        if self._contained:
            self._dismiss()
            return
        for _ in range(_KILLS):
            if self._gone(0.0):
                return
            self._ended_by_us = True
            for pid in _children(self._process.pid) or (self._process.pid,):
                _kill_child(pid, self._process.pid)
            if self._gone(_KILL_AGAIN_S):
                return
        raise LongwatchError(f"process {self._process.pid} hangs in the kernel and cannot be ended")

    def _dismiss(self) -> None:
        """Tell the program around a container that nobody waits any more: it removes the container, and ends."""
        if self._gone(0.0):
            return
        self._ended_by_us = True
        # It is our child, and nobody has waited for it: its pid is its own.
        os.kill(self._process.pid, signal.SIGHUP)
        if not self._gone(_ENGINE_S):
            raise LongwatchError(
                f"process {self._process.pid} does not get its container removed; look at the engine"
            )

    def _gone(self, timeout_s: float) -> bool:
        """True if it ended; it stays a zombie, so that its pid means nobody else."""
        pidfd = os.pidfd_open(self._process.pid)
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            return bool(poll.poll(timeout_s * 1000))
        finally:
            os.close(pidfd)


def _in_bubblewrap(
    argv: tuple[str, ...], bounds: Bounds, seed: int, script: Script | None, cookie: str
) -> tuple[str, ...]:
    # By the cookie a supervisor, or we, find what is inside without its launcher. It is no secret.
    marked = ("--setenv", COOKIE_VARIABLE, cookie, "--")
    more = () if script is None else _needs(script)
    return (*confined(bounds.tmp_bytes, seed), *more, "--remount-ro", "/", *marked, *argv)


def _in_container(
    argv: tuple[str, ...], bounds: Bounds, seed: int, script: Script | None, where: Sandboxing
) -> tuple[str, ...]:
    hidden, more = ((), {}) if script is None else (script.hidden, script.environment)
    try:
        return container(
            where, argv, environment={**_variables(seed), **more}, tmp_bytes=bounds.tmp_bytes, hidden=hidden
        )
    except (ConfigError, NotReadyError) as error:
        raise InfraError(str(error)) from error


def _variables(seed: int) -> dict[str, str]:
    # The order of sets must be the same every time: a verdict is no dice.
    return {
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(FOLDER),
        "PYTHONHASHSEED": str(seed),
        "PATH": "/usr/bin:/bin",
    }


def _needs(script: Script) -> tuple[str, ...]:
    words = ["--proc", "/proc"] if script.procfs else []
    for path in script.binds:
        words += ("--ro-bind-try", path, path)
    for path in script.hidden:
        if Path(path).exists():
            words += ("--ro-bind", "/dev/null", path)
    for name, value in script.environment.items():
        words += ("--setenv", name, value)
    return tuple(words)


def _start(argv: tuple[str, ...], cookie: str) -> "subprocess.Popen[bytes]":
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={"PATH": os.environ.get("PATH", os.defpath), COOKIE_VARIABLE: cookie},
            cwd="/",
            # A signal from the terminal would end the sandbox, and look like the answer's fault.
            start_new_session=True,
        )
    except OSError as error:
        raise InfraError(f"{argv[0]} cannot be started: {error}; install it, or free memory") from error
    # Its end is taken by wait4; without a code Popen would wait for it behind our back.
    process.returncode = 0
    return process


def _children(pid: int) -> tuple[int, ...]:
    try:
        return tuple(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()))
    except OSError:  # it just ended, or this kernel has no such list
        return ()


def _kill_child(pid: int, parent: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        stat = read_stat(pid)
        if pid == parent or (stat is not None and stat.ppid == parent):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


@functools.cache
def confined(tmp_bytes: int, seed: int) -> tuple[str, ...]:
    """Return the command line before the program's own, but for its last word: built once, because all cells share it."""
    return (
        # As root: RLIMIT_NPROC and file modes mean nothing to root, also not to root in a namespace.
        *(_unprivileged() if os.geteuid() == 0 else ()),
        *("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--uid", _INSIDE, "--gid", _INSIDE),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--as-pid-1"),
        *("--clearenv", *(word for pair in _variables(seed).items() for word in ("--setenv", *pair))),
        *("--ro-bind", "/usr", "/usr", *_system()),
        *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", "/tmp"),  # noqa: S108 - as above
        *("--chdir", "/tmp"),  # noqa: S108 - as above
    )


def _unprivileged() -> tuple[str, ...]:
    return ("setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups")


def _system() -> tuple[str, ...]:
    words: list[str] = []
    for name in _SYSTEM:
        folder = Path("/", name)
        if folder.is_symlink():
            words += ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            words += ("--ro-bind", str(folder), str(folder))
    return tuple(words)
