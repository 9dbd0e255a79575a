"""Drift blocks with the list of what changed, and `continue` takes it over with the clock, whole or not at all (L29, L30)."""

import json
import os
import signal
import subprocess
import sys

import msgspec
import pytest
import tomlkit
from learning import Walk, prepared, succeeded, trained
from tests.support.learn_forks import ended, forked
from tests.support.learn_misfortunes import at_writes
from tests.support.watching import reading

from longwatch.cli import beginning
from longwatch.kernel import lease
from longwatch.kernel.clock import now
from longwatch.kernel.errors import IntegrityError, LeaseHeldError, RefusedError
from longwatch.kernel.finding import Standing
from longwatch.kernel.identity import identify
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Desired
from longwatch.kernel.store import Intended, Spawned, Store
from longwatch.kernel.watch import Watch
from longwatch.learn.experiment import meter
from longwatch.learn.generations import archive, binding, entering
from longwatch.learn.place import Place
from longwatch.learn.settings import load
from longwatch.learn.state import LearnState, Stage
from longwatch.learn.steps import Bind, Train
from longwatch.observe import continuing, hours, status

SPENT_S = 12.5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A student that looks like one: nothing here loads it."""
    folder = tmp_path_factory.mktemp("model") / "student"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def watch(tmp_path, model, monkeypatch):
    """Its first experiment is bound, and was active for a while."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "watch"
    root.mkdir()
    beginning.learn(root)
    subprocess.run(["cp", "-a", str(model), str(tmp_path / "student")], check=True)
    configure(root, "student", model=str(tmp_path / "student"))
    configure(root, "experiment", hours=1.0)
    walk = Walk(load(root), binds=False).do(prepared)
    assert isinstance(walk.step, Bind)
    made = binding.bind(walk.step, Place(Watch(root), load(root)))
    walk.tell(succeeded(made))
    commit(Watch(root), line=msgspec.json.encode(walk.state))
    folder = Place(Watch(root), load(root)).experiment(1)
    folder.mkdir(parents=True)
    (folder / meter.FILE).write_bytes(msgspec.json.encode(meter.Active({"train": SPENT_S})))
    return Watch(root)


def configure(root, table, **values) -> None:
    path = root / "longwatch.toml"
    document = tomlkit.parse(path.read_text())
    document.setdefault(table, tomlkit.table()).update(values)
    path.write_text(tomlkit.dumps(document))


def commit(watch, *changes, **moved) -> None:
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "x"))
    store.commit(generation, changes=changes, **moved)
    store.close()


def state(watch) -> LearnState:
    with reading(watch) as store:
        assert store.chain() is None
        return msgspec.json.decode(store.snapshot().line, type=LearnState)


def at(watch, stage: Stage) -> None:
    known = state(watch)
    experiment = msgspec.structs.replace(known.experiment, stage=stage)
    commit(watch, line=msgspec.json.encode(msgspec.structs.replace(known, experiment=experiment)))


def begin(watch, pid=None) -> Train:
    """An experiment's step that nobody counted yet, of this process or of nobody."""
    step = Walk(load(watch.root))
    step.state = state(watch)
    (train,) = step.line.decide(step.state, {}, now()).steps
    commit(watch, Intended(train.id, msgspec.json.encode(train), "c" * 32, now()))
    if pid:
        commit(watch, Spawned(train.id, identify(pid, "c" * 32), now()))
    watch.step(train.id).mkdir(parents=True)
    return train


# -- drift


@pytest.mark.guarantee("L29")
def test_as_it_was_bound_it_goes_on(watch):
    entering.ready(watch, load(watch.root))


@pytest.mark.guarantee("L29")
def test_everything_that_differs_is_told_at_once_before_anything_begins(watch):
    configure(watch.root, "training", rank=16, learning_rate=1e-4)
    configure(watch.root, "acceptance", margin_slice=0.2)
    with pytest.raises(IntegrityError) as told:
        entering.ready(watch, load(watch.root))
    for said in (
        "training.rank 8 -> 16",
        "training.learning_rate 0.0002 -> 0.0001",
        "acceptance.margin_slice 0.05 -> 0.2",
        "put it back in longwatch.toml",
        "longwatch continue",
        state(watch).experiment.generation[:12],
    ):
        assert said in str(told.value)


@pytest.mark.guarantee("L29", "K38")
def test_doctor_knows_it_beforehand(watch):
    def found():
        return [
            one
            for one in entering.findings(watch, load(watch.root), state(watch))
            if one.name == "generation"
        ]

    assert [one.standing for one in found()] == [Standing.FINE]
    configure(watch.root, "training", rank=16)
    (one,) = found()
    assert one.standing is Standing.WRONG
    assert "training.rank 8 -> 16" in one.text


@pytest.mark.guarantee("L29")
def test_what_is_free_may_change_at_any_time(watch):
    configure(watch.root, "curriculum", levels=[3])
    configure(watch.root, "experiment", hours=2.0)
    configure(watch.root, "host", free_disk_bytes=1)
    entering.ready(watch, load(watch.root))


@pytest.mark.guarantee("L29")
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer_config.json"])
@pytest.mark.parametrize("stage", [Stage.TRAIN, Stage.CONFIRM, Stage.ADOPT])
def test_another_base_or_tokenizer_blocks_in_every_stage(watch, name, stage):
    at(watch, stage)
    (watch.root.parent / "student" / name).write_bytes(b'{"chat_template": "another"}')
    with pytest.raises(IntegrityError, match=r"base|tokenizer") as told:
        entering.ready(watch, load(watch.root))
    assert "restore its files" in str(told.value)


@pytest.mark.guarantee("L29")
def test_a_trained_experiment_minds_no_settings_but_its_libraries(watch, monkeypatch):
    at(watch, Stage.CONFIRM)
    configure(watch.root, "training", rank=16)
    entering.ready(watch, load(watch.root))
    real = entering.present

    def other(known, root):
        here = real(known, root)
        return msgspec.structs.replace(here, environment={**here.environment, "torch": "9.9"})

    monkeypatch.setattr(entering, "present", other)
    with pytest.raises(IntegrityError, match=r"torch .* -> 9\.9 \(pip install torch=="):
        entering.ready(watch, load(watch.root))


@pytest.mark.guarantee("L29", "L32")
def test_what_a_step_may_have_left_is_settled_before_anything_is_refused(watch):
    configure(watch.root, "training", rank=16)
    begin(watch)
    entering.ready(watch, load(watch.root))


# -- continue


@pytest.mark.guarantee("L30")
def test_it_moves_with_its_clock_and_the_history_has_parent_child_and_seconds(watch):
    before = state(watch)
    configure(watch.root, "training", rank=16)
    seen = continuing.look(watch)
    assert state(watch) == before, "a look changes nothing"
    moved = continuing.move(watch)
    after = state(watch)
    assert after.experiment.generation == seen.child == moved.child != before.experiment.generation
    assert (
        msgspec.structs.replace(after.experiment, generation=before.experiment.generation)
        == before.experiment
    )
    (one,) = after.continuations
    assert (one.experiment, one.parent, one.child) == (1, before.experiment.generation, moved.child)
    assert (one.carried_s, one.limit_s) == (SPENT_S, 3600.0)
    assert meter.read(Place(watch, load(watch.root)).experiment(1)).total_s == SPENT_S, "it is where it was"
    with reading(watch) as store:
        event = [event for event in store.events() if event.kind == "experiment.continued"][-1]
    assert event.data == {**msgspec.structs.asdict(one), "changes": 1}
    assert "training.rank 8 -> 16" in event.text
    entering.ready(watch, load(watch.root))
    shown = status.read(watch)
    row = dict(shown.summary)["experiment"]
    assert f"as source generation {moved.child[:12]}, continued with 12.5 s" in row
    (train,) = Walk(load(watch.root)).line.decide(after, {}, now()).steps
    assert train.continued
    assert train.generation == moved.child


@pytest.mark.guarantee("L30")
def test_all_that_is_in_the_way_is_told_at_once_and_nothing_moves(watch):
    configure(watch.root, "training", rank=16)
    configure(watch.root, "experiment", hours=2.0)
    (watch.root.parent / "student/model.safetensors").write_bytes(b"others")
    begin(watch, os.getpid())
    before = state(watch)
    with pytest.raises(RefusedError) as told:
        continuing.move(watch)
    for said in (
        f"held by a live worker, process {os.getpid()}",
        "What differs: config: training.rank 8 -> 16",
        "adapters fit one base only",
        "the limits are not equal",
        "may be active for 1 hours, [experiment] hours is 2",
        "longwatch set-hours",
    ):
        assert said in str(told.value)
    assert state(watch) == before
    assert len(list((watch.hidden / "generations").iterdir())) == 1
    text = continuing.text(continuing.look(watch))
    assert "training.rank 8 -> 16" in text
    assert "live worker" in text


@pytest.mark.guarantee("L30", "L31")
def test_hours_that_were_set_as_they_are_set_move_with_it(watch):
    commit(watch, lifecycle=_paused(watch))
    hours.set_hours(watch, 2.0)
    configure(watch.root, "training", rank=16)
    assert continuing.move(watch).limit_s == 7200.0


def _paused(watch):
    with reading(watch) as store:
        return msgspec.structs.replace(store.snapshot().lifecycle, desired=Desired.PAUSE)


@pytest.mark.guarantee("L30")
def test_a_clock_that_was_turned_back_after_it_moved_is_refused(watch):
    configure(watch.root, "training", rank=16)
    continuing.move(watch)
    configure(watch.root, "training", rank=8)
    path = Place(watch, load(watch.root)).experiment(1) / meter.FILE
    path.write_bytes(msgspec.json.encode(meter.Active({"train": 1.0})))
    with pytest.raises(RefusedError, match=r"shows 1\.0 s, and 12\.5 s were carried over"):
        continuing.move(watch)


@pytest.mark.guarantee("L30", "K35")
def test_it_can_move_to_and_fro_and_its_seconds_are_counted_once(watch):
    first = state(watch).experiment.generation
    configure(watch.root, "training", rank=16)
    continuing.move(watch)
    configure(watch.root, "training", rank=8)
    continuing.move(watch)
    assert state(watch).experiment.generation == first
    assert [one.carried_s for one in state(watch).continuations] == [SPENT_S, SPENT_S]
    walk = Walk(load(watch.root))
    walk.state = state(watch)
    walk.do(lambda step: msgspec.structs.replace(trained(step, nominates=False), active_s=SPENT_S))
    assert walk.state.active_s == SPENT_S


@pytest.mark.guarantee("L30")
def test_where_nothing_differs_nothing_is_there_to_continue(watch):
    with pytest.raises(RefusedError, match="nothing differs from generation"):
        continuing.move(watch)


@pytest.mark.guarantee("L30", "L14")
def test_it_is_refused_where_somebody_holds_the_experiment_or_the_watch(watch):
    configure(watch.root, "training", rank=16)
    folder = Place(watch, load(watch.root)).experiment(1)
    held = lease.acquire(folder / "lock")
    with pytest.raises(
        RefusedError, match=f"held by a live worker, process {os.getpid()} .*training.rank 8 -> 16"
    ):
        continuing.move(watch)
    held.close()
    held = lease.acquire(watch.lease)
    with pytest.raises(LeaseHeldError):
        continuing.move(watch)
    held.close()
    assert not state(watch).continuations


@pytest.mark.guarantee("L30", "K6")
def test_an_outcome_that_nobody_counted_is_never_thrown_away(watch):
    configure(watch.root, "training", rank=16)
    step = begin(watch)
    (watch.step(step.id) / "report.json").write_text("{}")
    with pytest.raises(
        RefusedError, match="left an outcome that is not counted yet: `longwatch run` counts it first"
    ):
        continuing.move(watch)


@pytest.mark.guarantee("L30", "K6")
def test_a_step_that_died_is_closed_in_the_same_commit(watch):
    configure(watch.root, "training", rank=16)
    before = state(watch)
    begin(watch)
    continuing.move(watch)
    with reading(watch) as store:
        assert store.open_steps() == ()
    assert state(watch).serial == before.serial + 1, "its name is not used again"


@pytest.mark.guarantee("L30")
def test_before_it_is_bound_there_is_nothing_to_move(tmp_path):
    beginning.learn(tmp_path)
    with pytest.raises(RefusedError, match="bound to no source generation yet"):
        continuing.look(Watch(tmp_path))


@pytest.mark.guarantee("L30", "K5", "K8")
def test_killed_between_any_two_writes_it_moved_or_it_did_not(watch, tmp_path):
    """Killed once before and once after each kind of file or folder that gets its name, and around the commit."""
    before, ledger = state(watch), tmp_path / "ledger"
    ledger.touch()
    configure(watch.root, "training", rank=16)
    place = Place(watch, load(watch.root))
    while not state(watch).continuations:
        assert state(watch) == before
        archive.get(place.generations, before.experiment.generation)
        code = ended(forked(lambda: dies_moving(watch, ledger)))
        assert code == -signal.SIGKILL
    moments = ledger.read_text().split()
    assert {"generation:after", "COMPLETE:before", "commit:before", "commit:after"} <= set(moments)
    assert moments[-1] == "commit:after"
    assert len(state(watch).continuations) == 1
    assert not list(place.generations.glob(".staging-*")), "what was cut is swept"
    entering.ready(watch, load(watch.root))


def dies_moving(watch: Watch, ledger) -> int:
    def die(name: str, when: str) -> None:
        moment = f"{'generation' if len(name) == 64 else name}:{when}"
        if moment not in ledger.read_text().split():
            with ledger.open("a") as file:
                file.write(f"{moment}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    at_writes(die)
    real = Store.commit

    def commit_(store, *arguments, **named):
        die("commit", "before")
        real(store, *arguments, **named)
        die("commit", "after")

    Store.commit = commit_
    continuing.move(watch)
    return 0


# -- the command


@pytest.mark.guarantee("L30", "K15")
def test_the_command_lists_and_moves_and_says_both_in_json(watch):
    def run(*arguments):
        argv = [sys.executable, "-m", "longwatch.cli.main", "continue", *arguments]
        return subprocess.run(argv, cwd=watch.root, capture_output=True, text=True, check=False)

    assert run().returncode == 2
    configure(watch.root, "training", rank=16)
    listed = json.loads(run("--dry-run", "--json").stdout)
    assert listed["dry_run"]
    assert [(one["name"], one["old"], one["new"]) for one in listed["changes"]] == [
        ("training.rank", "8", "16")
    ]
    moved = run()
    assert moved.returncode == 0, moved.stderr
    assert "12.5 active seconds of 3600 go with it. `longwatch run` goes on" in moved.stdout
    refused = run()
    assert refused.returncode == 2
    assert "nothing differs" in refused.stderr
