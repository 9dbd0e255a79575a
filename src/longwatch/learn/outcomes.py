"""What an outcome changes in a learn watch's state. Pure: one function per kind of step."""

from collections.abc import Sequence
from math import exp
from operator import itemgetter
from typing import TypeVar

import msgspec

from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Lost, Outcome, Succeeded
from longwatch.learn import history
from longwatch.learn.acceptance import (
    RESEARCH_LOSSES,
    Confirmation,
    FlipRate,
    Hold,
    Ruling,
    StrictConfirmation,
    StrictRuling,
)
from longwatch.learn.looks import Audited
from longwatch.learn.settings import LearnSettings, Rule
from longwatch.learn.state import Decided, Experiment, LearnState, RolledBack, Stage
from longwatch.learn.steps import (
    BASE,
    Adopt,
    Adopted,
    Anchor,
    Anchored,
    Audit,
    Bound,
    Confirm,
    Confirmed,
    Evidence,
    LearnStep,
    Prepare,
    Prepared,
    Pruned,
    Trained,
    Window,
)

Said = tuple[Note, ...]
NO_MORE = "there are no more fresh problems"
T = TypeVar("T")


def after(  # noqa: C901, PLR0911 - one return for each kind of evidence
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
            return _prepared(settings, state, _of(step, Prepare), found)
        case Pruned():
            return _pruned(state, found)
        case Bound():
            return _bound(state, found)
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
            return _audited(settings, state, found)


def _prepared(
    settings: LearnSettings, state: LearnState, step: Prepare, found: Prepared
) -> tuple[LearnState, Said]:
    window, ahead = found.window, step.number > state.experiment.number
    moved = msgspec.structs.replace(state, next_row=window.next_row, windows=window.number)
    if found.exhausted and ahead:
        # The rows are left to a challenger that may still need fresh problems.
        ended = msgspec.structs.replace(moved, next_row=state.next_row, exhausted=_why(found))
        return ended, (Note("curriculum.exhausted", ended.exhausted),)
    if found.exhausted:
        return _exhausted(settings, moved, _why(found))
    if found.too_little:
        note = Note("window.consumed", f"Window {window.number} is consumed: {found.too_little}")
        return moved, (note,)
    if moved.sealed is None:
        moved = msgspec.structs.replace(moved, sealed=window)
    text = (
        f"Window {window.number}: {window.train} train, {window.dev} dev, {window.confirm} fresh and {window.sealed} sealed "
        f"problems, bound before training; {window.left_out} left out."
    )
    supplied = msgspec.structs.replace(moved, pending=window) if ahead else _supplied(moved, window)
    return supplied, (Note("window.prepared", text, {"manifest": window.manifest}),)


def _why(found: Prepared) -> str:
    return found.too_little or "no more rows"


def _supplied(state: LearnState, window: Window) -> LearnState:
    """An undecided challenger goes on with its fresh problems; otherwise the window is the experiment's own."""
    if state.experiment.confirmation is not None:
        return _stage(state, Stage.CONFIRM, fresh=(*state.experiment.fresh, window))
    return _stage(state, Stage.PRUNE if state.history else Stage.BIND, window=window)


def _exhausted(settings: LearnSettings, state: LearnState, why: str) -> tuple[LearnState, Said]:
    """No more experiments. A challenger that waited for fresh problems will get none: it is decided."""
    ended, note = msgspec.structs.replace(state, exhausted=why), Note("curriculum.exhausted", why)
    ruling = state.experiment.ruling
    if ruling is None:
        return ended, (note,)
    closed, said = _next(settings, ended, ruling.decision.value, (NO_MORE, *ruling.sentences))
    return closed, (note, *said)


def _pruned(state: LearnState, found: Pruned) -> tuple[LearnState, Said]:
    moved = _stage(state, Stage.BIND)
    if not found.freed_bytes:
        return moved, ()
    return moved, (Note("experiments.pruned", found.sentence, {"freed_bytes": found.freed_bytes}),)


def _bound(state: LearnState, found: Bound) -> tuple[LearnState, Said]:
    moved = _stage(state, Stage.TRAIN, generation=found.generation, limit_s=found.limit_s)
    number, before = state.experiment.number, state.history[-1].generation if state.history else ""
    if found.generation == before:
        return moved, ()
    text = f"Experiment {number} is bound to source generation {found.generation[:12]}{': ' if found.changed else ''}"
    data: dict[str, str | int] = {"generation": found.generation, "before": before, "changes": found.changes}
    return moved, (Note("generation.bound", f"{text}{found.changed}.", data),)


def _trained(settings: LearnSettings, state: LearnState, found: Trained) -> tuple[LearnState, Said]:
    moved = _counted(state, found)
    if found.challenger is None:
        return _next(settings, moved, "no challenger", (found.reason,))
    challenger = found.challenger
    begun, decides = _begun(settings, moved)
    text = (
        f"Experiment {state.experiment.number} nominates round {challenger.round}: dev {challenger.dev_before} -> "
        f"{challenger.dev_after} of {challenger.dev_total}{_beside(found.flips)}. That accepts nothing; {decides}."
    )
    numbers: dict[str, str | float] = {
        "adapter": challenger.adapter,
        "dev_before": challenger.dev_before,
        "dev_after": challenger.dev_after,
        "dev_total": challenger.dev_total,
    }
    note = Note("challenger.nominated", text, numbers)
    return _stage(begun, Stage.CONFIRM, challenger=challenger), (note,)


def _begun(settings: LearnSettings, state: LearnState) -> tuple[LearnState, str]:
    """Return the state with a confirmation that is fixed before its first problem, and what decides it."""
    strict = _strict(settings, state)
    if strict is not None:
        text = "; ".join((f"what decides is {strict.sentence}", *strict.error_sentences))
        return _stage(state, Stage.CONFIRM, confirmation=strict), text
    confirmation = Confirmation(alpha=state.schedule.alpha, max_problems=settings.acceptance.max_problems)
    counted = msgspec.structs.replace(state, schedule=state.schedule.begin())
    text = f"fresh problems decide (alpha {confirmation.alpha:.3g})"
    return _stage(counted, Stage.CONFIRM, confirmation=confirmation), text


def _strict(settings: LearnSettings, state: LearnState) -> StrictConfirmation | None:
    """Return what the strict rule rests on in this experiment, or `None` where evidence decides."""
    begun = state.experiment.confirmation
    if begun is not None:
        # What began under one rule ends under it, whatever the settings say now.
        return begun if isinstance(begun, StrictConfirmation) else None
    if settings.acceptance.rule is not Rule.STRICT:
        return None
    return StrictConfirmation(
        dev_tasks=state.dev_total,
        tries=len(state.rounds) + state.rounds_decided,
        losses=RESEARCH_LOSSES if settings.acceptance.research else 0,
    )


def _counted(state: LearnState, found: Trained) -> LearnState:
    phases = sorted({*state.active_by_phase, *found.active_by_phase})
    return msgspec.structs.replace(
        state,
        rounds=found.rounds,
        dev_before=found.dev_before,
        dev_base=found.dev_base,
        dev_total=found.dev_total,
        flips=found.flips,
        active_s=state.active_s + found.active_s,
        active_by_phase={
            phase: state.active_by_phase.get(phase, 0.0) + found.active_by_phase.get(phase, 0.0)
            for phase in phases
        },
    )


def _path(ruling: Ruling | StrictRuling) -> dict[str, float]:
    """Return where the evidence stands, for whoever draws its path; the strict rule has none."""
    now = ruling.confirmation
    if not isinstance(now, Confirmation):
        return {}
    return {"judged": now.problems, "evidence": exp(now.gain.peak), "needed": now.needed}


def _confirmed(
    settings: LearnSettings, state: LearnState, step: Confirm, found: Confirmed
) -> tuple[LearnState, Said]:
    ruling = found.ruling
    text = (
        f"Block {step.block}: champion {found.champion_passed}, challenger {found.challenger_passed} of {found.problems}. "
        f"{_how_far(ruling)}{_beside(found.flips)}"
    )
    numbers = {
        "champion": found.champion_passed,
        "challenger": found.challenger_passed,
        "problems": found.problems,
        "flipped": found.flips.flipped,
        "repeated": found.flips.repeated,
        "experiment": state.experiment.number,
        **_path(ruling),
    }
    note = Note("block.confirmed", text, numbers)
    confirmed = msgspec.structs.replace(
        state.experiment, confirmation=ruling.confirmation, ruling=ruling, block=step.block + 1
    )
    moved = msgspec.structs.replace(state, experiment=confirmed)
    if ruling.accepts:
        return _stage(moved, Stage.ANCHOR), (note,)
    if ruling.undecided and found.problems:
        # The evidence is valid at any stopping time, so it may go on with the fresh problems of the next window.
        return (_stage(moved, Stage.PREPARE, block=0) if found.last_block else moved), (note,)
    sentences = (NO_MORE, *ruling.sentences) if ruling.undecided else ruling.sentences
    ended, said = _next(settings, moved, ruling.decision.value, sentences)
    return ended, (note, *said)


def _beside(flips: FlipRate | None) -> str:
    """What stands beside a score: how much of a difference may be none (L15)."""
    return f" ({flips.sentence})" if flips else ""


def _how_far(ruling: Ruling | StrictRuling) -> str:
    return "; ".join(ruling.sentences) if isinstance(ruling, StrictRuling) else ruling.confirmation.sentence


def _anchored(
    settings: LearnSettings, state: LearnState, step: Anchor, found: Anchored
) -> tuple[LearnState, Said]:
    sentences = tuple(comparison.sentence for comparison in found.comparisons)
    note = Note("anchor.compared", f"{'; '.join(sentences)}{_beside(found.flips)}")
    rivals = tuple(zip(found.rivals_passed, step.rivals, strict=True))
    better = [
        rival
        for rival, comparison in zip(rivals, found.comparisons, strict=True)
        if comparison.hold is Hold.ROLL_BACK
    ]
    if state.experiment.stage is Stage.CHECK:
        moved, said = _rolled_back(state, _most(better), sentences) if better else (state, ())
        return _onward(settings, moved, Stage.CHECK), (note, *said)
    if better:
        ended, said = _next(settings, state, "refused by the anchor", sentences)
        return ended, (note, *said)
    best = _most((*rivals, (found.passed, step.candidate)))
    return _stage(msgspec.structs.replace(state, best=best), Stage.ADOPT), (note,)


def _most(ranked: Sequence[tuple[int, str]]) -> str:
    """Return who passed most; of equals the first, who was there before."""
    return max(ranked, key=itemgetter(0))[1]


def _rolled_back(state: LearnState, returned: str, sentences: tuple[str, ...]) -> tuple[LearnState, Said]:
    number, champion = state.experiment.number, state.champion
    one = RolledBack(experiment=number, champion=champion, returned=returned, sentences=sentences)
    moved = msgspec.structs.replace(
        state,
        champion=returned,
        best=returned if state.best == champion else state.best,
        rollbacks=(*state.rollbacks, one),
    )
    text = f"{champion[:12]} is worse than {returned[:12]} on the sealed set, so that is the champion again."
    return moved, (Note("champion.rolled_back", text, {"from": champion, "to": returned}),)


def _adopted(
    settings: LearnSettings, state: LearnState, step: Adopt, found: Adopted
) -> tuple[LearnState, Said]:
    moved = msgspec.structs.replace(state, champion=found.adapter, replay=found.replay)
    if _strict(settings, state) is None:
        moved = msgspec.structs.replace(moved, schedule=state.schedule.accepted())
    ended, said = _next(
        settings, moved, "accepted", step.ruling.sentences, adapter=found.adapter, receipt=found.receipt
    )
    note = Note(
        "champion.accepted",
        f"Experiment {step.number}: {_how_far(step.ruling)}",
        {"receipt": found.receipt},
    )
    return ended, (note, *said)


def _audited(settings: LearnSettings, state: LearnState, found: Audited) -> tuple[LearnState, Said]:
    kept = msgspec.structs.replace(state, audited=found, looks=state.looks + bool(found.scored))
    return _onward(settings, kept, Stage.AUDIT), history.notes(found, kept.looks)


def _next(
    settings: LearnSettings,
    state: LearnState,
    decision: str,
    sentences: tuple[str, ...],
    *,
    adapter: str = "",
    receipt: str = "",
) -> tuple[LearnState, Said]:
    """Close the experiment with its one record; what a strict rule decided is never said without its error rates."""
    number, strict = state.experiment.number, _strict(settings, state)
    if strict is not None:
        sentences = tuple(dict.fromkeys((*sentences, *strict.error_sentences)))
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
        generation=state.experiment.generation,
    )
    closed = msgspec.structs.replace(
        state,
        history=history.kept((*state.history, decided)),
        rounds_decided=state.rounds_decided + len(state.rounds),
    )
    return _onward(settings, closed), (history.note(decided),)


def _onward(settings: LearnSettings, state: LearnState, done: Stage | None = None) -> LearnState:
    """Go on after a decision with what is due now and not `done`, and then with the next experiment."""
    number, newest = state.experiment.number, state.history[-1]
    every = settings.acceptance.anchor_every
    # An adapter that was accepted just now was compared just now.
    check = every and number % every == 0 and state.champion not in {BASE, newest.adapter}
    if check and done is None:
        return _stage(state, Stage.CHECK)
    if settings.audit.wanted and number % settings.audit.every == 0 and done is not Stage.AUDIT:
        return _stage(state, Stage.AUDIT)
    return _begin(state)


def _begin(state: LearnState) -> LearnState:
    """Return the state with the next experiment before it; one move attaches it, counts it and consumes its window (L26)."""
    experiment = Experiment(number=state.experiment.number + 1)
    begun = msgspec.structs.replace(
        state, experiment=experiment, pending=None, rounds=(), dev_before=0, dev_base=0, dev_total=0
    )
    return begun if state.pending is None else _supplied(begun, state.pending)


def _stage(state: LearnState, stage: Stage, **changed: object) -> LearnState:
    experiment = msgspec.structs.replace(state.experiment, stage=stage, **changed)
    return msgspec.structs.replace(state, experiment=experiment)


def _of(step: object, kind: type[T]) -> T:
    if not isinstance(step, kind):
        raise TypeError(f"a {type(step).__name__} left evidence of a {kind.__name__}")
    return step
