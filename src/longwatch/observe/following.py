"""Following a watch while it changes. Read only; the database is polled, so a dead supervisor is noticed too."""

import time
from collections.abc import Iterator

import msgspec

from longwatch.kernel.journal import Event
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import status
from longwatch.observe.status import Status

POLL_S = 0.5


def statuses(watch: Watch, *, every: bool) -> Iterator[Status]:
    """Yield the status for ever: at each change, or with `every` at each look, for a display that counts seconds."""
    last: Status | None = None
    while True:
        seen = status.read(watch)
        now = settled(seen)
        if every or now != last:
            yield seen
        last = now
        time.sleep(POLL_S)


def settled(seen: Status) -> Status:
    """Pure: leave out what changes by itself as time goes by."""
    return msgspec.structs.replace(seen, next_retry_s=None, next_retry_at="")


def events(watch: Watch, *, after: int, limit: int | None, follow: bool) -> Iterator[Event]:
    """Yield events after a sequence number, at most `limit`; with `follow`, also those that are still to come."""
    store = Store.read(watch.database)
    given = 0
    try:
        while True:
            for event in store.events(after=after, limit=-1 if limit is None else limit - given):
                after, given = event.seq, given + 1
                yield event
            if not follow or (limit is not None and given >= limit):
                return
            time.sleep(POLL_S)
    finally:
        store.close()


def tail(watch: Watch, count: int) -> int:
    """Return the sequence number after which the last `count` events stand."""
    store = Store.read(watch.database)
    try:
        return max(store.snapshot().seq - count, 0)
    finally:
        store.close()
