"""The experiments as a person looks at them: rounds, decisions, audits, as numbers that can be drawn. Pure."""

from collections.abc import Iterable

import msgspec

from longwatch.kernel.journal import Event
from longwatch.learn import history
from longwatch.learn.acceptance import Confirmation
from longwatch.learn.looks import Audited
from longwatch.learn.state import Decided, LearnState


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round on the development tasks, beside the champion and base on the same tasks."""

    experiment: int
    round: int
    passed: int
    asked: int
    total: int
    champion: int
    base: int
    examples: int
    loss_first: float
    loss_last: float


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment, decided or running."""

    number: int
    decision: str
    """How it was decided; of the running one, its stage."""
    running: bool = False
    sentences: tuple[str, ...] = ()
    adapter: str = ""
    receipt: str = ""


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One audit in one language, with Wilson's intervals. It only reports."""

    look: int
    """Counted from 1: each further look makes a good score less surprising."""
    language: str
    void: str
    total: int
    base: int
    base_low: float
    base_high: float
    champion: int
    champion_low: float
    champion_high: float


class LearnBoard(msgspec.Struct, frozen=True, kw_only=True, tag="learn", tag_field="kind"):
    """All of it."""

    champion: str
    experiments: tuple[Experiment, ...]
    rounds: tuple[Round, ...]
    scores: tuple[Score, ...]
    alpha_wealth: float
    next_alpha: float
    evidence_needed: float | None = None
    """Of the running confirmation: the evidence that accepts."""


def board(state: LearnState, log: Iterable[Event] = ()) -> LearnBoard:
    """Return the history, as the log and the state keep it, and the running experiment."""
    log = tuple(log)
    past = history.past(log, state.history)
    confirmation = state.experiment.confirmation
    return LearnBoard(
        champion=state.champion,
        experiments=(*map(_decided, past), _running(state)),
        rounds=(*(round_ for one in past for round_ in _rounds(one)), *_now(state)),
        scores=_scores((*history.looks(log), *_void(state))),
        alpha_wealth=state.schedule.remaining,
        next_alpha=state.schedule.alpha,
        evidence_needed=confirmation.needed if isinstance(confirmation, Confirmation) else None,
    )


def _decided(past: Decided) -> Experiment:
    return Experiment(
        number=past.number,
        decision=past.decision,
        sentences=past.sentences,
        adapter=past.adapter,
        receipt=past.receipt,
    )


def _running(state: LearnState) -> Experiment:
    return Experiment(number=state.experiment.number, decision=state.experiment.stage.value, running=True)


def _now(state: LearnState) -> tuple[Round, ...]:
    """The rounds of the running experiment, as a decided one has them."""
    running = Decided(
        number=state.experiment.number,
        decision="",
        sentences=(),
        rounds=state.rounds,
        dev_before=state.dev_before,
        dev_base=state.dev_base,
        dev_total=state.dev_total,
    )
    return _rounds(running)


def _rounds(past: Decided) -> tuple[Round, ...]:
    return tuple(
        Round(
            experiment=past.number,
            round=one.round,
            passed=one.dev_passed,
            asked=one.dev_asked or one.dev_total,
            total=one.dev_total,
            champion=past.dev_before,
            base=past.dev_base,
            examples=one.examples,
            loss_first=one.loss_first,
            loss_last=one.loss_last,
        )
        for one in past.rounds
    )


def _void(state: LearnState) -> tuple[Audited, ...]:
    """The newest look, if it showed no score: the log keeps no record of it."""
    return () if state.audited is None or state.audited.scored else (state.audited,)


def _scores(looks: tuple[Audited, ...]) -> tuple[Score, ...]:
    return tuple(
        Score(
            look=number,
            language=one.language,
            void=one.void,
            total=one.total,
            base=one.base_passed,
            base_low=one.base.lower if one.total else 0.0,
            base_high=one.base.upper if one.total else 0.0,
            champion=one.champion_passed,
            champion_low=one.champion.lower if one.total else 0.0,
            champion_high=one.champion.upper if one.total else 0.0,
        )
        for number, look in enumerate(looks, 1)
        for one in look.languages
    )
