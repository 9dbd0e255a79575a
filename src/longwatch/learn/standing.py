"""How a learn watch stands: what a person wants to know in the morning, as one value and as rows (L35).

`look` reads it; everything else here is pure.
"""

from math import exp

import msgspec

from longwatch.kernel import lease
from longwatch.kernel.clock import now
from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.identity import alive
from longwatch.kernel.lifecycle import Desired
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn.acceptance import Confirmation, StrictConfirmation
from longwatch.learn.looks import Audited
from longwatch.learn.place import Place
from longwatch.learn.readiness.judging import NotReady, Verdict, judge
from longwatch.learn.readiness.machine import Machine as Probe
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import Continued, LearnState, Stage
from longwatch.learn.steps import ACCELERATOR, BASE, RoundResult
from longwatch.learn.teachers import budget, purse

Rows = tuple[tuple[str, str], ...]
LATEST = 3
"""So many decisions are shown."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the machine is safe to use now: no step of a watch has the accelerator."""

    free: bool = True
    why: str = "nothing runs, and nothing begins by itself"
    readiness: Verdict | None = None
    """Whether a step might begin now, as far as the machine tells; `None` while one runs (L34)."""


class NewestRound(msgspec.Struct, frozen=True, kw_only=True):
    """The last round whose experiment is trained, beside the champion and base on the same tasks."""

    experiment: int
    result: RoundResult
    champion_passed: int
    base_passed: int


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """How far the running confirmation is. Evidence is a gambler's wealth that began at 1."""

    problems: int
    now: float
    most: float
    needed: float
    harm: float


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history."""

    experiment: int
    """0: a session was taken over."""
    decision: str
    generation: str = ""
    """SHA-256 of the source generation that it was bound to."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    machine: Machine
    experiment: int
    stage: Stage
    active_s: float
    """Of this experiment's rounds."""
    limit_s: float
    champion: str
    accepted_in: int | None
    """The experiment that brought the champion; `None` for base, 0 for a session that was taken over."""
    rollbacks: int
    newest: NewestRound | None
    flips: str
    confirmation: str
    """What is said of the running confirmation; empty if none runs."""
    evidence: Evidence | None
    schedule: str
    alpha_wealth: float
    next_alpha: float
    audit: Audited | None
    looks: int
    next_audit: int | None
    """After which experiment; `None`: never."""
    next_anchor: int | None
    decided: tuple[Decision, ...]
    teacher: str = ""
    """What an endpoint that teaches has cost; empty where none was asked."""
    generation: str = ""
    """SHA-256 of the source generation that the experiment is bound to; empty before its training."""
    continuations: tuple[Continued, ...] = ()
    """Of all experiments, oldest first."""
    session: str = ""
    """The session that the watch began with."""


def look(watch: Watch, settings: LearnSettings, state: LearnState, store: Store) -> Standing:
    """Return how the watch stands now. Reads only what is small, and takes no lock."""
    active_s = store.active_s(f"{Stage.TRAIN}.{state.experiment.number}.")
    found = standing(settings, state, active_s=active_s, machine=_machine(watch, settings, state, store))
    return msgspec.structs.replace(found, teacher=_teacher(watch, settings))


def _teacher(watch: Watch, settings: LearnSettings) -> str:
    try:
        ledger = purse.read(Place(watch, settings).teacher)
    except IntegrityError as error:
        return str(error)
    return budget.sentence(settings.teacher, ledger)


class _Held(msgspec.Struct):
    id: str
    exclusive: frozenset[str] = frozenset()


def _machine(watch: Watch, settings: LearnSettings, state: LearnState, store: Store) -> Machine:
    for left in store.open_steps():
        step = msgspec.json.decode(left.step, type=_Held)
        if step.exclusive & ACCELERATOR and left.identity is not None and alive(left.identity):
            return Machine(
                free=False, why=f"{step.id} has the accelerator; `longwatch pause` frees it in seconds"
            )
    readings = Probe(watch, settings).read(state.experiment.number)
    readiness = judge(readings, settings, None, now())
    if readings.holder is not None:
        return Machine(free=False, why=readings.holder, readiness=readiness)
    holder = lease.holder(watch.lease)
    if holder is not None and holder.living and store.snapshot().lifecycle.desired is Desired.RUN:
        why = "until the next step begins; `longwatch pause` keeps it free"
        return Machine(why=why, readiness=readiness)
    return Machine(readiness=readiness)


def standing(
    settings: LearnSettings, state: LearnState, *, active_s: float = 0.0, machine: Machine | None = None
) -> Standing:
    """Pure: put together what the state says and what was seen beside it."""
    experiment, confirmation = state.experiment, state.experiment.confirmation
    acceptance, audit = settings.acceptance, settings.audit
    open_ = experiment.stage in {Stage.PREPARE, Stage.CONFIRM}
    return Standing(
        machine=machine or Machine(),
        experiment=experiment.number,
        stage=experiment.stage,
        active_s=active_s,
        limit_s=3600 * settings.experiment.hours,
        champion=state.champion,
        accepted_in=next((one.number for one in state.history if one.adapter == state.champion), None),
        rollbacks=len(state.rollbacks),
        newest=_newest(state),
        flips=state.flips.sentence if state.flips else "",
        confirmation=_said(confirmation) if confirmation and open_ else "",
        evidence=_evidence(confirmation) if isinstance(confirmation, Confirmation) and open_ else None,
        schedule=state.schedule.sentence,
        alpha_wealth=state.schedule.remaining,
        next_alpha=state.schedule.alpha,
        audit=state.audited,
        looks=state.looks,
        next_audit=_next(experiment.number, audit.every) if audit.wanted else None,
        next_anchor=_next(experiment.number, acceptance.anchor_every) if acceptance.anchor_every else None,
        decided=tuple(
            Decision(experiment=one.number, decision=one.decision, generation=one.generation)
            for one in state.history[-LATEST:]
        ),
        generation=experiment.generation,
        continuations=state.continuations,
        session=state.adopted.session if state.adopted else "",
    )


def _newest(state: LearnState) -> NewestRound | None:
    if state.rounds:
        return NewestRound(
            experiment=state.experiment.number,
            result=state.rounds[-1],
            champion_passed=state.dev_before,
            base_passed=state.dev_base,
        )
    before = next((one for one in reversed(state.history) if one.rounds), None)
    if before is None:
        return None
    return NewestRound(
        experiment=before.number,
        result=before.rounds[-1],
        champion_passed=before.dev_before,
        base_passed=before.dev_base,
    )


def _said(confirmation: Confirmation | StrictConfirmation) -> str:
    if isinstance(confirmation, StrictConfirmation):
        return "; ".join((confirmation.sentence, *confirmation.error_sentences))
    return confirmation.sentence


def _evidence(confirmation: Confirmation) -> Evidence:
    return Evidence(
        problems=confirmation.problems,
        now=exp(confirmation.gain.now),
        most=exp(confirmation.gain.peak),
        needed=confirmation.needed,
        harm=exp(confirmation.harm.peak),
    )


def _next(number: int, every: int) -> int:
    """Return the first experiment from this one on that is due."""
    return -(-number // every) * every


def rows(found: Standing) -> Rows:
    """Pure: the same for a person, most important first."""
    hours = f"{found.active_s / 3600:.2f} of {found.limit_s / 3600:g} hours"
    return (
        ("machine", f"{'safe to use' if found.machine.free else 'in use'}: {found.machine.why}"),
        *_ready(found.machine),
        ("experiment", f"{found.experiment}, {found.stage}{_as(found)}; its rounds were active for {hours}"),
        ("champion", _champion(found)),
        *_dev(found),
        *([("beside scores", found.flips)] if found.flips else ()),
        *([("confirmation", found.confirmation)] if found.confirmation else ()),
        ("confirmed", found.schedule),
        *([("teacher", found.teacher)] if found.teacher else ()),
        *([("decided", _decided(found))] if found.decided else ()),
        *_audited(found),
        ("next", _due(found)),
    )


def _ready(machine: Machine) -> Rows:
    """Say only what keeps a step from beginning, and only where it is not said already."""
    if not isinstance(machine.readiness, NotReady) or not machine.free:
        return ()
    return (("not ready", "; ".join(machine.readiness.reasons)),)


def _as(found: Standing) -> str:
    """Say which sources it is bound to, and what it brought along."""
    if not found.generation:
        return ""
    carried = [one for one in found.continuations if one.experiment == found.experiment]
    moved = f", continued with {carried[-1].carried_s:.1f} s" if carried else ""
    return f", as source generation {found.generation[:12]}{moved}"


def _champion(found: Standing) -> str:
    rolled = f"; rolled back {found.rollbacks} times" if found.rollbacks else ""
    if found.champion == BASE:
        return f"base{rolled}"
    if found.accepted_in == 0:
        return f"{found.champion[:12]}, taken over from {found.session}{rolled}"
    return f"{found.champion[:12]}, accepted in experiment {found.accepted_in}{rolled}"


def _dev(found: Standing) -> Rows:
    newest = found.newest
    if newest is None:
        return ()
    result = newest.result
    made = (
        f"experiment {newest.experiment}, round {result.round}: {result.collected} answers collected, {result.passed} passed, "
        f"{result.examples} examples taught"
    )
    asked = f" of the {result.dev_asked} asked" if 0 < result.dev_asked < result.dev_total else ""
    dev = (
        f"{result.dev_passed}{asked}, champion {newest.champion_passed}, base {newest.base_passed} "
        f"of {result.dev_total}"
    )
    return ("newest round", made), ("dev", dev)


def _decided(found: Standing) -> str:
    return ", ".join(f"{one.experiment} {one.decision}" for one in reversed(found.decided))


def _audited(found: Standing) -> Rows:
    if found.audit is None:
        return ()
    name = f"{found.audit.benchmark}, look {found.looks}"
    return tuple((name, f"{one.sentence} (reporting only)") for one in found.audit.languages)


def _due(found: Standing) -> str:
    audit = "never" if found.next_audit is None else f"after experiment {found.next_audit}"
    anchor = (
        "on acceptance only"
        if found.next_anchor is None
        else f"after experiment {found.next_anchor} and on acceptance"
    )
    return f"audit {audit}; sealed comparison {anchor}"
