"""A learn watch without a model: what its steps would leave as evidence, and a walk from step to step."""

from pathlib import Path

import msgspec
from graded import record

from longwatch.kernel import files
from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Finish, Start, Succeeded
from longwatch.learn import pruning
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
from longwatch.learn.looks import Audited, LanguageAudit
from longwatch.learn.place import Place
from longwatch.learn.settings import Acceptance, Audit, LearnSettings
from longwatch.learn.steps import (
    Adopt,
    Adopted,
    Anchor,
    Anchored,
    Bind,
    Bound,
    Challenger,
    Confirm,
    Confirmed,
    Prepare,
    Prepared,
    Prune,
    Pruned,
    RoundResult,
    Train,
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


def bound(_step) -> Bound:
    return Bound(generation="9" * 64, limit_s=3600.0)


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


def confirmed(step, kind, *, last_block=False, repeats=False) -> Confirmed:
    pairs = () if repeats else pairs_of(step, kind)
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
        flips=FlipRate(0, 10),
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
        flips=FlipRate(1, 50),
    )


def adopted(step) -> Adopted:
    return Adopted(adapter=step.challenger.adapter, receipt=f"{step.number + 1000:064x}")


def audited(_step, **found) -> Audited:
    numbers = {
        "language": "python",
        "total": 164,
        "base_passed": 10,
        "champion_passed": 12,
        "gained": ("HumanEval.1", "HumanEval.2", "HumanEval.3"),
        "lost": ("HumanEval.9",),
        "p": 0.6,
        "flips": FlipRate(0, 10),
    }
    return Audited(benchmark="HumanEval", languages=(LanguageAudit(**{**numbers, **found}),))


def pruned(_step) -> Pruned:
    return Pruned(experiments=1, windows=1, steps=4, freed_bytes=1_000_000)


def succeeded(evidence) -> Succeeded:
    return Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))


class Walk:
    """A line with its state. States and steps go through JSON, as they do in the store."""

    def __init__(self, given: LearnSettings | None = None, *, binds: bool = True) -> None:
        """With `binds`, experiments are bound by the way."""
        self.line, self.binds = line(given), binds
        self.state = self.line.begin()
        self.notes = []

    @property
    def step(self):
        """The one step that is to be done now; `None` if nothing ever will."""
        decision = self.line.decide(self.state, {}, NOW)
        if isinstance(decision, Finish):
            return None
        assert isinstance(decision, Start)
        return self._stored(decision)

    @property
    def ahead(self):
        """The one step that may be done beside the one that is to be done now; `None` if there is none."""
        due = self.step
        decision = self.line.decide(self.state, {due.id: due}, NOW)
        return self._stored(decision) if isinstance(decision, Start) else None

    def _stored(self, decision):
        (step,) = decision.steps
        return msgspec.json.decode(msgspec.json.encode(step), type=self.line.step_type)

    def tell(self, outcome, step=None):
        """Tell the line what became of a step: of the one that is due, if no other is named."""
        state, notes = self.line.apply(self.state, step or self.step, outcome, NOW)
        self.state = msgspec.json.decode(msgspec.json.encode(state), type=self.line.state_type)
        self.notes += notes
        if self.binds and isinstance(self.step, Bind):
            self.do(bound)
        return self

    def do(self, make, **how):
        """Let the step that is due succeed with the evidence that `make` makes of it."""
        return self.tell(succeeded(make(self.step, **how)))

    def do_ahead(self, make, **how):
        """The same with the step beside it."""
        step = self.ahead
        return self.tell(succeeded(make(step, **how)), step)

    def said(self, kind: str) -> list[str]:
        return [note.text for note in self.notes if note.kind == kind]


# -- what steps leave on the disk


def leave(place: Place, step) -> None:
    """What a step leaves on the disk: some megabytes in a real watch, some bytes here."""
    fill(place.watch.step(step.id), "step.json", "log.txt")
    match step:
        case Prepare():
            fill(place.windows / str(step.window), "train.jsonl", "manifest.json")
        case Train():
            fill(place.experiment(step.number), "lock", "round-1/training/adapter/weights")
            fill(place.within(step.number).grades, "train-and-dev.json")
            fill(place.experiment(step.number) / "nominated" / f"{step.number:064x}", "weights")
        case Confirm():
            fill(place.experiment(step.number) / "pairs", f"{step.window.number}.json")
        case Anchor():
            fill(place.grades, f"sealed-{step.candidate}.json")
        case Adopt():
            fill(place.adapters / step.challenger.adapter, "adapter_model.safetensors", "lineage.json")
            fill(place.replay, f"{step.number:064x}.jsonl")


def fill(folder, *names):
    for name in names:
        files.make_folder((folder / name).parent)
        (folder / name).write_bytes(b"x" * 100)


def sizes(place: Place) -> int:
    return sum(path.stat().st_size for path in place.watch.hidden.rglob("*") if path.is_file())


def live(walk: Walk, place: Place, experiments: int, *, accepts=frozenset(), prunes=True) -> list[int]:
    """Live on for so many experiments; return how full the disk was at the end of each."""
    full = []
    last = walk.state.experiment.number + experiments
    while walk.state.experiment.number < last:
        step, before = walk.step, len(walk.state.history)
        leave(place, step)
        match step:
            case Prepare():
                walk.do(prepared)
            case Prune():
                walk.do(lambda one: pruning.prune(place, one.keep) if prunes else pruned(one))
            case Train():
                walk.do(trained, nominates=step.number in accepts)
            case Confirm():
                walk.do(confirmed, kind="gain")
            case Anchor():
                walk.do(anchored)
            case Adopt():
                walk.do(lambda one: msgspec.structs.replace(adopted(one), replay=f"{one.number:064x}"))
        if len(walk.state.history) > before:
            full.append(sizes(place))
    return full
