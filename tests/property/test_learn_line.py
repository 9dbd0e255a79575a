"""The learn line under any order of outcomes: nothing is counted twice, nothing is lost, nobody becomes champion by the way."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from learning import (
    BLOCKS,
    NOW,
    Walk,
    adopted,
    anchored,
    audited,
    confirmed,
    line,
    prepared,
    pruned,
    settings,
    succeeded,
    trained,
)

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.line import Failed, Failure, Finish, Lost, Stopped, Succeeded
from longwatch.learn.acceptance import Confirmation
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.settings import Rule
from longwatch.learn.state import Stage
from longwatch.learn.steps import Adopt, Anchor, Audit, Confirm, Prepare, Prune, Train

SETTINGS = st.builds(
    settings,
    rule=st.sampled_from(Rule),
    anchor_every=st.integers(0, 3),
    max_problems=st.sampled_from([60, 800]),
    audit=st.builds(AuditSettings, humaneval=st.sampled_from(["", "file"]), every=st.integers(1, 3)),
)
CUT = st.sampled_from(
    [Stopped("saved"), Lost("killed"), Failed(Failure(kind=FailureClass.TRANSIENT, message="busy"))]
)
EXHAUSTED = {"too_little": "no rows", "exhausted": True}


def evidence(step):  # noqa: PLR0911 - one for each kind of step
    """What a step may leave when it ends as it should."""
    match step:
        case Prepare():
            kinds = [{}, {}, {}, {"too_little": "3 fresh problems"}, EXHAUSTED]
            return st.sampled_from(kinds).map(lambda how: prepared(step, **how))
        case Prune():
            return st.just(pruned(step))
        case Train():
            return st.booleans().map(lambda nominates: trained(step, nominates=nominates))
        case Confirm():
            block = {"kind": st.sampled_from(sorted(BLOCKS)), "last_block": st.booleans()}
            repeats = st.sampled_from([False, False, False, True])
            return st.fixed_dictionaries({**block, "repeats": repeats}).map(
                lambda how: confirmed(step, **how)
            )
        case Anchor():
            worse = st.sets(st.sampled_from(step.rivals), max_size=1)
            passed = st.lists(st.integers(0, 100), min_size=len(step.rivals), max_size=len(step.rivals))
            return st.tuples(worse, st.integers(0, 100), passed).map(
                lambda found: anchored(step, worse_than=found[0], passed=found[1], rivals_passed=found[2])
            )
        case Adopt():
            return st.just(adopted(step))
        case Audit():
            return st.just(audited(step))


def life(data, given_settings, steps=50):
    """Yield the state before, the step, its outcome and the state after, as often as it goes on."""
    walk = Walk(given_settings)
    for _ in range(steps):
        before, step = walk.state, walk.step
        if step is None:
            return
        outcome = data.draw(st.one_of(CUT, *[evidence(step).map(succeeded)] * 4))
        walk.tell(outcome)
        yield before, step, outcome, walk.state


@pytest.mark.guarantee("L26")
@examples(max_examples=80)
@given(st.data(), SETTINGS)
def test_experiments_are_counted_one_by_one_and_each_has_one_record(data, given_settings):
    ids = set()
    for before, step, outcome, after in life(data, given_settings):
        assert step.id not in ids
        ids.add(step.id)
        assert after.experiment.number - before.experiment.number in {0, 1}
        assert after.history[: len(before.history)] == before.history
        assert [one.number for one in after.history] == list(range(1, len(after.history) + 1))
        closed = after.experiment.stage in {Stage.CHECK, Stage.AUDIT}
        assert len(after.history) == after.experiment.number - (not closed)
        if not isinstance(outcome, Succeeded):
            assert msgspec.structs.replace(after, serial=before.serial) == before
        if isinstance(line(given_settings).decide(after, {}, NOW), Finish):
            assert after.experiment.window is None, "what was begun is decided before the end"


@pytest.mark.guarantee("L7", "L17", "L26")
@examples(max_examples=80)
@given(st.data(), SETTINGS)
def test_a_window_belongs_to_one_experiment_and_is_trained_on_only_there(data, given_settings):
    owners, blocks = {}, {}
    for before, step, outcome, after in life(data, given_settings):
        assert after.windows - before.windows == (
            isinstance(step, Prepare) and isinstance(outcome, Succeeded)
        )
        if isinstance(step, Train | Confirm):
            assert owners.setdefault(step.window.number, step.number) == step.number
        if isinstance(step, Confirm):
            problems = (step.window.number, step.block)
            folded = after.experiment.ruling != before.experiment.ruling or len(after.history) > len(
                before.history
            )
            assert not (folded and problems in blocks), "no block is folded in twice"
            if folded:
                blocks[problems] = step.number


@pytest.mark.guarantee("L17", "L21", "L26")
@examples(max_examples=80)
@given(st.data(), SETTINGS)
def test_the_champion_changes_only_by_adoption_or_a_noted_rollback(data, given_settings):
    for before, step, outcome, after in life(data, given_settings):
        done = isinstance(outcome, Succeeded)
        if isinstance(step, Adopt) and done:
            assert after.champion == step.challenger.adapter
            assert (after.history[-1].adapter, after.history[-1].decision) == (after.champion, "accepted")
            assert step.ruling.accepts
        elif after.champion != before.champion:
            assert isinstance(step, Anchor)
            assert before.experiment.stage is Stage.CHECK
            assert len(after.rollbacks) == len(before.rollbacks) + 1
            assert after.rollbacks[-1].champion == before.champion
            assert after.rollbacks[-1].returned == after.champion
            assert after.champion in step.rivals
        else:
            assert after.rollbacks == before.rollbacks


@pytest.mark.guarantee("L17", "L19")
@examples(max_examples=80)
@given(st.data(), SETTINGS)
def test_levels_are_spent_by_confirmations_that_began_and_earned_by_what_was_adopted(data, given_settings):
    began = adoptions = 0
    for before, step, outcome, after in life(data, given_settings):
        now, then = after.experiment.confirmation, before.experiment.confirmation
        if isinstance(step, Train) and isinstance(now, Confirmation):
            began += 1
            assert now == Confirmation(
                alpha=before.schedule.alpha, max_problems=given_settings.acceptance.max_problems
            )
        if isinstance(now, Confirmation) and isinstance(then, Confirmation):
            assert now.alpha == then.alpha
            assert now.problems >= then.problems
        if isinstance(step, Adopt) and isinstance(outcome, Succeeded) and isinstance(then, Confirmation):
            adoptions += 1
        assert (after.schedule.begun, len(after.schedule.known)) == (began, adoptions)
        if isinstance(step, Confirm):
            assert step.confirmation == then


@pytest.mark.guarantee("L27")
@examples(max_examples=60)
@given(st.data(), SETTINGS)
def test_pruning_keeps_all_that_the_watch_still_refers_to(data, given_settings):
    for before, step, _, _ in life(data, given_settings):
        if isinstance(step, Prune):
            finished = [one.number for one in before.history][-2:]
            assert set(step.keep.experiments) == {*finished, step.number, step.number + 1}
            windows = {before.sealed.number, before.experiment.window.number, before.windows}
            assert windows <= set(step.keep.windows)
            # Of the sealed set, the current and the next experiment, and the two newest.
            assert len(step.keep.windows) <= 5
