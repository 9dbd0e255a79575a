"""A child and everything that came from it: who belongs to it, what it uses, and how to end all of it.

Descendants are found by parent, by session, by the cookie in their environment and by their control group. What escapes
by `setsid` and a double fork becomes a child of the subreaper; what also clears its environment is still in the group.
"""

import contextlib
import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from longwatch.kernel import cgroup
from longwatch.kernel.child import Identity
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.identity import (
    Stat,
    alive,
    find_by_cookie,
    identity_of,
    namespace_depth,
    namespace_pids,
    open_pidfd,
    read_stat,
    send,
    snapshot,
)
from longwatch.kernel.meter import Usage

_PR_SET_CHILD_SUBREAPER = 36
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KILL_WITHIN_S = 30.0
"""A process that lives on for so long after KILL hangs in the kernel."""

_LOOK_AGAIN_S = 0.05
_MOST_WATCHED = 256
_FIRST = 1

Find = Callable[[], tuple[Stat, ...]]


def become_subreaper() -> None:
    """Make orphans among our descendants become our children, instead of init's (prctl(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise LongwatchError(
            f"cannot adopt orphans: {os.strerror(ctypes.get_errno())}; Linux 3.4 or newer is needed"
        )


def family(stats: Iterable[Stat], seeds: frozenset[int], *, strangers: frozenset[int]) -> tuple[Stat, ...]:
    """Return the living among the seeds, their descendants, and the members of their sessions. Pure."""
    candidates = [stat for stat in stats if not stat.dead and stat.pid not in strangers]
    members = {stat.pid for stat in candidates if stat.pid in seeds}
    size = -1
    while size != len(members):
        size = len(members)
        members |= {stat.pid for stat in candidates if stat.ppid in members or stat.session in members}
    return tuple(stat for stat in candidates if stat.pid in members)


def own_children(stats: Iterable[Stat]) -> frozenset[int]:
    """Pids of our own children, the adopted ones and zombies too."""
    return frozenset(stat.pid for stat in stats if stat.ppid == os.getpid())


def own_line(stats: Iterable[Stat]) -> frozenset[int]:
    """This process and its ancestors: whatever else is said, they are never ended."""
    parents = {stat.pid: stat.ppid for stat in stats}
    line = {os.getpid()}
    pid = os.getpid()
    while (pid := parents.get(pid, 0)) not in {0, *line}:
        line.add(pid)
    return frozenset(line)


def usage(members: Iterable[Stat], *, memory_limit_bytes: int | None) -> Usage:
    """Measure a tree. Pages that processes share are counted once, where the difference may decide."""
    stats = tuple(members)
    memory = sum(stat.rss_pages for stat in stats) * _PAGE_BYTES
    if memory_limit_bytes is not None and memory > memory_limit_bytes:
        memory = sum(map(_proportional_bytes, stats))
    return Usage(
        processes=frozenset((stat.pid, stat.start_ticks) for stat in stats),
        cpu_s=sum(stat.cpu_ticks for stat in stats) / _TICKS_PER_S,
        memory_bytes=memory,
        io_bytes=sum(_field(stat.pid, "io", name) for stat in stats for name in ("rchar", "wchar")),
    )


def _proportional_bytes(stat: Stat) -> int:
    return _field(stat.pid, "smaps_rollup", "Pss") * 1024 or stat.rss_pages * _PAGE_BYTES


def _field(pid: int, file: str, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # it ended, or it is not ours to look into
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def end(find: Find, *, cookie: str, group: cgroup.Group | None, grace_s: float) -> frozenset[Identity]:
    """End whatever `find` finds, until it finds nothing: TERM, a grace, then KILL. Returns what was ended.

    Something that even KILL does not end within 30 s (it hangs in the kernel, or has another owner) is an error.
    """
    ended = _ask_all(find, cookie, time.monotonic() + grace_s)
    deadline = time.monotonic() + KILL_WITHIN_S
    if group is not None:
        if grace_s <= 0:
            # Nobody has looked yet: whoever the group's death takes counts as well, and is reaped by number.
            ended |= {identity_of(stat, cookie) for stat in find()}
        # Also if nothing was found: what changes its pid too fast to be found can't fork any more after this.
        cgroup.kill(group)
    while members := find():
        ended |= {identity_of(stat, cookie) for stat in members}
        if time.monotonic() > deadline:
            pids = ", ".join(str(stat.pid) for stat in members)
            raise LongwatchError(
                f"processes {pids} cannot be ended; they hang in the kernel or belong to another user"
            )
        _kill(members, cookie)
    return frozenset(ended)


def ask(members: tuple[Stat, ...], cookie: str, asked: frozenset[Identity]) -> frozenset[Identity]:
    """TERM everyone who was not asked before; return who was.

    The launcher of a container would take everything inside with it at once: it ends by itself after the last one.
    """
    launchers = _launchers(members)
    fresh = {identity_of(stat, cookie) for stat in members if stat.pid not in launchers} - asked
    for identity in fresh:
        send(identity, signal.SIGTERM)
        # A stopped process acts on it only after it goes on.
        send(identity, signal.SIGCONT)
    return frozenset(fresh)


def inside(members: Iterable[Stat]) -> tuple[Stat, ...]:
    """Return those in a pid namespace below ours, without its first process: that one hands on what it is asked."""
    here = namespace_depth(os.getpid())
    return tuple(
        stat for stat in members if len(pids := namespace_pids(stat.pid)) > here and pids[-1] != _FIRST
    )


def _launchers(members: tuple[Stat, ...]) -> frozenset[int]:
    """Members outside a pid namespace in which a descendant of theirs lives."""
    depth = {stat.pid: namespace_depth(stat.pid) for stat in members}
    parents = {stat.pid: stat.ppid for stat in members}
    return frozenset(
        above for pid, level in depth.items() for above in _ancestors(pid, parents) if depth[above] < level
    )


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while (pid := parents.get(pid, 0)) in parents:
        yield pid


def _ask_all(find: Find, cookie: str, deadline: float) -> set[Identity]:
    """TERM everyone once, until nobody is left or time is up."""
    asked: frozenset[Identity] = frozenset()
    seen: set[Identity] = set()
    while time.monotonic() < deadline and (members := find()):
        seen |= {identity_of(stat, cookie) for stat in members}
        asked |= ask(members, cookie, asked)
        _wait_for_any(seen, min(_LOOK_AGAIN_S, max(deadline - time.monotonic(), 0)))
    return seen


def _kill(members: tuple[Stat, ...], cookie: str) -> None:
    identities = [identity_of(stat, cookie) for stat in members]
    # What is stopped can't fork: a tree that respawns is frozen before it is cut down.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for identity in identities:
            send(identity, number)
    _wait_for_any(identities, _LOOK_AGAIN_S / 10)


def _wait_for_any(identities: Iterable[Identity], timeout_s: float) -> None:
    """Return when one of them ends, or after the timeout."""
    living = [identity for identity in identities if alive(identity)][:_MOST_WATCHED]
    pidfds = [pidfd for pidfd in map(open_pidfd, living) if pidfd is not None]
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    poll.poll(timeout_s * 1000 if pidfds else 0)
    for pidfd in pidfds:
        os.close(pidfd)


def reap(pids: Iterable[int]) -> None:
    """Take the zombies among these children of ours away."""
    for stat in _zombies(pids):
        os.waitpid(stat.pid, os.WNOHANG)


def sweep(pids: Iterable[int]) -> bool:
    """Reap, and KILL the process groups of the dead; False if there were none.

    A program of which each process only forks the next one is never seen alive. Its dead are, and as long as they are not
    reaped nobody else can have their process group.
    """
    zombies = _zombies(pids)
    for group in {stat.process_group for stat in zombies} - {os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    for stat in zombies:
        os.waitpid(stat.pid, os.WNOHANG)
    return bool(zombies)


def _zombies(pids: Iterable[int]) -> tuple[Stat, ...]:
    stats = (stat for stat in map(read_stat, pids) if stat is not None)
    return tuple(stat for stat in stats if stat.dead and stat.ppid == os.getpid())


def end_tree(identity: Identity | None, cookie: str, *, grace_s: float) -> int:
    """End a child and all that came from it; return how many processes had to be ended.

    Works in a new supervisor as well: it needs only what was recorded. `identity` may be `None` if the process was
    never recorded. The child itself, if it is ours, stays a zombie until its exit code was taken.
    """
    group = cgroup.find(cookie)
    ended = end(lambda: _find(identity, cookie, group), cookie=cookie, group=group, grace_s=grace_s)
    reap(one.pid for one in ended if identity is None or one.pid != identity.pid)
    if group is not None:
        remove_group(group)
    return len(ended)


def _find(identity: Identity | None, cookie: str, group: cgroup.Group | None) -> tuple[Stat, ...]:
    seeds = marked(identity, cookie, group)
    stats = snapshot()
    return family(stats, seeds, strangers=own_line(stats))


def marked(identity: Identity | None, cookie: str, group: cgroup.Group | None) -> frozenset[int]:
    """Pids that are known to be ours by identity, cookie or control group."""
    pids = {found.pid for found in find_by_cookie(cookie)}
    if identity is not None and alive(identity):
        pids.add(identity.pid)
    if group is not None:
        pids |= cgroup.members(group)
    return frozenset(pids)


def remove_group(group: cgroup.Group) -> None:
    """Remove an empty control group; the kernel may need a moment after the last process."""
    for _ in range(20):
        if cgroup.remove(group):
            return
        time.sleep(_LOOK_AGAIN_S / 5)
