"""A watch as it changes, for server-sent events (HTML standard, section 9.2). The database is polled, so that a dead
supervisor is noticed too, and a client that reads slowly holds nobody up.
"""

from collections.abc import AsyncIterator, Iterator

import anyio
import msgspec
from anyio import to_thread

from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import following
from longwatch.observe.web.answers import Card, card

POLL_S = 0.5
QUIET_S = 15.0
"""After so long without news a comment goes out, so that a connection that is gone is noticed."""
_MOST_AT_ONCE = 200


class Follower:
    """What one client has seen of one watch."""

    def __init__(self, name: str, watch: Watch, after: int) -> None:
        self._name, self._watch, self._after = name, watch, after
        self._last: Card | None = None
        self._trouble = ""

    def news(self) -> list[bytes]:
        """Return the messages since the last call."""
        try:
            news, trouble = list(self._news()), ""
        except LongwatchError as error:
            # When it is over, the card is told anew.
            news, trouble, self._last = [], str(error), None
        if trouble and trouble != self._trouble:
            news = [message("trouble", msgspec.json.encode(trouble))]
        self._trouble = trouble
        return news

    def _news(self) -> Iterator[bytes]:
        seen = card(self._name, self._watch)
        settled = msgspec.structs.replace(seen, status=following.settled(seen.status))
        if settled != self._last:
            yield message("card", msgspec.json.encode(seen))
        self._last = settled
        if seen.status.events <= self._after:
            return
        store = Store.read(self._watch.database)
        try:
            for event in store.events(after=self._after, limit=_MOST_AT_ONCE):
                self._after = event.seq
                yield message("event", msgspec.json.encode(event), ident=event.seq)
        finally:
            store.close()


def message(kind: str, data: bytes, ident: int | None = None) -> bytes:
    """Return one message. JSON has no line ends of its own, so one line of data is enough."""
    head = b"" if ident is None else b"id: %d\n" % ident
    return b"%bevent: %b\ndata: %b\n\n" % (head, kind.encode(), data)


async def stream(name: str, watch: Watch, after: int) -> AsyncIterator[bytes]:
    """Yield messages for ever: `card` when the status changed, `event` for each new event, `trouble` if it cannot be read."""
    follower, quiet_s = Follower(name, watch, after), 0.0
    while True:
        news = await to_thread.run_sync(follower.news)
        for one in news:
            yield one
        quiet_s = 0.0 if news else quiet_s + POLL_S
        if quiet_s >= QUIET_S:
            quiet_s = 0.0
            yield b": still here\n\n"
        await anyio.sleep(POLL_S)
