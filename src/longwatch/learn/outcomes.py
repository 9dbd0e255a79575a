"""What an outcome changes in a learn watch's state. Pure: one function per kind of step."""

from typing import TypeVar

import msgspec

from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Lost, Outcome, Succeeded
from longwatch.learn.acceptance import Confirmation, Decision, Hold
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import Decided, Experiment, LearnState, Stage
from longwatch.learn.steps import (
    Adopt,
    Adopted,
    Anchor,
    Anchored,
    Audit,
    Audited,
    Confirm,
    Confirmed,
    Evidence,
    LearnStep,
    Prepared,
    Trained,
)

Said = tuple[Note, ...]
T = TypeVar("T")


def after(  # noqa: PLR0911 - one return for each kind of evidence
    settings: LearnSettings,
    state: LearnState,
    step: LearnStep,
    outcome: Outcome,
    now: Instant,  # noqa: ARG001 - the same signature for all lines
) -> tuple[LearnState, Said]:
    """Return the state after an outcome. What was stopped, failed or lost begins again where it had saved itself."""
    if isinstance(outcome, Lost):
        return state, (Note("experiment.lost", f"{outcome.what} It goes on from its last checkpoint."),)
    if not isinstance(outcome, Succeeded):
        return state, ()
    found = msgspec.json.decode(outcome.evidence, type=Evidence)
    match found:
        case Prepared():
            return _prepared(state, found)
        case Trained():
            return _trained(settings, state, found)
        case Confirmed():
            return _confirmed(settings, state, _of(step, Confirm), found)
        case Anchored():
            return _anchored(settings, state, _of(step, Anchor), found)
        case Adopted():
            return _adopted(settings, state, _of(step, Adopt), found)
        case Audited():
            _of(step, Audit)
            return _audited(state, found)


def _prepared(state: LearnState, found: Prepared) -> tuple[LearnState, Said]:
    window = found.window
    moved = msgspec.structs.replace(state, next_row=window.next_row, windows=window.number)
    if found.exhausted:
        why = found.too_little or "no more rows"
        return msgspec.structs.replace(moved, exhausted=why), (Note("curriculum.exhausted", why),)
    if found.too_little:
        note = Note("window.consumed", f"Window {window.number} is consumed: {found.too_little}")
        return moved, (note,)
    if moved.sealed is None:
        moved = msgspec.structs.replace(moved, sealed=window)
    text = (
        f"Window {window.number}: {window.train} train, {window.dev} dev, {window.confirm} fresh and {window.sealed} sealed "
        f"problems, bound before training; {window.left_out} left out."
    )
    return _stage(moved, Stage.TRAIN, window=window), (
        Note("window.prepared", text, {"manifest": window.manifest}),
    )


def _trained(settings: LearnSettings, state: LearnState, found: Trained) -> tuple[LearnState, Said]:
    moved = _counted(state, found)
    if found.challenger is None:
        return _next(settings, moved, "no challenger", (found.reason,))
    challenger = found.challenger
    confirmation = Confirmation(alpha=state.schedule.alpha, max_problems=settings.acceptance.max_problems)
    begun = msgspec.structs.replace(moved, schedule=state.schedule.begin())
    text = (
        f"Experiment {state.experiment.number} nominates round {challenger.round}: dev {challenger.dev_before} -> "
        f"{challenger.dev_after} of {challenger.dev_total}. That accepts nothing; fresh problems decide (alpha "
        f"{confirmation.alpha:.3g})."
    )
    numbers: dict[str, str | float] = {
        "adapter": challenger.adapter,
        "dev_before": challenger.dev_before,
        "dev_after": challenger.dev_after,
        "dev_total": challenger.dev_total,
    }
    note = Note("challenger.nominated", text, numbers)
    return _stage(begun, Stage.CONFIRM, challenger=challenger, confirmation=confirmation), (note,)


def _counted(state: LearnState, found: Trained) -> LearnState:
    phases = sorted({*state.active_by_phase, *found.active_by_phase})
    return msgspec.structs.replace(
        state,
        rounds=found.rounds,
        dev_before=found.dev_before,
        dev_base=found.dev_base,
        dev_total=found.dev_total,
        active_s=state.active_s + found.active_s,
        active_by_phase={
            phase: state.active_by_phase.get(phase, 0.0) + found.active_by_phase.get(phase, 0.0)
            for phase in phases
        },
    )


def _confirmed(
    settings: LearnSettings, state: LearnState, step: Confirm, found: Confirmed
) -> tuple[LearnState, Said]:
    if found.void:
        return state, (
            Note(
                "block.void", f"Block {step.block} is void: too much of it was our own trouble. Graded again."
            ),
        )
    ruling = found.ruling
    text = (
        f"Block {step.block}: champion {found.champion_passed}, challenger {found.challenger_passed} of {found.problems}. "
        f"{ruling.confirmation.sentence}"
    )
    numbers = {
        "champion": found.champion_passed,
        "challenger": found.challenger_passed,
        "problems": found.problems,
    }
    note = Note("block.confirmed", text, numbers)
    confirmed = msgspec.structs.replace(
        state.experiment, confirmation=ruling.confirmation, ruling=ruling, block=step.block + 1
    )
    moved = msgspec.structs.replace(state, experiment=confirmed)
    if ruling.decision is Decision.ACCEPT:
        return _stage(moved, Stage.ANCHOR), (note,)
    if ruling.decision is Decision.UNDECIDED:
        # The evidence is valid at any stopping time, so it may go on with the fresh problems of the next window.
        return (_stage(moved, Stage.PREPARE, block=0) if found.last_block else moved), (note,)
    ended, said = _next(settings, moved, ruling.decision.value, ruling.sentences)
    return ended, (note, *said)


def _anchored(
    settings: LearnSettings, state: LearnState, step: Anchor, found: Anchored
) -> tuple[LearnState, Said]:
    sentences = tuple(comparison.sentence for comparison in found.comparisons)
    note = Note("anchor.compared", "; ".join(sentences))
    if any(comparison.hold is Hold.ROLL_BACK for comparison in found.comparisons):
        ended, said = _next(settings, state, "refused by the anchor", sentences)
        return ended, (note, *said)
    moved = state
    if found.passed > state.best_passed:
        moved = msgspec.structs.replace(state, best=step.candidate, best_passed=found.passed)
    return _stage(moved, Stage.ADOPT), (note,)


def _adopted(
    settings: LearnSettings, state: LearnState, step: Adopt, found: Adopted
) -> tuple[LearnState, Said]:
    moved = msgspec.structs.replace(
        state, champion=found.adapter, replay=found.replay, schedule=state.schedule.accepted()
    )
    ended, said = _next(
        settings, moved, "accepted", step.ruling.sentences, adapter=found.adapter, receipt=found.receipt
    )
    note = Note(
        "champion.accepted",
        f"Experiment {step.number}: {step.ruling.sentences[0]}",
        {"receipt": found.receipt},
    )
    return ended, (note, *said)


def _audited(state: LearnState, found: Audited) -> tuple[LearnState, Said]:
    text = (
        f"{found.benchmark}: champion {found.champion_passed}, base {found.base_passed} of {found.total} "
        f"({found.gained} gained, {found.lost} lost, p = {found.p:.2g}). Reporting only."
    )
    kept = msgspec.structs.replace(state, audits=(*state.audits, found))
    return _begin(kept), (Note("audit.reported", text),)


def _next(
    settings: LearnSettings,
    state: LearnState,
    decision: str,
    sentences: tuple[str, ...],
    *,
    adapter: str = "",
    receipt: str = "",
) -> tuple[LearnState, Said]:
    """Close the experiment; an audit comes first where one is due."""
    number = state.experiment.number
    decided = Decided(
        number=number,
        decision=decision,
        sentences=sentences,
        rounds=state.rounds,
        dev_before=state.dev_before,
        dev_base=state.dev_base,
        dev_total=state.dev_total,
        adapter=adapter,
        receipt=receipt,
    )
    closed = msgspec.structs.replace(state, history=(*state.history, decided))
    note = Note("experiment.decided", f"Experiment {number}: {decision}. {' '.join(sentences)}")
    if settings.audit.humaneval and number % settings.audit.every == 0:
        return _stage(closed, Stage.AUDIT), (note,)
    return _begin(closed), (note,)


def _begin(state: LearnState) -> LearnState:
    """Return the state with the next experiment before it; one move attaches it and counts it (L26)."""
    experiment = Experiment(number=state.experiment.number + 1)
    return msgspec.structs.replace(
        state, experiment=experiment, rounds=(), dev_before=0, dev_base=0, dev_total=0
    )


def _stage(state: LearnState, stage: Stage, **changed: object) -> LearnState:
    experiment = msgspec.structs.replace(state.experiment, stage=stage, **changed)
    return msgspec.structs.replace(state, experiment=experiment)


def _of(step: object, kind: type[T]) -> T:
    if not isinstance(step, kind):
        raise TypeError(f"a {type(step).__name__} left evidence of a {kind.__name__}")
    return step
