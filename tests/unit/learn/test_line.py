"""The learn line, step by step: what follows from each outcome, without a model."""

import msgspec
import pytest
from learning import (
    Walk,
    adopted,
    anchored,
    audited,
    confirmed,
    prepared,
    pruned,
    settings,
    succeeded,
    trained,
)

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.journal import Event
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.line import Failed, Failure, Finish, Lost, Stopped, Wait
from longwatch.learn.acceptance import Confirmation, StrictConfirmation, error_sentences
from longwatch.learn.board import board
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.settings import Rule, problems
from longwatch.learn.state import Stage
from longwatch.learn.steps import BASE, Adopt, Anchor, Audit, Confirm, Prepare, Prune, Train

UNDECIDED = "slight"


def nominated(walk: Walk, *, ahead: bool = False) -> Walk:
    """Go on to the confirmation of the next challenger, perhaps with the next experiment's window beside it."""
    training(walk)
    if ahead:
        walk.do_ahead(prepared)
    return walk.do(trained)


def training(walk: Walk) -> Walk:
    """Go on to the training of the next experiment."""
    if isinstance(walk.step, Prepare):
        walk.do(prepared)
    return walk.do(pruned) if isinstance(walk.step, Prune) else walk


def accepted(walk: Walk, passed=50) -> Walk:
    nominated(walk)
    while isinstance(walk.step, Confirm):
        walk.do(confirmed, kind="gain" if isinstance(walk.step.confirmation, Confirmation) else "same")
    return walk.do(anchored, passed=passed).do(adopted)


def refused(walk: Walk) -> Walk:
    return training(walk).do(trained, nominates=False)


# -- undecided (L17)


@pytest.mark.guarantee("L17", "L19")
def test_an_undecided_challenger_goes_on_with_the_next_windows_fresh_problems_and_its_evidence():
    walk = nominated(Walk(), ahead=True)
    alpha, trained_on = walk.step.confirmation.alpha, walk.step.window
    walk.do(confirmed, kind=UNDECIDED).do(confirmed, kind=UNDECIDED, last_block=True)
    before = walk.state.experiment.confirmation
    assert before.problems == 40
    assert isinstance(walk.step, Prepare)
    assert walk.step.fresh_only
    assert walk.step.number == 1
    walk.do(prepared)
    assert isinstance(walk.step, Confirm), "it is confirmed, never trained again"
    assert walk.step.confirmation == before
    assert walk.step.confirmation.alpha == alpha
    assert (walk.step.window.number, walk.step.block) == (3, 0)
    walk.do(confirmed, kind="gain").do(anchored)
    assert isinstance(walk.step, Adopt)
    assert walk.step.window == trained_on
    assert [window.number for window in walk.step.fresh] == [3]
    assert walk.step.ruling.confirmation.problems == 60
    walk.do(adopted)
    assert walk.state.schedule.begun == 1
    assert [one.decision for one in walk.state.history] == ["accepted"]


@pytest.mark.guarantee("L17")
def test_the_maximum_of_problems_ends_an_undecided_challenger():
    walk = nominated(Walk(settings(max_problems=60)), ahead=True)
    walk.do(confirmed, kind=UNDECIDED).do(confirmed, kind=UNDECIDED, last_block=True).do(prepared)
    walk.do(confirmed, kind=UNDECIDED)
    (decided,) = walk.state.history
    assert (decided.number, decided.decision) == (1, "exhausted")
    assert (walk.step.number, walk.state.champion) == (2, BASE)


@pytest.mark.guarantee("L17", "L26")
def test_a_challenger_for_whom_there_are_no_more_problems_is_decided_before_the_watch_ends():
    walk = nominated(Walk(settings(audit=AuditSettings(humaneval="file"))))
    walk.do(confirmed, kind=UNDECIDED, last_block=True)
    walk.do(prepared, too_little="0 problems to train on", exhausted=True)
    assert walk.step.fresh_only, "what is left may still hold fresh problems"
    assert walk.step.start_row == 100
    walk.do(prepared, too_little="0 fresh problems", exhausted=True)
    (decided,) = walk.state.history
    assert (decided.number, decided.decision) == (1, "undecided")
    assert any("no more fresh problems" in sentence for sentence in decided.sentences)
    assert isinstance(walk.step, Audit), "what is due is done"
    walk.do(audited)
    end = walk.line.decide(walk.state, {}, None)
    assert isinstance(end, Finish)
    assert end.verdict is Verdict.COMPLETE
    assert len(walk.state.history) == 1


@pytest.mark.guarantee("L17")
def test_a_window_with_too_few_fresh_problems_is_consumed_and_the_challenger_waits_for_the_next():
    walk = nominated(Walk(), ahead=True).do(confirmed, kind=UNDECIDED, last_block=True)
    walk.do(prepared, too_little="3 fresh problems, 20 are needed")
    assert isinstance(walk.step, Prepare)
    assert walk.step.fresh_only
    assert walk.step.window == 4
    walk.do(prepared)
    assert isinstance(walk.step, Confirm)
    assert walk.step.window.number == 4


@pytest.mark.guarantee("L17", "L26")
def test_a_source_that_only_repeats_itself_decides_a_challenger_that_waits_for_fresh_problems():
    walk = nominated(Walk(), ahead=True).do(confirmed, kind=UNDECIDED, last_block=True).do(prepared)
    walk.do(confirmed, kind=UNDECIDED, last_block=True, repeats=True)
    (decided,) = walk.state.history
    assert decided.decision == "undecided"
    assert "no more fresh problems" in decided.sentences[0]
    assert walk.step.number == 2


# -- what ended badly


@pytest.mark.guarantee("L26", "L32")
@pytest.mark.parametrize(
    "outcome",
    [
        Stopped("saved"),
        Lost("killed"),
        Failed(Failure(kind=FailureClass.FAULT, message="x")),
    ],
)
def test_what_was_cut_changes_nothing_and_gets_a_new_id(outcome):
    walk = Walk()
    for _ in range(12):
        step, before = walk.step, walk.state
        walk.tell(outcome)
        assert msgspec.structs.replace(walk.state, serial=before.serial) == before
        assert walk.step.id != step.id
        assert msgspec.structs.replace(walk.step, id=step.id) == step
        match step:
            case Prepare():
                walk.do(prepared)
            case Prune():
                walk.do(pruned)
            case Train():
                walk.do(trained)
            case Confirm():
                walk.do(confirmed, kind="gain")
            case Anchor():
                walk.do(anchored)
            case Adopt():
                walk.do(adopted)


# -- the anchor (L21)


@pytest.mark.guarantee("L21")
def test_every_acceptance_is_compared_with_base_and_the_best_ever():
    walk = accepted(Walk(), passed=60)
    first = walk.state.champion
    assert walk.state.best == first
    nominated(walk).do(confirmed, kind="gain")
    assert walk.step.rivals == (BASE, first)
    walk.do(anchored, passed=55, rivals_passed=(40, 60)).do(adopted)
    assert walk.state.champion != first
    assert walk.state.best == first, "the best ever stays who it was"


@pytest.mark.guarantee("L21")
def test_who_is_worse_on_the_sealed_set_is_refused_and_the_wealth_is_not_earned():
    walk = nominated(Walk()).do(confirmed, kind="gain").do(anchored, worse_than=(BASE,))
    (decided,) = walk.state.history
    assert decided.decision == "refused by the anchor"
    assert walk.state.champion == BASE
    assert (walk.state.schedule.begun, walk.state.schedule.known) == (1, ())


@pytest.mark.guarantee("L21")
def test_every_so_many_experiments_the_champion_is_compared_again():
    walk = accepted(Walk(settings(anchor_every=3)))
    refused(refused(walk))
    assert isinstance(walk.step, Anchor)
    assert (walk.step.candidate, walk.step.rivals) == (walk.state.champion, (BASE,))
    champion = walk.state.champion
    walk.do(anchored)
    assert isinstance(walk.step, Prepare)
    assert (walk.step.number, walk.state.champion) == (4, champion)
    assert not walk.state.rollbacks


@pytest.mark.guarantee("L21")
def test_base_is_never_compared_with_itself_and_0_means_never():
    walk = Walk(settings(anchor_every=1))
    refused(refused(walk))
    assert isinstance(walk.step, Prepare)
    walk = accepted(Walk(settings(anchor_every=0)))
    for _ in range(6):
        refused(walk)
        assert isinstance(walk.step, Prepare)


@pytest.mark.guarantee("L21")
def test_a_champion_that_was_accepted_just_now_is_not_compared_twice():
    walk = accepted(Walk(settings(anchor_every=1)))
    assert isinstance(walk.step, Prepare)


@pytest.mark.guarantee("L21")
def test_harm_rolls_the_champion_back_and_history_and_log_say_so():
    walk = accepted(accepted(Walk(settings(anchor_every=3)), passed=60), passed=55)
    first, second = (one.adapter for one in walk.state.history)
    assert (walk.state.champion, walk.state.best) == (second, second)
    refused(walk)
    walk.do(anchored, worse_than=(BASE,))
    assert walk.state.champion == BASE
    assert walk.state.best == BASE
    (one,) = walk.state.rollbacks
    assert (one.experiment, one.champion, one.returned) == (3, second, BASE)
    assert any("evidence of harm" in sentence for sentence in one.sentences)
    assert walk.said("champion.rolled_back")
    assert [decided.number for decided in walk.state.history] == [1, 2, 3]
    assert first in {decided.adapter for decided in walk.state.history}
    refused(walk)
    assert walk.step.number == 5


@pytest.mark.guarantee("L21")
def test_of_several_that_were_better_the_one_that_passes_most_returns():
    walk = accepted(Walk(settings(anchor_every=3)), passed=60)
    first = walk.state.champion
    nominated(walk).do(confirmed, kind="gain").do(anchored, passed=55, rivals_passed=(40, 60)).do(adopted)
    refused(walk)
    assert walk.step.rivals == (BASE, first)
    walk.do(anchored, worse_than=(BASE, first), passed=30, rivals_passed=(40, 60))
    assert (walk.state.champion, walk.state.best) == (first, first)


@pytest.mark.guarantee("L21", "L33")
def test_the_audit_after_a_rollback_is_of_who_returned():
    walk = accepted(Walk(settings(anchor_every=2, audit=AuditSettings(humaneval="file", every=2))))
    refused(walk)
    walk.do(anchored, worse_than=(BASE,))
    assert isinstance(walk.step, Audit)
    assert walk.step.champion == BASE


# -- the strict rule (L20)


@pytest.mark.guarantee("L20")
def test_a_strict_challenger_is_confirmed_by_one_block_and_spends_no_level():
    walk = nominated(Walk(settings(rule=Rule.STRICT)))
    assert walk.step.confirmation == StrictConfirmation(dev_tasks=40, tries=2)
    walk.do(confirmed, kind="same").do(anchored).do(adopted)
    (decided,) = walk.state.history
    assert decided.decision == "accepted"
    assert walk.state.champion == decided.adapter
    assert (walk.state.schedule.begun, walk.state.schedule.known) == (0, ())


@pytest.mark.guarantee("L20")
def test_any_lost_task_refuses_and_the_next_experiment_begins_at_the_champion():
    walk = accepted(Walk(settings(rule=Rule.STRICT)))
    champion = walk.state.champion
    nominated(walk).do(confirmed, kind="slight", last_block=True)
    assert walk.state.history[-1].decision == "lost"
    walk.do(prepared).do(pruned)
    assert isinstance(walk.step, Train)
    assert walk.step.champion == champion


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize("research", [False, True])
def test_whatever_is_said_of_a_strict_decision_has_its_error_rates(research):
    walk = Walk(settings(rule=Rule.STRICT, research=research))
    nominated(walk).do(confirmed, kind="slight")
    refused(walk)
    nominated(walk).do(confirmed, kind="same").do(anchored, worse_than=(BASE,))
    accepted(walk)
    assert [one.decision for one in walk.state.history] == [
        "lost",
        "no challenger",
        "refused by the anchor",
        "accepted",
    ]
    for tries, decided in zip((2, 4, 6, 8), walk.state.history, strict=True):
        rates = error_sentences(40, tries, losses=int(research))
        assert [sentence for sentence in decided.sentences if sentence in rates] == list(rates)
    for kind in ("challenger.nominated", "block.confirmed", "champion.accepted", "experiment.decided"):
        assert walk.said(kind)
        assert all("is accepted at least once with" in text for text in walk.said(kind))


@pytest.mark.guarantee("L20")
def test_what_began_under_one_rule_ends_under_it():
    walk = nominated(Walk()).do(confirmed, kind=UNDECIDED)
    strict = Walk(settings(rule=Rule.STRICT))
    strict.state = walk.state
    strict.do(confirmed, kind="gain").do(anchored).do(adopted)
    assert strict.state.schedule.known == (1,)
    assert not any("strict rule" in sentence for sentence in strict.state.history[0].sentences)


@pytest.mark.guarantee("L20", "L21")
@pytest.mark.parametrize(
    ("acceptance", "key"),
    [
        ({"research": True}, "acceptance.research"),
        ({"anchor_every": -1}, "acceptance.anchor_every"),
        ({"block": 400}, "curriculum.confirm_tasks"),
        ({"q": 1.0}, "acceptance.q"),
    ],
)
def test_settings_that_make_no_sense_are_named(acceptance, key):
    assert [problem.where.split(" ")[0] for problem in problems(settings(**acceptance))] == [key]


# -- the next window, beside the training (L3, L26, L33)


@pytest.mark.guarantee("L3", "L26", "L33")
def test_the_next_window_is_prepared_beside_the_training_and_needs_no_accelerator():
    walk = training(Walk())
    ahead = walk.ahead
    assert isinstance(ahead, Prepare)
    assert (ahead.number, ahead.window, ahead.start_row) == (2, 2, 100)
    assert ahead.beside
    assert not ahead.exclusive
    assert not ahead.sealed
    assert not ahead.fresh_only
    running = {step.id: step for step in (walk.step, ahead)}
    assert isinstance(walk.line.decide(walk.state, running, None), Wait), "one at a time"
    walk.do_ahead(prepared)
    assert walk.ahead is None, "only one window ahead"
    assert walk.state.experiment.window.number == 1
    walk.do(trained, nominates=False)
    assert isinstance(walk.step, Prune), "nothing has to be prepared any more"
    walk.do(pruned)
    assert (walk.step.number, walk.step.window.number) == (2, 2)
    assert walk.state.pending is None


@pytest.mark.guarantee("L26", "L33")
def test_one_move_ends_an_experiment_and_begins_the_next_with_its_window():
    walk = training(Walk()).do_ahead(prepared)
    pending, before = walk.state.pending, walk.state
    walk.do(trained, nominates=False)
    assert walk.state.serial == before.serial + 1
    assert (walk.state.experiment.number, walk.state.experiment.window) == (2, pending)
    assert (walk.state.pending, walk.state.windows, walk.state.next_row) == (None, 2, 200)


@pytest.mark.guarantee("L26")
def test_a_preparation_that_is_not_done_when_its_experiment_begins_goes_on_as_its_own():
    walk = training(Walk())
    ahead = walk.ahead
    walk.do(trained, nominates=False)
    assert isinstance(walk.line.decide(walk.state, {ahead.id: ahead}, None), Wait)
    walk.tell(succeeded(prepared(ahead)), ahead)
    assert walk.state.experiment.window.number == 2
    assert isinstance(walk.step, Prune)


@pytest.mark.guarantee("L17", "L26")
def test_an_undecided_challenger_waits_for_the_window_that_is_being_prepared_before_it_gets_its_own():
    walk = training(Walk())
    ahead = walk.ahead
    walk.do(trained).do(confirmed, kind=UNDECIDED, last_block=True)
    assert isinstance(walk.line.decide(walk.state, {ahead.id: ahead}, None), Wait)
    walk.tell(succeeded(prepared(ahead)), ahead)
    assert (walk.step.fresh_only, walk.step.window, walk.step.start_row) == (True, 3, 200)
    walk.do(prepared).do(confirmed, kind="loss")
    assert walk.state.history[0].decision == "harm"
    assert walk.state.experiment.window.number == 2


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize(
    "outcome", [Stopped("saved"), Lost("killed"), Failed(Failure(kind=FailureClass.TRANSIENT, message="x"))]
)
def test_a_window_ahead_that_was_cut_is_prepared_again_as_the_same_window(outcome):
    walk = training(Walk())
    ahead, before = walk.ahead, walk.state
    walk.tell(outcome, ahead)
    assert msgspec.structs.replace(walk.state, serial=before.serial) == before
    assert walk.ahead.id != ahead.id
    assert msgspec.structs.replace(walk.ahead, id=ahead.id) == ahead


@pytest.mark.guarantee("L6", "L26")
def test_a_curriculum_that_ends_while_an_experiment_trains_ends_the_watch_after_it():
    walk = training(Walk()).do_ahead(prepared, too_little="3 problems to train on", exhausted=True)
    assert walk.ahead is None
    walk.do(trained).do(confirmed, kind="gain").do(anchored).do(adopted)
    assert isinstance(walk.line.decide(walk.state, {}, None), Finish)
    assert [one.decision for one in walk.state.history] == ["accepted"]


@pytest.mark.guarantee("L17", "L26")
def test_a_curriculum_that_ends_while_a_challenger_needs_more_still_trains_on_the_window_that_is_there():
    walk = nominated(Walk(), ahead=True).do(confirmed, kind=UNDECIDED, last_block=True)
    walk.do(prepared, too_little="0 fresh problems", exhausted=True)
    assert walk.state.history[0].decision == "undecided"
    training(walk)
    assert (walk.step.number, walk.step.window.number) == (2, 2)
    assert walk.ahead is None
    walk.do(trained, nominates=False)
    assert isinstance(walk.line.decide(walk.state, {}, None), Finish)


@pytest.mark.guarantee("L29")
def test_a_window_ahead_is_of_no_generation():
    walk = training(Walk())
    assert walk.step.generation
    assert not walk.ahead.generation
    walk.do(trained).do(confirmed, kind=UNDECIDED, last_block=True)
    assert (walk.step.number, walk.step.generation) == (2, "")


# -- a long life (L27)


@pytest.mark.guarantee("L27", "L36")
def test_the_state_of_a_long_life_stays_small_and_the_log_tells_all_of_it():
    walk, sizes = Walk(settings(anchor_every=0, audit=AuditSettings(humaneval="file"))), []
    while walk.state.experiment.number <= 60:
        if isinstance(walk.step, Audit):
            walk.do(audited)
        elif walk.state.experiment.number % 20:
            refused(walk)
        else:
            accepted(walk)
        sizes.append(len(msgspec.json.encode(walk.state)))
    assert sizes[-1] < 1.2 * sizes[len(sizes) // 3]
    log = [
        Event(seq=n, at="", generation=1, kind=o.kind, text=o.text, data=o.data)
        for n, o in enumerate(walk.notes)
    ]
    drawn = board(walk.state, log)
    assert [one.number for one in drawn.experiments] == [*range(1, 61), 61]
    assert [one.number for one in drawn.experiments if one.adapter] == [20, 40, 60]
    assert {one.experiment for one in drawn.rounds} == set(range(1, 61))
    assert [one.look for one in drawn.scores] == list(range(1, 61))
    kept = {one.number: one for one in walk.state.history}
    assert {20, 40, 60} <= set(kept), "what was accepted is referred to for ever"
    assert all(kept[number].receipt for number in (20, 40, 60))


@pytest.mark.guarantee("L20")
def test_the_strict_rule_counts_the_rounds_of_a_whole_life():
    walk = Walk(settings(rule=Rule.STRICT, anchor_every=0))
    for _ in range(40):
        refused(walk)
    assert nominated(walk).step.confirmation.tries == 82


# -- the loop (L33)


@pytest.mark.guarantee("L26", "L33")
def test_the_loop_goes_round_in_its_order():
    walk = accepted(Walk(settings(anchor_every=2, audit=AuditSettings(humaneval="file"))))
    order = []
    while walk.state.experiment.number < 3:
        order.append(walk.state.experiment.stage)
        match walk.step:
            case Audit():
                walk.do(audited)
            case Prepare():
                walk.do(prepared)
            case Prune():
                walk.do(pruned)
            case Train():
                walk.do(trained, nominates=False)
            case Anchor():
                walk.do(anchored)
    assert order == [Stage.AUDIT, Stage.PREPARE, Stage.PRUNE, Stage.TRAIN, Stage.CHECK, Stage.AUDIT]


@pytest.mark.guarantee("L26")
def test_a_step_that_runs_is_waited_for():
    walk = Walk()
    step = walk.step
    assert isinstance(walk.line.decide(walk.state, {step.id: step}, None), Wait)


def test_evidence_of_another_step_is_no_evidence():
    walk = Walk()
    with pytest.raises(TypeError, match="Prepare left evidence of a Confirm"):
        walk.tell(succeeded(confirmed(nominated(Walk()).step, kind="gain")))
