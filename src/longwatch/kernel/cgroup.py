"""Control groups: memory and process limits, and the surest way to find and end a whole tree.

Version 2 is used where its memory and pids controllers can be delegated to us, version 1 where its hierarchies are
writable, and otherwise nothing: then limits are sampled. A group is named after the cookie of its child, so that a new
supervisor finds it after a crash.
"""

import functools
import os
import subprocess
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

_PREFIX = "longwatch-"
_CONTROLLERS = ("memory", "pids")
_LINKS_OF_A_LEAF = 2


class CgroupKind(StrEnum):
    """Which kind of control groups limits a child."""

    V2 = "v2"
    V1 = "v1"
    NONE = "none"


class CgroupSupport(msgspec.Struct, frozen=True, kw_only=True):
    """What this host lets us do, and why not more."""

    kind: CgroupKind
    reason: str
    parents: tuple[Path, ...] = ()
    """Folders in which a child's group is made: one for v2, one for each hierarchy of v1."""


class Group(msgspec.Struct, frozen=True):
    """The control group of one child: one folder for v2, several for v1."""

    folders: tuple[Path, ...]


class _Mount(msgspec.Struct, frozen=True):
    root: str
    point: Path
    kind: str
    options: frozenset[str]


def _mounts() -> tuple[_Mount, ...]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return tuple(mount for mount in map(_mount, lines) if mount.kind in {"cgroup", "cgroup2"})


def _mount(line: str) -> _Mount:
    left, _, right = line.partition(" - ")
    fields, tail = left.split(), right.split()
    return _Mount(fields[3], Path(fields[4]), tail[0], frozenset(tail[-1].split(",")))


def _own_folders() -> dict[str, Path]:
    """Our own group in each hierarchy: by controller for v1, under the empty name for v2."""
    mounts = _mounts()
    folders = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            mount = next((m for m in mounts if (name in m.options if name else m.kind == "cgroup2")), None)
            if mount is not None:
                folders[name] = _inside(mount, path)
    return folders


def _inside(mount: _Mount, path: str) -> Path:
    below = path.removeprefix(mount.root.rstrip("/")).lstrip("/")
    folder = mount.point / below
    # Inside a container the path may be told from outside and not exist here.
    return folder if folder.is_dir() else mount.point


@functools.cache
def detect() -> CgroupSupport:
    """Find out, by making a group and moving a process into it, what this process may use. Answered once."""
    own = _own_folders()
    unified = next(filter(_usable_v2, _v2_parents(own)), None)
    if unified is not None:
        return CgroupSupport(
            kind=CgroupKind.V2, reason=f"memory and pids below {unified}", parents=(unified,)
        )
    found = tuple(own[name] for name in (*_CONTROLLERS, "") if name in own and _accepts(own[name]))
    if any("memory" in own and folder == own["memory"] for folder in found):
        return CgroupSupport(
            kind=CgroupKind.V1, reason="hierarchies of version 1", parents=tuple(dict.fromkeys(found))
        )
    return CgroupSupport(
        kind=CgroupKind.NONE,
        reason="no writable memory and pids groups; as a service: Delegate=yes and DelegateSubgroup=supervisor",
    )


def _v2_parents(own: dict[str, Path]) -> tuple[Path, ...]:
    folder = own.get("")
    # A group with processes of its own can't hand controllers down: its parent may.
    return () if folder is None else (folder, folder.parent)


def _usable_v2(parent: Path) -> bool:
    control = parent / "cgroup.subtree_control"
    if not control.is_file():
        return False
    if not set(_CONTROLLERS) <= set(control.read_text(encoding="ascii").split()) and not _write(
        control, "+memory +pids"
    ):
        return False
    return _accepts(parent)


def _accepts(parent: Path) -> bool:
    """True if a process can be moved into a new group here: proven by doing it."""
    probe = parent / f"{_PREFIX}probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:  # read-only, not ours, too deep: each means no
        return False
    moved = subprocess.run(
        ["/bin/sh", "-c", 'echo $$ > "$1"', "sh", str(probe / "cgroup.procs")],
        check=False,
        capture_output=True,
    )
    return _remove(probe) and moved.returncode == 0


def create(cookie: str, *, memory_bytes: int | None, processes: int | None) -> Group | None:
    """Make the group of one child with its limits; `None` where the host has nothing to offer."""
    folders = tuple(parent / f"{_PREFIX}{cookie}" for parent in detect().parents)
    for folder in folders:
        folder.mkdir(exist_ok=True)
        if memory_bytes is not None:
            _limit_memory(folder, memory_bytes)
        # A group of this name may be left from a child that was killed: then nothing could fork in it.
        _write(folder / "pids.max", "max" if processes is None else str(processes))
    return Group(folders) if folders else None


def _limit_memory(folder: Path, size_bytes: int) -> None:
    _write(folder / "memory.max", str(size_bytes))
    _write(folder / "memory.swap.max", "0")
    _write(folder / "memory.limit_in_bytes", str(size_bytes))
    _write(folder / "memory.memsw.limit_in_bytes", str(size_bytes))


def _write(path: Path, text: str) -> bool:
    """Set a knob; False if this kind of group has no such knob, or the kernel refuses."""
    if not path.exists():
        return False
    try:
        path.write_text(text, encoding="ascii")
    except OSError:  # the kernel's word: busy, or not allowed
        return False
    return True


def join(group: Group) -> None:
    """Move the calling process into the group. Meant for a child between fork and exec."""
    for folder in group.folders:
        descriptor = os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, b"0")
        os.close(descriptor)


def find(cookie: str) -> Group | None:
    """Find the groups that a supervisor made for this cookie (and those derived from it), living or dead."""
    names = tuple(folder for mount in _mounts() for folder in _named(mount.point, f"{_PREFIX}{cookie}"))
    return Group(names) if names else None


def _named(top: Path, name: str) -> Iterator[Path]:
    for parent, folders, _ in os.walk(top):
        yield from (
            Path(parent, folder) for folder in folders if folder == name or folder.startswith(f"{name}.")
        )
        folders[:] = [folder for folder in folders if not _is_leaf(f"{parent}/{folder}")]


def _is_leaf(folder: str) -> bool:
    """True if no group lies below this one: then it has two links, and its long list of files need not be read."""
    try:
        return os.stat(folder).st_nlink == _LINKS_OF_A_LEAF  # noqa: PTH116 - a Path per group is slow
    except FileNotFoundError:
        return True


def members(group: Group) -> frozenset[int]:
    """Pids of all processes in the group and below."""
    return frozenset(pid for folder in group.folders for path in _tree(folder) for pid in _procs(path))


def _tree(folder: Path) -> tuple[Path, ...]:
    return tuple(Path(parent) for parent, _, _ in os.walk(folder, topdown=False))


def _procs(folder: Path) -> tuple[int, ...]:
    try:
        return tuple(map(int, (folder / "cgroup.procs").read_text(encoding="ascii").split()))
    except FileNotFoundError:
        return ()


def occupied(group: Group) -> bool:
    """True if something lives in it, even if it changes its pid too fast for a list. Only version 2 can tell."""
    return any(
        _count(path / "cgroup.events", "populated ") > 0 for folder in group.folders for path in _tree(folder)
    )


def kill(group: Group) -> None:
    """End everything inside at once, as far as the kernel can; after it no process inside can fork."""
    for folder in group.folders:
        _write(folder / "pids.max", "0")
    for folder in group.folders:
        _write(folder / "cgroup.kill", "1")


def out_of_memory_kills(group: Group) -> int:
    """How many processes the kernel killed because the group reached its memory limit."""
    return sum(
        _count(folder / name, "oom_kill ")
        for folder in group.folders
        for name in ("memory.events", "memory.oom_control")
    )


def _count(path: Path, name: str) -> int:
    if not path.exists():
        return 0
    lines = path.read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))


def remove(group: Group) -> bool:
    """Remove an empty group; False if something still lives in it."""
    gone = [_remove(path) for folder in group.folders for path in _tree(folder)]
    return all(gone)


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # busy: a process in it is not quite dead
        return False
    return True
