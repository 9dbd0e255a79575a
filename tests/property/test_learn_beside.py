"""The learn line with a window prepared beside the training, in any order of ends: the same experiments as one by one."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from learning import (
    NOW,
    adopted,
    anchored,
    audited,
    bound,
    confirmed,
    line,
    prepared,
    pruned,
    settings,
    succeeded,
    trained,
)

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.line import Failed, Failure, Lost, Start, Stopped
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.steps import Adopt, Anchor, Audit, Bind, Confirm, Prepare, Prune, Train

EXPERIMENTS = 6
CUTS = (Stopped("saved"), Lost("killed"), Failed(Failure(kind=FailureClass.TRANSIENT, message="busy")))
SETTINGS = settings(max_problems=100, anchor_every=2, audit=AuditSettings(humaneval="file", every=2))


def world(seed, step):  # noqa: PLR0911 - one for each kind of step
    """What a step leaves, which hangs on what it is about and on nothing else."""
    match step:
        case Prepare():
            draw = random.Random(f"{seed} {step.start_row} {step.fresh_only}")
            if step.start_row > 900:
                return prepared(step, too_little="no rows", exhausted=True)
            return prepared(step, too_little="3 fresh problems" if draw.random() < 0.15 else "")
        case Train():
            return trained(step, nominates=random.Random(f"{seed} {step.number}").random() < 0.8)
        case Confirm():
            draw = random.Random(f"{seed} {step.number} {step.window.number} {step.block}")
            kind = draw.choice(("slight", "slight", "slight", "gain", "loss"))
            return confirmed(step, kind, last_block=draw.random() < 0.6)
        case Anchor():
            return anchored(step)
        case Adopt():
            return adopted(step)
        case Prune():
            return pruned(step)
        case Bind():
            return bound(step)
        case Audit():
            return audited(step)


class Life:
    """A line with all that runs, and what each experiment was made from."""

    def __init__(self, seed):
        self.seed, self.line, self.running = seed, line(SETTINGS), {}
        self.state, self.prepared, self.begun = self.line.begin(), [], set()
        self.trained, self.confirmed = {}, []

    @property
    def due(self):
        decision = self.line.decide(self.state, self.running, NOW)
        return decision.steps[0] if isinstance(decision, Start) else None

    @property
    def over(self):
        return len(self.state.history) >= EXPERIMENTS or (not self.running and self.due is None)

    def begin(self, step):
        assert step.id not in self.begun
        assert not any(step.exclusive & other.exclusive for other in self.running.values())
        self.begun.add(step.id)
        self.running[step.id] = step

    def end(self, ident, cut=None):
        step = self.running.pop(ident)
        before = self.state
        outcome = cut or succeeded(world(self.seed, step))
        state, _ = self.line.apply(before, step, outcome, NOW)
        self.state = msgspec.json.decode(msgspec.json.encode(state), type=self.line.state_type)
        if cut is not None:
            assert msgspec.structs.replace(state, serial=before.serial) == before
        elif isinstance(step, Prepare):
            self.prepared.append(step.window)
        elif isinstance(step, Train):
            self.trained[step.number] = step.window
        elif isinstance(step, Confirm):
            self.confirmed.append((step.number, step.window.number, step.block))

    def whole(self):
        """Every window was prepared once and counted once, and no two experiments have the same."""
        assert self.prepared == list(range(1, self.state.windows + 1))
        owned = [window.number for window in self.trained.values()]
        assert len(set(owned)) == len(owned)
        owners = {}
        for number, window, _ in self.confirmed:
            assert owners.setdefault(window, number) == number
        assert self.state.pending is None or self.state.pending.number not in owned

    def made(self):
        """The experiments, without how the steps were called."""
        done = len(self.state.history)
        return (
            self.state.history,
            {number: window for number, window in self.trained.items() if number <= done},
            [one for one in self.confirmed if one[0] <= done],
            self.state.champion,
        )


def serially(seed):
    life = Life(seed)
    while not life.over:
        life.begin(life.due)
        life.end(next(iter(life.running)))
    return life


@pytest.mark.guarantee("L3", "L17", "L26", "L33")
@examples(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_whatever_is_faster_the_experiments_are_the_same_and_no_window_is_lost_or_counted_twice(seed, data):
    life, expected = Life(seed), serially(seed)
    expected.whole()
    draw = data.draw(st.randoms(use_true_random=False))
    cuts = 0
    while not life.over:
        due = life.due
        if due is not None and (not life.running or draw.random() < 0.7):
            life.begin(due)
            continue
        cut = draw.choice(CUTS) if cuts < 20 and draw.random() < 0.2 else None
        cuts += cut is not None
        life.end(draw.choice(sorted(life.running)), cut)
        life.whole()
    assert life.made() == expected.made()
