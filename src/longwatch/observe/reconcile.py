"""`reconcile`: what a person has to know before they say that the watch may go on (specification K14). Read only.

SQLite may leave its `-shm` and `-wal` files beside the database when it is read: they are its own bookkeeping, and
hold no state that was not there.
"""

from collections.abc import Iterator

import msgspec

from longwatch.kernel import lease
from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.kernel.finding import Section
from longwatch.kernel.identity import alive, find_by_cookie
from longwatch.kernel.lifecycle import DRAINING, HELD, Phase
from longwatch.kernel.store import OpenStep, Snapshot, Store
from longwatch.kernel.verification import Answer
from longwatch.kernel.watch import Watch
from longwatch.observe import kinds, verifying
from longwatch.observe.verifying import Verification


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose intent is durable and whose outcome is not."""

    id: str
    alive: bool
    """True if its own program lives."""
    pid: int | None
    progress: str
    active_s: float
    runs: int
    children: tuple[int, ...]
    """Pids of everything that lives and carries its owner mark."""


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """What `longwatch reconcile --json` prints."""

    phase: str
    reason: str
    supervised: bool
    in_flight: tuple[InFlight, ...]
    changes: tuple[Section, ...]
    receipts_ok: int
    receipts_wrong: tuple[str, ...]
    problems: tuple[str, ...]
    """What could not be looked at, and why."""
    command: str
    """The exact command that goes on; empty: there is nothing to do."""
    advice: str


def look(watch: Watch) -> Reconciliation:
    """Return what is the case.

    Raises:
        LongwatchError: the watch's state cannot be read.
    """
    store = Store.read(watch.database)
    try:
        snapshot, flying = store.snapshot(), tuple(_in_flight(step) for step in store.open_steps())
    finally:
        store.close()
    holder = lease.holder(watch.lease)
    supervised = holder is not None and holder.living
    changes, verification, problems = _application(watch, snapshot)
    life, living = snapshot.lifecycle, any(step.children for step in flying)
    command, advice = going_on(life.phase, supervised=supervised, living=living, reason=life.reason)
    return Reconciliation(
        phase=snapshot.lifecycle.phase.value,
        reason=snapshot.lifecycle.reason,
        supervised=supervised,
        in_flight=flying,
        changes=changes,
        receipts_ok=_count_ok(verification),
        receipts_wrong=tuple(_wrong(verification)),
        problems=problems,
        command=command,
        advice=advice,
    )


REFRESH = "--refresh-baseline"


def going_on(phase: Phase, *, supervised: bool, living: bool, reason: str = "") -> tuple[str, str]:
    """Pure: the command that goes on from here, and a sentence about it."""
    if phase in DRAINING and supervised:
        return "", "The supervisor is ending what runs: wait, and look again with `longwatch status`."
    if phase in HELD:
        begin = "" if supervised else " && longwatch run"
        # Where the branch moved the reason itself says that the new one has to be taken.
        taken = f" {REFRESH}" if REFRESH in reason else ""
        return (
            f"longwatch resume --accept{taken}{begin}",
            "That is your word that you looked at all of this.",
        )
    if supervised:
        return ("longwatch resume" if phase in _AT_REST else ""), "A supervisor is at work."
    return _beginning(phase, living=living)


_AT_REST = frozenset({Phase.PAUSED, Phase.STOPPED, Phase.EXHAUSTED, Phase.COMPLETE})


def _beginning(phase: Phase, *, living: bool) -> tuple[str, str]:
    """Say how to go on where no supervisor is."""
    if living:
        return "longwatch run", "What still lives is waited for, or ended, before anything new begins."
    if phase is Phase.COMPLETE:
        return "", "All work is done and verified; `longwatch run` looks for new work."
    if phase in {Phase.PAUSED, Phase.STOPPED}:
        return "longwatch resume && longwatch run", "It was paused or stopped; nothing is unsettled."
    return "longwatch run", "Nothing needs your word: a run settles what is left and goes on."


def _in_flight(step: OpenStep) -> InFlight:
    shown = step.progress
    return InFlight(
        id=step.id,
        alive=step.identity is not None and alive(step.identity),
        pid=step.identity.pid if step.identity else None,
        progress=f"{shown.phase} {shown.text}".strip() if shown else "",
        active_s=step.active_s,
        runs=step.runs,
        children=tuple(found.pid for found in find_by_cookie(step.cookie)),
    )


def _application(
    watch: Watch, snapshot: Snapshot
) -> tuple[tuple[Section, ...], Verification | None, tuple[str, ...]]:
    """Ask the application; what it cannot say is a problem to be shown, not the end of the look."""
    try:
        application = kinds.load(watch)
    except ConfigError as error:
        return (), None, (str(error),)
    problems: list[str] = []
    changes: tuple[Section, ...] = ()
    verification: Verification | None = None
    try:
        changes = application.since_verified(snapshot.line)
    except LongwatchError as error:
        problems.append(str(error))
    try:
        verification = verifying.verify(watch)
    except LongwatchError as error:
        problems.append(str(error))
    return changes, verification, tuple(problems)


def _count_ok(verification: Verification | None) -> int:
    return sum(one.answer is Answer.OK for one in verification.receipts) if verification else 0


def _wrong(verification: Verification | None) -> Iterator[str]:
    if verification is None:
        return
    if verification.chain.answer is not Answer.OK:
        yield f"event log: {verification.chain.answer}: {verification.chain.detail}"
    for one in verification.receipts:
        if one.answer is not Answer.OK:
            yield f"{one.receipt[:12]}: {one.answer}: {one.detail}"
