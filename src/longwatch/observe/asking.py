"""Making a request: durable first, then the bell. What is not safe is refused before it is written (K11, K13)."""

import msgspec

from longwatch.kernel import bell, lease, lifecycle
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.identity import alive
from longwatch.kernel.lifecycle import DRAINING, HELD, Event
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is durable now."""

    request: int
    verb: Verb
    supervised: bool
    """True if a living supervisor will obey within a second."""
    text: str


def ask(watch: Watch, request: Request) -> Asked:
    """Make a request durable and wake the supervisor.

    Raises:
        RefusedError: `resume` while a child of the previous run lives, or where a person has to look first.
    """
    store = Store.open(watch.database)
    try:
        if request.verb is Verb.RESUME:
            _refuse_unsafe(store, request)
        number = store.request(request)
    finally:
        store.close()
    bell.ring(watch.bell)
    holder = lease.holder(watch.lease)
    supervised = holder is not None and holder.living
    return Asked(
        request=number,
        verb=request.verb,
        supervised=supervised,
        text=_text(request.verb, supervised=supervised),
    )


def _refuse_unsafe(store: Store, request: Request) -> None:
    if request.refresh and not request.accept:
        raise RefusedError("--refresh-baseline goes with --accept: your word that you looked at what is new.")
    life = store.snapshot().lifecycle
    living = any(step.identity is not None and alive(step.identity) for step in store.open_steps())
    if life.phase in DRAINING and living:
        raise RefusedError(lifecycle.refusal(life.phase, Event.RESUME, ""))
    if life.phase in HELD and not request.accept:
        raise RefusedError(lifecycle.refusal(life.phase, Event.RESUME, life.reason))


def _text(verb: Verb, *, supervised: bool) -> str:
    if supervised:
        return f"{verb}: asked for; `longwatch status` shows when it is done."
    after = (
        "`longwatch run` or `longwatch start` goes on."
        if verb is Verb.RESUME
        else "It holds for the next run."
    )
    return f"{verb}: noted. No supervisor runs. {after}"
