"""A learn watch without a model: what its steps would leave as evidence, and a walk from step to step."""

from pathlib import Path

import msgspec
from graded import record

from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Finish, Start, Succeeded
from longwatch.learn.acceptance import (
    Anchor as Comparison,
)
from longwatch.learn.acceptance import (
    Confirmation,
    FlipRate,
    anchor,
    confirm,
    guards,
    lost,
    outcomes,
    rule,
    veto,
)
from longwatch.learn.line import LearnLine
from longwatch.learn.settings import Acceptance, Audit, LearnSettings
from longwatch.learn.steps import (
    Adopted,
    Anchored,
    Audited,
    Challenger,
    Confirmed,
    Prepared,
    Pruned,
    RoundResult,
    Trained,
    Window,
)

NOW = Instant(wall_s=0.0, boottime_s=0.0, monotonic_s=0.0, boot_id="test")
BLOCKS = {"gain": (20, 0), "slight": (6, 5), "even": (5, 5), "loss": (0, 20), "same": (0, 0)}
"""Gained and lost problems of a block of twenty."""


def settings(*, audit: Audit | None = None, **acceptance) -> LearnSettings:
    return LearnSettings(kind="learn", acceptance=Acceptance(**acceptance), audit=audit or Audit())


def line(given: LearnSettings | None = None) -> LearnLine:
    return LearnLine(given or settings(), Path("/nowhere"))


def prepared(step, *, too_little="", exhausted=False) -> Prepared:
    window = Window(
        number=step.window,
        manifest=f"{step.window:064x}",
        nonce=f"nonce-{step.window}",
        next_row=step.start_row + 100,
        train=0 if step.fresh_only else 48,
        dev=0 if step.fresh_only else 40,
        confirm=40,
        sealed=100 if step.sealed else 0,
    )
    return Prepared(window=window, too_little=too_little, exhausted=exhausted)


def adapter(step) -> str:
    return f"{step.number:064x}"


def trained(step, *, nominates=True, rounds=2) -> Trained:
    results = tuple(
        RoundResult(
            round=number,
            collected=80,
            passed=20,
            examples=20 * number,
            steps=30,
            loss_first=2.0,
            loss_last=0.5,
            dev_passed=10 + number,
            dev_total=40,
            adapter=adapter(step),
        )
        for number in range(1, rounds + 1)
    )
    challenger = Challenger(adapter=adapter(step), round=rounds, dev_before=10, dev_after=12, dev_total=40)
    return Trained(
        rounds=results,
        dev_before=10,
        dev_base=8,
        dev_total=40,
        challenger=challenger if nominates else None,
        reason="" if nominates else "no round was better on dev than the champion",
    )


def pairs_of(step, kind):
    gained, lost_ = BLOCKS[kind]
    made = record(gained, lost_, 20 - gained - lost_)
    place = f"w{step.window.number}-b{step.block}"
    return tuple(
        msgspec.structs.replace(pair, problem=f"{place}-{pair.problem}", task=f"{place}-{pair.task}")
        for pair in made
    )


def confirmed(step, kind, *, last_block=False, void=False) -> Confirmed:
    pairs = () if void else pairs_of(step, kind)
    if isinstance(step.confirmation, Confirmation):
        state = confirm(step.confirmation, outcomes(pairs))
        found = guards(pairs, margin_pooled=0.03, margin_slice=0.05)
        ruling = rule(state, found, lost(pairs, FlipRate(0, 100)))
    else:
        ruling = veto(pairs, step.confirmation)
    return Confirmed(
        ruling=ruling,
        champion_passed=10,
        challenger_passed=12,
        problems=len(pairs),
        void=void,
        last_block=last_block,
    )


def compared(rival: str, *, worse: bool) -> Comparison:
    return anchor(rival[:12], record(0, 15, 5) if worse else record(2, 1, 17), margin=0.03)


def anchored(step, *, worse_than=(), passed=50, rivals_passed=None) -> Anchored:
    return Anchored(
        comparisons=tuple(compared(rival, worse=rival in worse_than) for rival in step.rivals),
        passed=passed,
        rivals_passed=tuple(rivals_passed or (40 for _ in step.rivals)),
        total=100,
    )


def adopted(step) -> Adopted:
    return Adopted(adapter=step.challenger.adapter, receipt=f"{step.number + 1000:064x}")


def audited(_step) -> Audited:
    return Audited(
        benchmark="HumanEval (Python)",
        base_passed=10,
        champion_passed=12,
        total=164,
        gained=3,
        lost=1,
        p=0.6,
    )


def pruned(_step) -> Pruned:
    return Pruned(experiments=1, windows=1, steps=4, freed_bytes=1_000_000)


def succeeded(evidence) -> Succeeded:
    return Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))


class Walk:
    """A line with its state. States and steps go through JSON, as they do in the store."""

    def __init__(self, given: LearnSettings | None = None) -> None:
        self.line = line(given)
        self.state = self.line.begin()
        self.notes = []

    @property
    def step(self):
        """The one step that is to be done now; `None` if nothing ever will."""
        decision = self.line.decide(self.state, {}, NOW)
        if isinstance(decision, Finish):
            return None
        assert isinstance(decision, Start)
        (step,) = decision.steps
        return msgspec.json.decode(msgspec.json.encode(step), type=self.line.step_type)

    def tell(self, outcome):
        state, notes = self.line.apply(self.state, self.step, outcome, NOW)
        self.state = msgspec.json.decode(msgspec.json.encode(state), type=self.line.state_type)
        self.notes += notes
        return self

    def do(self, make, **how):
        """Let the step that is due succeed with the evidence that `make` makes of it."""
        return self.tell(succeeded(make(self.step, **how)))

    def said(self, kind: str) -> list[str]:
        return [note.text for note in self.notes if note.kind == kind]
