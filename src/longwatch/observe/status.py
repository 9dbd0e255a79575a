"""The status of a watch as one typed value. Read only: it takes no lock and starts nothing."""

import msgspec

from longwatch.kernel import lease
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.instant import Instant, remaining_s
from longwatch.kernel.journal import Event
from longwatch.kernel.lifecycle import EXIT_CODES, Lifecycle, Phase
from longwatch.kernel.line import Progress, Step
from longwatch.kernel.request import Request
from longwatch.kernel.store import OpenStep, Store
from longwatch.kernel.watch import Watch
from longwatch.observe import kinds


class Supervising(msgspec.Struct, frozen=True, kw_only=True):
    """Who supervises, or did last."""

    pid: int
    host: str
    since: str
    alive: bool


class StepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One step in hand."""

    id: str
    active_s: float
    title: str = ""
    """What it is, for a person."""
    phase: str = ""
    text: str = ""
    done: int | None = None
    total: int | None = None
    idle_s: float = 0.0
    left_s: float | None = None
    """An estimate of the rest of this phase."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `longwatch status --json` prints, and what the status file holds. Times are UTC, durations seconds."""

    watch: str
    kind: str
    phase: str
    desired: str
    reason: str
    next_retry_s: float | None
    failures: int
    active_s: float
    generation: int
    events: int
    pending_requests: tuple[str, ...]
    supervisor: Supervising | None
    steps: tuple[StepStatus, ...]
    summary: tuple[tuple[str, str], ...]
    exit_code: int | None
    next_retry_at: str = ""
    """The moment of `next_retry_s`, which stays true in a file that is read later; empty where nothing is waited for."""
    parked_s: float = 0.0
    """All waits for usage limits so far, with all of the one that is on."""
    details: msgspec.Struct | None = None
    """What only this kind of watch has, as values; `null` where the rows of `summary` are all."""
    config_problem: str = ""
    zone: str = "UTC"
    """In which text for people shows times."""


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What only the application and its settings know; a broken file leaves it empty, and the rest still shows."""

    step_type: object = Step
    kind: str = ""
    summary: tuple[tuple[str, str], ...] = ()
    details: msgspec.Struct | None = None
    zone: str = "UTC"
    problem: str = ""


def read(watch: Watch) -> Status:
    """Return the status of a watch."""
    store = Store.read(watch.database)
    try:
        return _read(watch, store)
    finally:
        store.close()


def _read(watch: Watch, store: Store) -> Status:
    snapshot = store.snapshot()
    life, moment = snapshot.lifecycle, now()
    retry_s = _retry_s(life, moment)
    shown = _application(watch, snapshot.line, store)
    pending = store.requests(after=life.obeyed)
    code = EXIT_CODES.get(life.phase)
    return Status(
        watch=str(watch.root),
        kind=shown.kind,
        phase=life.phase.value,
        desired=life.desired.value,
        reason=life.reason,
        next_retry_s=retry_s,
        next_retry_at="" if retry_s is None else stamp(round(moment.wall_s + retry_s)),
        parked_s=life.parked_s,
        failures=life.failures,
        active_s=store.active_s(),
        generation=snapshot.generation,
        events=snapshot.seq,
        pending_requests=tuple(_wish(request) for _, request in pending),
        supervisor=supervising(watch),
        steps=tuple(_step(step, shown.step_type) for step in store.open_steps()),
        summary=shown.summary,
        details=shown.details,
        exit_code=None if code is None else int(code),
        config_problem=shown.problem,
        zone=shown.zone,
    )


def recent(watch: Watch, count: int) -> tuple[Event, ...]:
    """Return the last events, oldest first."""
    store = Store.read(watch.database)
    try:
        return tuple(store.events(after=max(store.snapshot().seq - count, 0)))
    finally:
        store.close()


def _application(watch: Watch, state: bytes, store: Store) -> _Shown:
    try:
        application = kinds.load(watch)
    except ConfigError as error:
        return _Shown(problem=str(error))
    settings = application.settings
    found = application.shown(state, store)
    return _Shown(
        step_type=application.line.step_type,
        kind=settings.kind,
        summary=found.rows,
        details=found.details,
        zone=settings.observe.zone,
    )


def _retry_s(life: Lifecycle, moment: Instant) -> float | None:
    """What is in work goes on while nothing new may begin; then a wait that is over says nothing."""
    if life.wait is None or life.phase not in {Phase.WAITING, Phase.RUNNING}:
        return None
    left_s = remaining_s(life.wait, moment)
    return left_s if left_s > 0 or life.phase is Phase.WAITING else None


def _wish(request: Request) -> str:
    return f"{request.verb} --accept" if request.accept else request.verb.value


def supervising(watch: Watch) -> Supervising | None:
    """Return who supervises, or did last. Reads the record; the lock is never probed (specification K3)."""
    holder = lease.holder(watch.lease)
    if holder is None:
        return None
    return Supervising(pid=holder.identity.pid, host=holder.host, since=holder.since, alive=holder.living)


def _step(step: OpenStep, step_type: object) -> StepStatus:
    shown = step.progress or Progress(phase="")
    return StepStatus(
        id=step.id,
        title=_title(step, step_type),
        active_s=step.active_s,
        phase=shown.phase,
        text=shown.text,
        done=shown.done,
        total=shown.total,
        idle_s=shown.idle_s,
        left_s=shown.left_s,
    )


def _title(step: OpenStep, step_type: object) -> str:
    try:
        known: Step = msgspec.json.decode(step.step, type=step_type)
    except msgspec.MsgspecError:
        # Another version of this program began it; its id still says what it is.
        return step.id
    return known.title
