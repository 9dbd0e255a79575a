"""Starts a child, watches over its whole tree, ends all of it, and leaves a record (specification K17 to K22)."""

import contextlib
import hashlib
import os
import resource
import secrets
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from longwatch.kernel import cgroup, tree
from longwatch.kernel.child import Command, Identity, Monitor, ProcessRecord, Silent
from longwatch.kernel.clock import stamp
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.identity import COOKIE_VARIABLE, Stat, identify, open_pidfd, read_stat, send, snapshot
from longwatch.kernel.limits import LimitHit, Limits, Observation, verdict
from longwatch.kernel.pump import CappedLog, Pump
from longwatch.kernel.redact import Redactor
from longwatch.kernel.tree import Usage, end_tree

__all__ = ["end_tree", "exit_code", "new_cookie", "run", "spawn_detached", "tail"]

_TICK_S = 0.2
_OUT_OF_MEMORY_FIRST = 1000
_OUT_OF_MEMORY_EARLY = 500
_CPU_NOISE_S = 0.02
_CPU_NOISE_SHARE = 0.01
_IO_NOISE_BYTES = 4096

End = tuple[LimitHit, str]


def new_cookie() -> str:
    """Return an owner mark for one child. Inside a child of ours it begins with that child's own mark.

    So the mark of a step finds everything that the step started, however deep.
    """
    own = os.environ.get(COOKIE_VARIABLE)
    return f"{own}.{secrets.token_hex(8)}" if own else secrets.token_hex(16)


def run(
    command: Command,
    *,
    cookie: str | None = None,
    monitor: Monitor | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> ProcessRecord:
    """Run one program inside its limits, and return when nothing of it lives any more.

    A calling process runs one child at a time: it becomes a subreaper, and every child that it did not have before is
    taken for part of the tree. A program that cannot be started is a `ConfigError`.
    """
    mark = cookie or new_cookie()
    tree.become_subreaper()
    known = tree.own_children(snapshot())
    with _group(mark, command.limits) as group, _log(command) as log:
        child = _spawn(command, mark, group)
        supervision = _Supervision(
            command, child, mark, group=group, known=known, monitor=monitor or Silent(), log=log
        )
        supervision.watch(should_stop)
    return supervision.record()


@contextlib.contextmanager
def _group(cookie: str, limits: Limits) -> Iterator[cgroup.Group | None]:
    group = cgroup.create(cookie, memory_bytes=limits.memory_bytes, processes=limits.processes)
    try:
        yield group
    finally:
        if group is not None:
            tree.remove_group(group)


@contextlib.contextmanager
def _log(command: Command) -> Iterator[CappedLog]:
    log = CappedLog(command.log, command.limits.log_bytes)
    try:
        yield log
    finally:
        log.close()


class _Supervision:
    """One child from its start to its end."""

    def __init__(
        self,
        command: Command,
        child: "subprocess.Popen[bytes]",
        cookie: str,
        *,
        group: cgroup.Group | None,
        known: frozenset[int],
        monitor: Monitor,
        log: CappedLog,
    ) -> None:
        self._command = command
        self._limits = command.limits
        self._cookie = cookie
        self._group = group
        self._known = known
        self._monitor = monitor
        self._redactor = Redactor(command.secrets)
        self._started_wall_s, self._started_s = time.time(), time.monotonic()
        self._cpu_before_s = _children_cpu_s()
        self._identity = identify(child.pid, cookie)
        self._pidfd = os.pidfd_open(child.pid)
        self._pump = Pump(
            child,
            pidfd=self._pidfd,
            log=log,
            redactor=self._redactor,
            stdin=command.stdin,
            line=self._take_line,
        )
        self._usage = self._mark = Usage()
        self._marked_s = self._active_s = 0.0
        self._first_output_s: float | None = None
        self._peak_bytes = 0
        self._sampled_cpu_s = 0.0
        self._end: End | None = None
        self._status = 0
        self._left_behind = 0
        self._duration_s = 0.0
        self._memory_kills = 0

    def watch(self, should_stop: Callable[[], bool]) -> None:
        """Serve the child until it ends or must end; then end what is left of its tree, whatever happened."""
        try:
            while not self._pump.ended and self._end is None:
                self._turn()
                self._end = self._reason(should_stop)
            if self._end is not None and not self._pump.ended:
                self._ask_to_end()
        finally:
            self._finish()

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s

    def _take_line(self, line: bytes) -> None:
        self._monitor.line(line, self._elapsed_s())

    def _turn(self) -> None:
        """Move output until the next sample is due."""
        due = time.monotonic() + _TICK_S
        while not self._pump.ended and (left_s := due - time.monotonic()) > 0:
            before = self._pump.printed_bytes
            self._pump.wait(left_s)
            if self._pump.printed_bytes != before:
                self._active_s = self._elapsed_s()
                if self._first_output_s is None:
                    self._first_output_s = self._active_s
            if self._pump.printed_bytes > self._limits.log_bytes:
                break
        self._sample()

    def _sample(self) -> None:
        stats = snapshot()
        self._usage = tree.usage(self._members(stats), memory_limit_bytes=self._limits.memory_bytes)
        self._peak_bytes = max(self._peak_bytes, self._usage.memory_bytes)
        self._sampled_cpu_s = max(self._sampled_cpu_s, self._usage.cpu_s)
        now_s = self._elapsed_s()
        if _is_active(self._mark, self._usage, now_s - self._marked_s):
            self._mark, self._marked_s, self._active_s = self._usage, now_s, now_s
        self._reap(stats)

    def _members(self, stats: tuple[Stat, ...], extra: frozenset[int] = frozenset()) -> tuple[Stat, ...]:
        seeds = (tree.own_children(stats) - self._known) | extra
        return tree.family(stats, seeds, strangers=tree.own_line(stats) | self._known)

    def _reap(self, stats: tuple[Stat, ...]) -> None:
        """Take adopted zombies away; the child's own status is taken at the end."""
        tree.reap(tree.own_children(stats) - self._known - {self._identity.pid})

    def _reason(self, should_stop: Callable[[], bool]) -> End | None:
        if self._pump.ended:
            return None
        if should_stop():
            return LimitHit.STOPPED, "it was asked to stop"
        reason = self._monitor.reason_to_end(self._elapsed_s())
        if reason is not None:
            return LimitHit.MONITOR, reason
        return verdict(self._limits, self._observe())

    def _observe(self) -> Observation:
        elapsed_s = self._elapsed_s()
        return Observation(
            elapsed_s=elapsed_s,
            first_output_s=self._first_output_s,
            idle_s=elapsed_s - self._active_s,
            log_bytes=self._pump.printed_bytes,
            memory_bytes=self._usage.memory_bytes,
            processes=len(self._usage.processes),
            free_disk_bytes=shutil.disk_usage(self._command.log.parent).free,
        )

    def _ask_to_end(self) -> None:
        """TERM for everyone, and time to say last words: their output is still taken."""
        for stat in self._find():
            send(tree.identity_of(stat, self._cookie), signal.SIGTERM)
        deadline = time.monotonic() + self._limits.grace_s
        while not self._pump.ended and (left_s := deadline - time.monotonic()) > 0:
            self._pump.wait(min(left_s, _TICK_S))

    def _find(self) -> tuple[Stat, ...]:
        """Everything that lives of the tree, however it tried to get away."""
        found = tree.marked(self._identity, self._cookie, self._group)
        stats = snapshot()
        self._reap(stats)
        return self._members(stats, found)

    def _finish(self) -> None:
        """Drain, end, reap: afterwards nothing of the child is left."""
        try:
            if self._end is not None or not self._pump.ended:
                self._end_main()
            self._duration_s = self._elapsed_s()
            self._pump.finish()
            grace_s = self._limits.grace_s if self._end is None else 0.0
            left = tree.end(self._find, cookie=self._cookie, group=self._group, grace_s=grace_s)
            self._left_behind = len({one for one in left if one != self._identity})
            self._memory_kills = 0 if self._group is None else cgroup.out_of_memory_kills(self._group)
        finally:
            os.close(self._pidfd)
        _, self._status, used = os.wait4(self._identity.pid, 0)
        self._peak_bytes = max(self._peak_bytes, used.ru_maxrss * 1024)

    def _end_main(self) -> None:
        """KILL the child itself if it did not go in its grace, and wait for it: the rest is then an orphan."""
        if not self._pump.ended:
            send(self._identity, signal.SIGKILL)
        while not self._pump.ended:
            self._pump.wait(_TICK_S)

    def record(self) -> ProcessRecord:
        """Return what is kept of it."""
        code = os.waitstatus_to_exitcode(self._status)
        limit, detail = self._end or self._killed_for_memory(code) or (None, "")
        with self._command.log.open("rb") as log:
            digest = hashlib.file_digest(log, "sha256").hexdigest()
        return ProcessRecord(
            argv=self._redactor.argv(self._command.argv),
            cwd=str(self._command.cwd),
            phase=self._command.phase,
            started_at=stamp(self._started_wall_s),
            ended_at=stamp(self._started_wall_s + self._duration_s),
            duration_s=self._duration_s,
            cpu_s=max(self._sampled_cpu_s, _children_cpu_s() - self._cpu_before_s),
            peak_memory_bytes=self._peak_bytes,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            limit=limit,
            limit_detail=self._redactor.text(detail),
            log=str(self._command.log),
            log_sha256=digest,
            log_bytes=self._pump.printed_bytes,
            first_output_s=self._first_output_s,
            left_behind=self._left_behind,
        )

    def _killed_for_memory(self, code: int) -> End | None:
        if code == 0 or not self._memory_kills:
            return None
        return (
            LimitHit.MEMORY,
            f"the kernel ended it at its memory limit of {self._limits.memory_bytes} bytes",
        )


def _is_active(before: Usage, now: Usage, passed_s: float) -> bool:
    """True if the tree did more than the housekeeping of a program that only waits."""
    return (
        now.processes != before.processes
        or now.cpu_s - before.cpu_s > _CPU_NOISE_S + _CPU_NOISE_SHARE * passed_s
        or now.io_bytes - before.io_bytes > _IO_NOISE_BYTES
    )


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _spawn(command: Command, cookie: str, group: cgroup.Group | None) -> "subprocess.Popen[bytes]":
    limits = command.limits
    processes = None if limits.processes is None or group is not None else limits.processes + _own_tasks()
    return _start(
        command.argv,
        cwd=command.cwd,
        environment={**command.environment, COOKIE_VARIABLE: cookie},
        stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
        output=subprocess.PIPE,
        errors=subprocess.PIPE,
        prepare=lambda: _prepare(group, _OUT_OF_MEMORY_FIRST, processes, limits.file_bytes),
    )


def _own_tasks() -> int:
    """Count the threads of this user: RLIMIT_NPROC counts them all, not only the child's."""
    user = os.getuid()
    return sum(_tasks(stat.pid, user) for stat in snapshot())


def _tasks(pid: int, user: int) -> int:
    try:
        folder = Path(f"/proc/{pid}")
        return len(os.listdir(folder / "task")) if folder.stat().st_uid == user else 0  # noqa: PTH208 - only counted
    except OSError:  # it ended, or is hidden
        return 0


def _prepare(
    group: cgroup.Group | None, adjustment: int, processes: int | None, file_bytes: int | None
) -> None:
    """Between fork and exec, in the child: enter the group, set limits, forget our signal handling."""
    if group is not None:
        cgroup.join(group)
    Path("/proc/self/oom_score_adj").write_text(str(adjustment), encoding="ascii")
    _lower(resource.RLIMIT_CORE, 0)
    if processes is not None:
        _lower(resource.RLIMIT_NPROC, processes)
    if file_bytes is not None:
        _lower(resource.RLIMIT_FSIZE, file_bytes)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def _start(
    argv: tuple[str, ...],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: int,
    output: int | IO[bytes],
    errors: int,
    prepare: Callable[[], None],
) -> "subprocess.Popen[bytes]":
    if not argv:
        raise ConfigError("there is no program to run: the command line is empty")
    if not cwd.is_dir():
        raise ConfigError(f"{argv[0]} cannot be started: its working directory {cwd} does not exist")
    try:
        child = subprocess.Popen(  # noqa: S603 - a list, no shell
            argv,
            cwd=cwd,
            env=dict(environment),
            stdin=stdin,
            stdout=output,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - the one place between fork and exec; callers have one thread
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{argv[0]} cannot be started in {cwd}: {error}; install it or correct its path"
        ) from error
    # Its end is taken by pidfd and wait4; without a code Popen would wait for it behind our back.
    child.returncode = 0
    return child


def spawn_detached(
    argv: tuple[str, ...], *, cwd: Path, environment: Mapping[str, str], log: Path, cookie: str
) -> Identity:
    """Start a program of ours that outlives us: own session, no input, output straight into its log.

    Wait for its end with `identity.open_pidfd`, take its code with `exit_code`, then call `end_tree`.
    """
    group = cgroup.create(cookie, memory_bytes=None, processes=None)
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(log, flags, 0o600), "ab", buffering=0) as output:
        child = _start(
            argv,
            cwd=cwd,
            environment={**environment, COOKIE_VARIABLE: cookie},
            stdin=subprocess.DEVNULL,
            output=output,
            errors=subprocess.STDOUT,
            prepare=lambda: _prepare(group, _OUT_OF_MEMORY_EARLY, None, None),
        )
    return identify(child.pid, cookie)


def exit_code(identity: Identity) -> int | None:
    """Take the exit code of a child of ours that ended (negative: the signal); `None` if it is not ours or still runs."""
    stat = read_stat(identity.pid)
    if stat is None or stat.start_ticks != identity.start_ticks or stat.ppid != os.getpid():
        return None
    pid, status = os.waitpid(identity.pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


def tail(path: Path, lines: int) -> str:
    """Last lines of a log, for a message; at most 16 KiB of them."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 16_384, 0))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(deque(text.splitlines(), maxlen=lines))
