"""Runs a child: watches over its whole tree, ends all of it, and leaves a record (specification K17 to K22)."""

import contextlib
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from longwatch.kernel import cgroup, tree
from longwatch.kernel.child import Command, Identity, Monitor, ProcessRecord, Silent
from longwatch.kernel.clock import stamp
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.identity import Stat, find_by_cookie, identify, send, snapshot
from longwatch.kernel.limits import LimitHit, Limits, Observation, verdict
from longwatch.kernel.meter import Meter
from longwatch.kernel.pump import CappedLog, Pump
from longwatch.kernel.redact import Redactor
from longwatch.kernel.spawn import exit_code, new_cookie, spawn, spawn_detached
from longwatch.kernel.tree import end_tree

__all__ = ["end_tree", "exit_code", "new_cookie", "run", "spawn_detached", "tail"]

_TICK_S = 0.2
_FIRST_TICK_S = 0.02
_TAIL_BYTES = 16_384

End = tuple[LimitHit, str]


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
        supervision = _Supervision(
            command, mark, group=group, known=known, monitor=monitor or Silent(), log=log
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


class _Before:
    """Our own counters before the child existed: the kernel adds its counters to ours."""

    def __init__(self) -> None:
        self.wall_s, self.monotonic_s = time.time(), time.monotonic()
        self.children_cpu_s = _children_cpu_s()
        # Between fork and exec the child is a copy of us, and its peak begins with ours.
        self.own_peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class _Supervision:
    """One child from its start to its end."""

    def __init__(
        self,
        command: Command,
        cookie: str,
        *,
        group: cgroup.Group | None,
        known: frozenset[int],
        monitor: Monitor,
        log: CappedLog,
    ) -> None:
        self._command, self._limits, self._cookie = command, command.limits, cookie
        self._group, self._known = group, known
        self._monitor = monitor
        self._redactor = Redactor(command.secrets)
        self._meter = Meter()
        self._end: End | None = None
        self._status: int | None = None
        self._sweeps = 0
        self._before = _Before()
        child = spawn(command, cookie, group)
        self._identity = identify(child.pid, cookie)
        self._pidfd = os.pidfd_open(child.pid)
        self._pump = self._pump_of(child, log)

    def _pump_of(self, child: "subprocess.Popen[bytes]", log: CappedLog) -> Pump:
        return Pump(
            child,
            pidfd=self._pidfd,
            log=log,
            redactor=self._redactor,
            stdin=self._command.stdin,
            line=lambda line: self._monitor.line(line, self._elapsed_s()),
        )

    def watch(self, should_stop: Callable[[], bool]) -> None:
        """Serve the child until it ends or must end; then end what is left of its tree, whatever happened."""
        tick_s = _FIRST_TICK_S
        try:
            while not self._pump.ended and self._end is None:
                self._turn(tick_s)
                self._end = self._reason(should_stop)
                tick_s = _TICK_S
            if self._end is not None:
                self._ask_to_end()
        finally:
            self._finish()

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._before.monotonic_s

    def _turn(self, tick_s: float) -> None:
        """Move output until the next sample is due."""
        due = time.monotonic() + tick_s
        while not self._pump.ended and (left_s := due - time.monotonic()) > 0:
            before = self._pump.printed_bytes
            self._pump.wait(left_s)
            if self._pump.printed_bytes != before:
                self._meter.output(self._elapsed_s())
            if self._pump.printed_bytes > self._limits.log_bytes:
                break
        self._sample()

    def _sample(self) -> None:
        stats = snapshot()
        strangers = self._strangers() if self._command.contained else frozenset()
        usage = tree.usage(self._members(stats, strangers), memory_limit_bytes=self._limits.memory_bytes)
        self._meter.measure(usage, self._elapsed_s())
        self._reap(stats)

    def _strangers(self) -> frozenset[int]:
        return frozenset(found.pid for found in find_by_cookie(self._cookie))

    def _members(self, stats: tuple[Stat, ...], extra: frozenset[int] = frozenset()) -> tuple[Stat, ...]:
        seeds = (tree.own_children(stats) - self._known) | extra
        return tree.family(stats, seeds, strangers=tree.own_line(stats) | self._known)

    def _reap(self, stats: tuple[Stat, ...]) -> None:
        """Take adopted zombies away; the child's own status is taken at the end."""
        tree.reap(self._adopted(stats))

    def _adopted(self, stats: tuple[Stat, ...]) -> frozenset[int]:
        itself = frozenset() if self._status is not None else frozenset({self._identity.pid})
        return tree.own_children(stats) - self._known - itself

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
            first_output_s=self._meter.first_output_s,
            idle_s=self._meter.idle_s(elapsed_s),
            log_bytes=self._pump.printed_bytes,
            memory_bytes=self._meter.usage.memory_bytes,
            processes=len(self._meter.usage.processes),
            free_disk_bytes=shutil.disk_usage(self._command.log.parent).free,
        )

    def _ask_to_end(self) -> None:
        """TERM for everyone, and time to say last words: their output is still taken."""
        deadline = time.monotonic() + self._limits.grace_s
        asked: frozenset[Identity] = frozenset()
        while not self._pump.ended and (left_s := deadline - time.monotonic()) > 0:
            members = self._find()
            if self._command.contained:
                # The launcher sees to the container's end, with helpers that must not be ended meanwhile.
                members = tree.inside(members)
            asked |= tree.ask(members, self._cookie, asked)
            self._wait_for_end(min(left_s, _TICK_S))

    def _wait_for_end(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not self._pump.ended and (left_s := deadline - time.monotonic()) > 0:
            self._pump.wait(left_s)

    def _find(self) -> tuple[Stat, ...]:
        """Everything that lives of the tree, however it tried to get away. Zombies may hide others: they go first."""
        deadline = time.monotonic() + tree.KILL_WITHIN_S
        while time.monotonic() < deadline:
            found = tree.marked(self._identity, self._cookie, self._group)
            stats = snapshot()
            members = self._members(stats, found)
            if members or not tree.sweep(self._adopted(stats)):
                return members
            self._sweeps += 1
        raise LongwatchError(
            f"{self._command.argv[0]} left processes behind that change their pid all the time"
        )

    def _finish(self) -> None:
        """Drain, end, reap: afterwards nothing of the child is left."""
        try:
            self._end_main()
            self._duration_s = self._elapsed_s()
            self._pump.finish()
            self._take_status()
            self._end_rest()
        finally:
            os.close(self._pidfd)

    def _take_status(self) -> None:
        _, self._status, used = os.wait4(self._identity.pid, 0)
        if used.ru_maxrss * 1024 > self._before.own_peak_bytes:
            self._meter.peak_bytes = max(self._meter.peak_bytes, used.ru_maxrss * 1024)

    def _end_rest(self) -> None:
        occupied = self._group is not None and cgroup.occupied(self._group)
        grace_s = self._limits.grace_s if self._end is None else 0.0
        left = tree.end(self._find, cookie=self._cookie, group=self._group, grace_s=grace_s)
        # The dead of the first sweep may have ended before the child did; those of a second one did not.
        unseen = occupied or self._sweeps > 1
        self._left_behind = len(left) or int(unseen)
        self._memory_kills = 0 if self._group is None else cgroup.out_of_memory_kills(self._group)

    def _end_main(self) -> None:
        """KILL the child itself if it did not go in its grace: whatever it leaves is then an orphan."""
        if self._pump.ended:
            return
        send(self._identity, signal.SIGKILL)
        self._wait_for_end(tree.KILL_WITHIN_S)
        if not self._pump.ended:
            raise LongwatchError(
                f"process {self._identity.pid} ({self._command.argv[0]}) hangs in the kernel and cannot be ended"
            )

    def record(self) -> ProcessRecord:
        """Return what is kept of it."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        limit, detail = self._end or self._seen_at_the_end(code) or (None, "")
        with self._command.log.open("rb") as log:
            digest = hashlib.file_digest(log, "sha256").hexdigest()
        return ProcessRecord(
            argv=self._redactor.argv(self._command.argv),
            cwd=str(self._command.cwd),
            phase=self._command.phase,
            started_at=stamp(self._before.wall_s),
            ended_at=stamp(self._before.wall_s + self._duration_s),
            duration_s=self._duration_s,
            cpu_s=max(self._meter.cpu_s, _children_cpu_s() - self._before.children_cpu_s),
            peak_memory_bytes=self._meter.peak_bytes,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            limit=limit,
            limit_detail=self._redactor.text(detail),
            log=str(self._command.log),
            log_sha256=digest,
            log_bytes=self._pump.printed_bytes,
            first_output_s=self._meter.first_output_s,
            left_behind=self._left_behind,
        )

    def _seen_at_the_end(self, code: int) -> End | None:
        """Limits that show only after the child's end: the kernel's kill, and output that came faster than a look."""
        if code != 0 and self._memory_kills:
            return (
                LimitHit.MEMORY,
                f"the kernel ended it at its memory limit of {self._limits.memory_bytes} bytes",
            )
        if self._pump.printed_bytes > self._limits.log_bytes:
            return (
                LimitHit.LOG,
                f"it printed {self._pump.printed_bytes} bytes; the limit is {self._limits.log_bytes}",
            )
        return None


def tail(path: Path, lines: int) -> str:
    """Last lines of a log, for a message; at most 16 KiB of them."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(deque(text.splitlines(), maxlen=lines))
