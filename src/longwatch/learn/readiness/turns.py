"""Whose turn it is on this machine: one lock for the accelerator, and one for the processor where there is none.

The step's own program holds it, not its supervisor, which it may outlive; it ends with that program, however it dies. The
record in the file is for people, and reading it never probes the lock. Who waits for it asks to be next, in a file beside
it: without that a watch whose steps follow each other at once would never let another one begin.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import LongwatchError, TransientError
from longwatch.kernel.identity import alive, identify

VARIABLE = "LONGWATCH_LOCKS"
"""Names another folder for the locks: one that all containers see that share an accelerator."""
USUAL = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - the file is opened without following links, and holds nothing secret
DEVICES = ("nvidiactl", "kfd", "dxg")
"""What the drivers of accelerators leave in /dev: NVIDIA's, AMD's, and the one inside Windows."""
MAX_BYTES = 4096
AGAIN_S = 30.0
LASTS_S = 150.0
"""So long a wish counts: two looks of the one who waits, and some more."""
T = TypeVar("T", bound=msgspec.Struct)
_THERE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Who has it."""

    identity: Identity
    watch: str
    since: str
    """UTC, ISO 8601."""

    @property
    def sentence(self) -> str:
        """Who has it, for a person."""
        return f"the watch {self.watch} uses this machine since {self.since} (process {self.identity.pid})"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """Who is next: the supervisor of a watch that waits for nothing but its turn."""

    identity: Identity
    watch: str
    boottime_s: float
    """When it was last said."""

    @property
    def sentence(self) -> str:
        """Who is next, for a person."""
        return f"it is the turn of the watch {self.watch}, which has waited (process {self.identity.pid})"


def path(device: str, devices: Path = Path("/dev")) -> Path:
    """Return the lock file for a student on `device`, as `[student]` names it."""
    processor = device == "cpu" or not any((devices / name).exists() for name in DEVICES)
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else next((one for one in USUAL if os.access(one, os.W_OK)), USUAL[-1])
    return folder / f"longwatch-{'processor' if processor else 'accelerator'}.lock"


def taken(lock: Path) -> Turn | None:
    """Return which other process has its turn, or `None`. A file that is none of ours says nothing; `turn` says why."""
    found = _read(lock, Turn)
    return found if found and alive(found.identity) and found.identity.pid != os.getpid() else None


def wished(lock: Path, watch: Path) -> Wish | None:
    """Return which other watch is next, or `None`: a wish that is not repeated is none any more."""
    found = _read(_beside(lock), Wish)
    if found is None or found.watch == str(watch) or not alive(found.identity):
        return None
    return found if now().boottime_s - found.boottime_s < LASTS_S else None


def wish(lock: Path, watch: Path) -> None:
    """Ask to be next, unless another watch asked before. Who cannot write there waits all the same."""
    if wished(lock, watch) is None:
        sign = Wish(identity=identify(os.getpid(), ""), watch=str(watch), boottime_s=now().boottime_s)
        with suppress(LongwatchError):
            _leave(_beside(lock), msgspec.json.encode(sign))


def _fulfilled(lock: Path, watch: Path) -> None:
    found = _read(_beside(lock), Wish)
    if found is not None and found.watch == str(watch):
        _leave(_beside(lock), b"")


def _beside(lock: Path) -> Path:
    return lock.with_suffix(".next")


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(files.read_bounded(path, MAX_BYTES), type=kind)
    except (FileNotFoundError, LongwatchError, msgspec.MsgspecError):
        return None


def _leave(path: Path, data: bytes) -> None:
    descriptor = _opened(path)
    try:
        _write(descriptor, data)
    finally:
        os.close(descriptor)


@contextmanager
def turn(lock: Path, watch: Path) -> Iterator[None]:
    """Have the turn.

    Raises:
        TransientError: somebody else has it; the message names who, as far as it is known.
        LongwatchError: the lock cannot be opened; the message names the mend.
    """
    descriptor = _opened(lock)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sign = Turn(
            identity=identify(os.getpid(), ""), watch=str(watch), since=stamp(now().wall_s)[:19] + "Z"
        )
        _write(descriptor, msgspec.json.encode(sign))
        _fulfilled(lock, watch)
        yield
        _write(descriptor, b"")
    except BlockingIOError:
        held = taken(lock)
        who = held.sentence if held else f"another watch holds {lock}"
        raise TransientError(f"The machine is not ready: {who}.", retry_after_s=AGAIN_S) from None
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    # Written in place: in a folder that all users share nobody can replace the file of another user.
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, data, 0)


def _opened(path: Path) -> int:
    try:
        descriptor = _open(path)
    except OSError as error:
        raise _unfit(path, error.strerror) from error
    facts = os.fstat(descriptor)
    # It is going to be truncated: in a folder that all users share it might be a second name of a file that matters.
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        os.close(descriptor)
        raise _unfit(path, "it is no file of its own")
    return descriptor


def _open(path: Path) -> int:
    try:
        return os.open(path, _THERE)
    except FileNotFoundError:
        descriptor = os.open(path, _THERE | os.O_CREAT, 0o666)
        os.fchmod(descriptor, 0o666)  # the watches of all users take turns, whatever the umask is
        return descriptor


def _unfit(path: Path, why: str | None) -> LongwatchError:
    return LongwatchError(
        f"The lock {path}, by which watches take turns, cannot be used ({why}): look what stands there, or name another "
        f"folder in {VARIABLE}, the same for all watches of this machine"
    )
