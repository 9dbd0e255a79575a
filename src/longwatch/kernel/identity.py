"""Which process is meant. A reused pid is never signalled: every signal re-checks the identity behind a pidfd."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from longwatch.kernel.child import Identity
from longwatch.kernel.clock import boot_id
from longwatch.kernel.errors import LongwatchError

COOKIE_VARIABLE = "LONGWATCH_COOKIE"
"""The owner mark in a child's environment. A nested child's cookie starts with its parent's and a dot."""

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
_DEAD_STATES = frozenset("ZXx")


class Stat(msgspec.Struct, frozen=True):
    """One line of /proc/PID/stat (see proc(5)). CPU and start in clock ticks, memory in pages."""

    pid: int
    state: str
    ppid: int
    process_group: int
    session: int
    cpu_ticks: int
    ended_ticks: int
    """Of the children that it has waited for, and of theirs."""
    start_ticks: int
    rss_pages: int

    @property
    def dead(self) -> bool:
        """True for a zombie: it only waits to be reaped."""
        return self.state in _DEAD_STATES


def read_stat(pid: int) -> Stat | None:
    """Read /proc/PID/stat; `None` if there is no such process, or it is hidden from us."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - a Path per process is slow
            raw = file.read()
    except _GONE:
        return None
    # The name in parentheses may itself hold spaces and parentheses: the last one closes it.
    fields = raw[raw.rindex(b")") + 2 :].split()
    return Stat(
        pid=pid,
        state=fields[0].decode(),
        ppid=int(fields[1]),
        process_group=int(fields[2]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        ended_ticks=int(fields[13]) + int(fields[14]),
        start_ticks=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def snapshot() -> tuple[Stat, ...]:
    """Every process of this machine that can be seen now."""
    return tuple(stat for stat in map(read_stat, _pids()) if stat is not None)


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - a Path per process is slow


def namespace_depth(pid: int) -> int:
    """How many nested pid namespaces the process lives in: 1 outside every container; 0 if it is gone."""
    return len(namespace_pids(pid))


def namespace_pids(pid: int) -> tuple[int, ...]:
    """Return the pids of a process in each of its nested pid namespaces, ours first; empty if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except _GONE:
        return ()
    return next((tuple(map(int, line.split()[1:])) for line in lines if line.startswith("NSpid:")), (pid,))


def identify(pid: int, cookie: str) -> Identity:
    """Return the identity of a process that exists now, a zombie too; it is an error if there is none."""
    stat = read_stat(pid)
    if stat is None:
        raise LongwatchError(f"process {pid} does not exist (any more); start it again")
    return identity_of(stat, cookie)


def identity_of(stat: Stat, cookie: str) -> Identity:
    """Identity of the process that this line of /proc describes."""
    return Identity(boot_id=boot_id(), pid=stat.pid, start_ticks=stat.start_ticks, cookie=cookie)


def alive(identity: Identity) -> bool:
    """True if exactly this process runs: same boot, same pid, same start. A zombie is dead."""
    if identity.boot_id != boot_id():
        return False
    stat = read_stat(identity.pid)
    return stat is not None and stat.start_ticks == identity.start_ticks and not stat.dead


def find_by_cookie(cookie: str) -> tuple[Identity, ...]:
    """Every living process whose initial environment carries this cookie, or one derived from it."""
    return tuple(found for pid in _pids() if (found := _marked(pid, cookie)) is not None)


def _marked(pid: int, cookie: str) -> Identity | None:
    before = read_stat(pid)
    if before is None or before.dead or not _carries(pid, cookie):
        return None
    # Between the two reads the pid may have been given to another process.
    after = read_stat(pid)
    if after is None or after.dead or after.start_ticks != before.start_ticks:
        return None
    return identity_of(after, cookie)


def _carries(pid: int, cookie: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123 - a Path per process is slow
            environment = file.read()
    except OSError:  # gone, forbidden, or without memory of its own: each means that it isn't found this way
        return False
    mark = f"{COOKIE_VARIABLE}={cookie}".encode()
    return mark in environment and any(
        entry == mark or entry.startswith(mark + b".") for entry in environment.split(b"\0")
    )


def open_pidfd(identity: Identity) -> int | None:
    """Open a descriptor that means this process for ever and is readable once it ended; `None` if it is gone.

    A zombie that was not reaped yet still has one. The caller closes it.
    """
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    stat = read_stat(identity.pid)
    # The descriptor pins the process: if the identity holds after opening, it is the one that was meant.
    if identity.boot_id == boot_id() and stat is not None and stat.start_ticks == identity.start_ticks:
        return pidfd
    os.close(pidfd)
    return None


def send(identity: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it is gone (or is another one under its pid)."""
    if not alive(identity):
        return False
    pidfd = open_pidfd(identity)
    if pidfd is None:
        return False
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A set-uid program took another owner: nobody but its owner or root can end it.
        return False
    finally:
        os.close(pidfd)
    return True
