"""One supervisor per watch: an exclusive flock on a file that is never unlinked (specification K1 to K3).

The lock is the truth; the holder record beside it is for people. Reading the owner never probes the lock. A lease is
handed over by inheriting its descriptor and closing the giver's copy: unlocking would release it for both.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Identity
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import LeaseHeldError, LongwatchError, StateError
from longwatch.kernel.identity import alive, identify


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns a watch, for a person to read."""

    identity: Identity
    host: str
    since: str
    """UTC, ISO 8601."""

    @property
    def living(self) -> bool:
        """True if that very process still lives on this host: pid, start time and boot id agree."""
        return self.host == os.uname().nodename and alive(self.identity)


@dataclass(frozen=True, slots=True)
class Lease:
    """A held lease. `descriptor` is never inherited by a child, except by the daemon it is handed to."""

    path: Path
    descriptor: int

    def close(self) -> None:
        """Let go of our copy of the descriptor, without unlocking."""
        os.close(self.descriptor)


def holder_path(lease: Path) -> Path:
    """Return where the holder record of a lease stands."""
    return lease.with_name(lease.name + ".holder.json")


def acquire(path: Path) -> Lease:
    """Take the lease at once, or raise `LeaseHeldError` that names the holder; never waits, never steals."""
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LeaseHeldError(_held(path)) from None
    lease = Lease(path, descriptor)
    _prove_same_file(lease)
    sign(lease)
    return lease


def inherit(path: Path, descriptor: int) -> Lease:
    """Take over a lease whose held descriptor was inherited; it must be the lease file's own."""
    lease = Lease(path, descriptor)
    _prove_same_file(lease)
    os.set_inheritable(descriptor, False)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LeaseHeldError(_held(path)) from None
    sign(lease)
    return lease


def sign(lease: Lease) -> None:
    """Write this process as the holder."""
    record = Holder(identity=identify(os.getpid(), ""), host=os.uname().nodename, since=stamp(now().wall_s))
    files.replace_json(holder_path(lease.path), record)


def holder(path: Path) -> Holder | None:
    """Read the holder record, without touching the lock. `None`: never held, or unreadable as a record."""
    try:
        return msgspec.json.decode(holder_path(path).read_bytes(), type=Holder)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _held(path: Path) -> str:
    who = holder(path)
    if who is None:
        return f"Another supervisor holds {path} and has not signed yet. Try again in a moment."
    return (
        f"A supervisor owns this watch already: process {who.identity.pid} on {who.host}, since {who.since}. "
        "`longwatch status` shows what it does, `longwatch stop` ends it."
    )


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise LongwatchError(
            f"The lease {path} cannot be opened: {error.strerror}. Check its folder, its owner and that the disk is writable."
        ) from error


def _prove_same_file(lease: Lease) -> None:
    try:
        ours = os.fstat(lease.descriptor)
    except OSError as error:
        raise StateError(f"Descriptor {lease.descriptor} is not open: no lease was handed over.") from error
    try:
        theirs = lease.path.stat(follow_symlinks=False)
    except FileNotFoundError:
        theirs = None
    if theirs is None or (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino):
        os.close(lease.descriptor)
        raise StateError(
            f"{lease.path} was replaced while the lease was taken; nothing was changed. Try again."
        )
