"""Wakes a sleeping supervisor. Only a hint: requests are durable without it, and a lost ring costs a second at most."""

import contextlib
import errno
import os
import select
from collections.abc import Iterable
from pathlib import Path


def hang(path: Path) -> int:
    """Make the bell if it is missing and return a descriptor that becomes readable when it rings."""
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Read *and* write: a FIFO without a writer would be readable for ever.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def ring(path: Path) -> None:
    """Wake the supervisor, if one listens."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENOENT}:
            return
        raise
    try:
        os.write(descriptor, b"\n")
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def listen(descriptor: int, others: Iterable[int], patience_s: float) -> None:
    """Sleep until the bell rings, one of the others becomes readable, or the patience is over; then forget all rings."""
    poll = select.poll()
    for one in (descriptor, *others):
        poll.register(one, select.POLLIN)
    poll.poll(1000 * patience_s)
    drain(descriptor)


def drain(descriptor: int) -> None:
    """Forget all rings so far."""
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return
