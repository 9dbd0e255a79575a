"""Owning a watch for the time of a run: the lease, the marks of other tools, and our own mark."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longwatch.kernel import lease, markers
from longwatch.kernel.identity import identify
from longwatch.kernel.settings import Host
from longwatch.kernel.watch import Watch


@contextmanager
def owned(watch: Watch, host: Host, *, inherited: int | None = None) -> Iterator[None]:
    """Hold the watch; with `inherited`, through the lease descriptor that a parent handed over (K1, K2, K4).

    Raises:
        LeaseHeldError: another supervisor owns it.
        NotReadyError: another tool's marker names a live process.
    """
    held = lease.acquire(watch.lease) if inherited is None else lease.inherit(watch.lease, inherited)
    try:
        markers.fence(tuple(watch.root / name for name in host.markers))
        with _marked(watch, host.publish_marker):
            yield
    finally:
        held.close()


@contextmanager
def _marked(watch: Watch, name: str) -> Iterator[None]:
    if not name:
        yield
        return
    published = markers.publish(watch.root / Path(name), watch.root, identify(os.getpid(), ""))
    try:
        yield
    finally:
        markers.withdraw(published)
