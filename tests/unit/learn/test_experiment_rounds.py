"""The story of an experiment with canned stages: what follows on what, what is said, and what ends it (L8, L13, L14)."""

from types import SimpleNamespace

import msgspec
import pytest
from tests.support.teaching import example, pairs, task

from longwatch.kernel.errors import IntegrityError, LeaseHeldError
from longwatch.kernel.line import Stopped, Succeeded
from longwatch.kernel.program import Work
from longwatch.kernel.watch import Watch
from longwatch.learn import experiment
from longwatch.learn.experiment import course, meter, replay, rounds
from longwatch.learn.experiment.collecting import Collected
from longwatch.learn.place import Place
from longwatch.learn.settings import Hours, LearnSettings, Recipe
from longwatch.learn.stages import StoppedError
from longwatch.learn.steps import Train, Trained, Window
from longwatch.learn.tasks import Split
from longwatch.learn.training.results import GaveUp
from longwatch.learn.training.results import Trained as Fitted

WINDOW = Window(number=1, manifest="0" * 64, nonce="n", next_row=0, train=8, dev=4, confirm=4, sealed=0)


def fitted(name):
    return Fitted(
        steps=3, losses=(1.0, 0.5), tokens=9, seconds=1.0, dropped=0, setbacks=(), adapter=name * 64
    )


class Script:
    """In place of the stages: `found` are the examples of each round, `dev` what its adapter makes of dev."""

    def __init__(self, monkeypatch, tmp_path, *, found, dev=(), tasks=8, hours=1.0, most=256, replayed=""):
        self.found, self.dev, self.learned, self.interrupt = found, dict(enumerate(dev, 1)), [], {}
        settings = LearnSettings(
            kind="learn",
            training=Recipe(tasks_per_round=2, max_examples=most),
            experiment=Hours(hours=hours, rounds=len(found)),
        )
        self.place = Place(Watch(tmp_path), settings)
        self.step = Train(id="train.1.1", number=1, window=WINDOW, champion="base", replay=replayed)
        self.work = Work(tmp_path, self.step)
        sides = {Split.TRAIN: tuple(task(f"t{number}") for number in range(tasks)), Split.DEV: ()}
        monkeypatch.setattr(course, "tasks_of", lambda root, window, split: sides[split])
        self.marks = SimpleNamespace(champion=1, base=1, total=4, flips=None)
        monkeypatch.setattr(rounds, "mark", lambda course: self.marks)
        for name in ("collect", "fit", "evaluate"):
            monkeypatch.setattr(rounds, name, getattr(self, name))
        monkeypatch.setattr(rounds.adapters, "read", lambda folder: {"adapter_config.json": b"{}"})

    def collect(self, course, tasks, number):
        self._maybe_stop("collect", number)
        return Collected(asked=8, passed=len(self.found[number - 1]), examples=tuple(self.found[number - 1]))

    def fit(self, course, taught, number):
        self._maybe_stop("fit", number)
        self.learned.append(tuple(one.task for one in taught))
        return self.dev[number] if isinstance(self.dev[number], GaveUp) else fitted(str(number))

    def evaluate(self, course, marks, name, adapter, beat):
        self._maybe_stop("evaluate", int(name[0]))
        return pairs(self.dev[int(name[0])])

    def _maybe_stop(self, stage, number):
        act = self.interrupt.get((stage, number))
        if act is not None:
            act(self.work)
            raise StoppedError

    def outcome(self):
        return experiment.perform(self.work, self.step, self.place)

    def trained(self):
        outcome = self.outcome()
        assert isinstance(outcome, Succeeded)
        return msgspec.json.decode(outcome.evidence, type=Trained)

    def said(self):
        self.work.report("train.1.1", Stopped())
        report = msgspec.json.decode((self.work.folder / "report.json").read_bytes())
        return [(note["kind"], note["data"].get("why")) for note in report["notes"]]


@pytest.fixture
def script(monkeypatch, tmp_path):
    return lambda **known: Script(monkeypatch, tmp_path, **known)


def person(work):
    work.stop_requested = True


def nobody(work):
    """The hours are used: nobody asked."""


@pytest.mark.guarantee("L8", "L13")
def test_rounds_are_cumulative_and_the_best_one_is_nominated(script):
    told = script(found=[[example("t0")], [example("t2")], [example("t4")]], dev=("+000", "++00", "++00"))
    trained = told.trained()
    assert told.learned == [("t0",), ("t0", "t2"), ("t0", "t2", "t4")]
    assert trained.challenger is not None
    assert trained.challenger.round == 2
    folder = told.place.experiment(1) / "nominated"
    assert [one.task for one in replay.load(folder, trained.challenger.examples)] == ["t0", "t2"]
    assert told.said() == [("round.finished", None)] * 3 + [("rounds.ended", "rounds")]
    assert (trained.dev_before, trained.dev_base, trained.dev_total) == (1, 1, 4)


@pytest.mark.guarantee("L8")
def test_three_rounds_without_a_new_example_complete_the_experiment(script):
    told = script(found=[[example("t0")], [], [], [], [example("t8")]], dev=("+000",), tasks=20)
    trained = told.trained()
    assert told.learned == [("t0",)]
    assert trained.challenger is not None, "what was trained before counts"
    assert told.said()[1:] == [("round.dry", None)] * 3 + [("rounds.ended", "no_new_examples")]


@pytest.mark.guarantee("L8", "L9")
def test_a_round_whose_examples_are_worth_less_than_all_that_are_taught_is_dry(script):
    full = [example("t0"), example("t1")]
    told = script(found=[full, [example("t2", passed=4)]], dev=("0000",), most=2)
    assert told.trained().challenger is None
    assert told.learned == [("t0", "t1")]
    assert ("round.dry", None) in told.said()


@pytest.mark.guarantee("L8")
def test_an_empty_batch_ends_the_curriculum_of_the_experiment(script):
    told = script(found=[[example("t0")]] * 5, dev=("0000",) * 5, tasks=2)
    assert "no task is left" in told.trained().reason
    assert told.said()[-1] == ("rounds.ended", "curriculum_exhausted")


@pytest.mark.guarantee("L8", "L12")
def test_a_round_that_could_not_be_trained_says_so_and_the_next_one_is_made(script):
    told = script(found=[[example("t0")], [example("t2")]], dev=(GaveUp(why="the loss is nan"), "+000"))
    trained = told.trained()
    assert [one.round for one in trained.rounds] == [2]
    assert told.said()[0] == ("training.gave_up", None)


@pytest.mark.guarantee("L14")
@pytest.mark.parametrize("stage", ["collect", "fit", "evaluate"])
def test_at_the_end_of_its_hours_an_experiment_ends_with_what_it_has(script, stage):
    told = script(found=[[example("t0")], [example("t2")]], dev=("+000", "++00"))
    told.interrupt = {(stage, 2): nobody}
    trained = told.trained()
    assert trained.challenger is not None
    assert trained.challenger.round == 1
    assert told.said()[-1] == ("rounds.ended", "hours")


@pytest.mark.guarantee("L14")
@pytest.mark.parametrize("stage", ["collect", "fit", "evaluate"])
def test_a_person_who_asks_stops_it_without_a_result_and_it_goes_on_later(script, stage):
    told = script(found=[[example("t0")], [example("t2")]], dev=("+000", "++00"))
    told.interrupt = {(stage, 2): person}
    assert isinstance(told.outcome(), Stopped)
    told.interrupt, told.work.stop_requested = {}, False
    trained = told.trained()
    assert trained.challenger is not None
    assert trained.challenger.round == 2


@pytest.mark.guarantee("L14")
def test_its_steps_hear_of_the_limit_and_its_seconds_are_told(script, tmp_path):
    told = script(found=[[example("t0")]], dev=("+000",), hours=0.01)
    folder = told.place.experiment(1)
    folder.mkdir(parents=True)
    spent = meter.Active({"train": 35.0, "generate": 2.0})
    (folder / meter.FILE).write_bytes(msgspec.json.encode(spent))
    seen = []
    told.interrupt = {("collect", 1): lambda work: seen.append(work.should_stop())}
    trained = told.trained()
    assert seen == [True], "36 seconds are over"
    assert trained.active_s >= 37.0
    assert trained.active_by_phase["train"] == 35.0
    assert trained.challenger is None
    assert "hours" in trained.reason


@pytest.mark.guarantee("L14")
def test_no_second_worker_works_on_an_experiment(script):
    told = script(found=[[example("t0")]], dev=("+000",))
    told.interrupt = {("collect", 1): lambda work: told.outcome()}
    with pytest.raises(LeaseHeldError):
        told.outcome()


@pytest.mark.guarantee("L7", "L11")
def test_nothing_is_asked_before_the_replay_is_what_was_bound(script):
    told = script(found=[[example("t0")]], dev=("+000",), replayed="a" * 64)
    with pytest.raises(IntegrityError, match="gone"):
        told.outcome()


@pytest.mark.guarantee("L11")
def test_what_earlier_adapters_learned_is_drawn_for_every_round(script):
    told = script(found=[[example("t0")]], dev=("+000",))
    name = replay.write(told.place.replay, (example("old"),))
    told.step = msgspec.structs.replace(told.step, replay=name)
    trained = told.trained()
    assert trained.rounds[0].replayed == 1
    assert trained.challenger is not None
    taught = replay.load(told.place.experiment(1) / "nominated", trained.challenger.examples)
    assert [one.task for one in taught] == ["t0"], "it is in the replay already"
