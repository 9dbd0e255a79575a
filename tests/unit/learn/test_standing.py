"""How a learn watch stands: what is true, in about ten lines (L35)."""

import os

import msgspec
import pytest
from learning import Walk, adopted, anchored, audited, confirmed, prepared, pruned, settings, trained

from longwatch.cli import beginning
from longwatch.kernel import lease
from longwatch.kernel.clock import now
from longwatch.kernel.identity import identify
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Desired
from longwatch.kernel.line import Succeeded
from longwatch.kernel.store import Beat, Ended, Intended, Spawned, Store
from longwatch.kernel.watch import Watch
from longwatch.learn import standing
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.settings import Rule
from longwatch.learn.settings import load as load_settings
from longwatch.observe import status


def of(walk: Walk, given=None, **seen):
    return standing.standing(given or settings(), walk.state, **seen)


def shown(walk: Walk, given=None, **seen) -> dict[str, str]:
    return dict(standing.rows(of(walk, given, **seen)))


@pytest.mark.guarantee("L19", "L35")
def test_a_running_confirmation_shows_its_evidence_against_what_is_needed_and_the_wealth():
    walk = Walk()
    walk.do(prepared).do(trained).do(confirmed, kind="slight")
    found = of(walk)
    assert found.evidence.problems == 20
    assert found.evidence.needed == pytest.approx(1 / walk.state.experiment.confirmation.alpha)
    assert found.evidence.now < found.evidence.needed
    assert found.alpha_wealth == walk.state.schedule.remaining < 0.05
    assert "of 45.7 needed" in shown(walk)["confirmation"]
    assert "alpha-wealth 0.0281" in shown(walk)["confirmed"]


@pytest.mark.guarantee("L35")
def test_the_newest_round_is_shown_beside_champion_and_base():
    walk = Walk()
    assert "dev" not in shown(walk)
    walk.do(prepared).do(trained, nominates=False)
    said = "experiment 1, round 2: 80 answers collected, 20 passed, 40 examples taught"
    assert shown(walk)["newest round"] == said
    assert shown(walk)["dev"] == "12, champion 10, base 8 of 40"
    walk.do(prepared)
    assert shown(walk)["newest round"] == said, "until the next experiment has one"


@pytest.mark.guarantee("L35")
def test_what_is_due_next_and_what_was_decided_are_shown():
    given = settings(audit=AuditSettings(humaneval="file", every=2), anchor_every=3)
    walk = Walk(given)
    assert shown(walk, given)["next"] == (
        "audit after experiment 2; sealed comparison after experiment 3 and on acceptance"
    )
    walk.do(prepared).do(trained).do(confirmed, kind="gain").do(anchored).do(adopted)
    walk.do(prepared).do(pruned).do(trained, nominates=False).do(audited)
    found = of(walk, given)
    assert (found.next_audit, found.next_anchor) == (4, 3)
    assert [(one.experiment, one.decision) for one in found.decided] == [
        (1, "accepted"),
        (2, "no challenger"),
    ]
    rows = shown(walk, given)
    assert rows["decided"] == "2 no challenger, 1 accepted"
    assert rows["champion"].endswith("accepted in experiment 1")
    assert "reporting only" in rows["HumanEval, look 1"]
    assert len(rows) <= 10
    never = settings(anchor_every=0)
    assert shown(Walk(never), never)["next"] == "audit never; sealed comparison on acceptance only"


@pytest.mark.guarantee("L20", "L35")
def test_the_error_rates_of_a_strict_confirmation_are_shown():
    walk = Walk(settings(rule=Rule.STRICT)).do(prepared).do(trained)
    assert "is accepted at least once with" in shown(walk)["confirmation"]


@pytest.mark.guarantee("L21", "L35")
def test_a_rollback_is_shown():
    given = settings(anchor_every=2)
    walk = Walk(given).do(prepared).do(trained).do(confirmed, kind="gain").do(anchored).do(adopted)
    walk.do(prepared).do(pruned).do(trained, nominates=False).do(anchored, worse_than=("base",))
    assert shown(walk, given)["champion"] == "base; rolled back 1 times"


# -- beside the state


@pytest.fixture
def watch(tmp_path):
    beginning.learn(tmp_path)
    return Watch(tmp_path)


def commit(watch: Watch, *changes, **moved) -> None:
    store = Store.open(watch.database)
    try:
        generation = store.begin_generation(Note("supervisor.began", "x"))
        store.commit(generation, changes=changes, **moved)
    finally:
        store.close()


def begun(watch: Watch, walk: Walk, *, active_s: float):
    """The step that is due runs in this very process."""
    step = walk.step
    intent = Intended(step.id, msgspec.json.encode(step), "cookie", now())
    spawned = Spawned(step.id, identify(os.getpid(), "cookie"), now())
    beat = Beat(step.id, None, active_s)
    commit(watch, intent, spawned, beat, line=msgspec.json.encode(walk.state))
    return step


@pytest.mark.guarantee("L35")
def test_the_machine_is_in_use_while_a_step_has_the_accelerator(watch):
    walk = Walk(load_settings(watch.root))
    begun(watch, walk, active_s=1.0)
    assert status.read(watch).details.machine.free, "preparing a window needs no accelerator"
    ended = Ended(id=walk.step.id, outcome=Succeeded(msgspec.Raw(b"null")), active_s=1.0)
    commit(watch, ended)
    walk.do(prepared)
    step = begun(watch, walk, active_s=90.0)
    found = status.read(watch).details
    assert not found.machine.free
    assert step.id in found.machine.why
    assert found.active_s == 90.0, "of this experiment's rounds alone"
    assert dict(status.read(watch).summary)["machine"].startswith("in use")


@pytest.mark.guarantee("L35")
def test_a_step_whose_process_is_gone_does_not_hold_the_machine(watch):
    walk = Walk(load_settings(watch.root)).do(prepared)
    step = walk.step
    gone = msgspec.structs.replace(identify(os.getpid(), "cookie"), pid=2**22 - 3)
    commit(
        watch,
        Intended(step.id, msgspec.json.encode(step), "cookie", now()),
        Spawned(step.id, gone, now()),
        line=msgspec.json.encode(walk.state),
    )
    assert status.read(watch).details.machine.free


@pytest.mark.guarantee("L35")
@pytest.mark.parametrize(
    ("desired", "said"), [(Desired.RUN, "until the next step"), (Desired.PAUSE, "nothing runs")]
)
def test_a_free_machine_is_promised_only_where_nothing_begins_by_itself(watch, desired, said):
    store = Store.read(watch.database)
    life = msgspec.structs.replace(store.snapshot().lifecycle, desired=desired)
    store.close()
    commit(watch, lifecycle=life)
    held = lease.acquire(watch.lease)
    try:
        machine = status.read(watch).details.machine
    finally:
        held.close()
    assert machine.free
    assert machine.why.startswith(said)
