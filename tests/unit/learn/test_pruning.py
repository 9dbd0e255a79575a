"""Pruning: old experiments go, and nothing that anything refers to (L27)."""

import msgspec
import pytest
from learning import Walk, confirmed, leave, live, prepared, pruned, sizes, trained

from longwatch.kernel import files
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.watch import Watch
from longwatch.learn import pruning
from longwatch.learn.place import Place
from longwatch.learn.pruning import Listing, keep, plan
from longwatch.learn.settings import LearnSettings
from longwatch.learn.steps import Keep

KEPT = Keep(experiments=(5, 6, 7), windows=(1, 8, 9, 10), replay="a" * 64)


@pytest.fixture
def place(tmp_path):
    return Place(Watch(tmp_path), LearnSettings(kind="learn"))


def numbers(folder):
    return sorted(int(path.name) for path in folder.iterdir())


@pytest.mark.guarantee("L27")
def test_the_disk_stays_as_full_as_it_is(place):
    full = live(Walk(), place, 30)
    assert len(set(full[5:])) == 1
    assert numbers(place.experiments) == [28, 29, 30]


@pytest.mark.guarantee("L21", "L26", "L27")
def test_what_is_accepted_stays_for_ever_with_the_sealed_set_and_the_newest_windows(place):
    walk = Walk()
    live(walk, place, 12, accepts={2, 3})
    accepted = {one.adapter for one in walk.state.history if one.adapter}
    assert {path.name for path in place.adapters.iterdir()} == accepted
    assert numbers(place.windows) == [1, 11, 12], "the sealed set's, and the two newest"
    assert [path.name for path in place.replay.iterdir()] == [f"{walk.state.replay}.jsonl"]
    assert [one.number for one in walk.state.history] == list(range(1, 13)), "the record of each stays"
    assert len(list(place.grades.iterdir())) == 2, "grades of the sealed set are used again"


@pytest.mark.guarantee("L17", "L27")
def test_an_undecided_challenger_keeps_its_adapter_its_evidence_and_its_windows(place):
    walk = Walk()
    live(walk, place, 4)
    leave(place, walk.step)
    walk.do(prepared).do(pruned)
    leave(place, walk.step)
    leave(place, walk.ahead)
    walk.do_ahead(prepared).do(trained)
    for _ in range(4):
        leave(place, walk.step)
        walk.do(confirmed, kind="slight", last_block=True)
        leave(place, walk.step)
        walk.do(prepared)
    pruning.prune(place, keep(walk.state))
    experiment = walk.state.experiment
    assert (place.experiment(5) / "nominated" / experiment.challenger.adapter / "weights").exists()
    assert len(list((place.experiment(5) / "pairs").iterdir())) == 4
    held = {experiment.window.number, walk.state.pending.number, *(one.number for one in experiment.fresh)}
    assert held <= set(numbers(place.windows))


@pytest.mark.guarantee("L27")
def test_a_plan_leaves_alone_what_is_not_ours():
    there = Listing(
        experiments=("1", "4", "5", "7", "07", "notes", "", "٣", "-1"),
        windows=("1", "2", "10", "11", ".staging"),
        steps=("train.4.33", "train.5.40", "adopt.4.38", "run-1", "a.b.c", "x.1"),
        replays=("a" * 64 + ".jsonl", "b" * 64 + ".jsonl", "notes.jsonl", "c" * 64),
    )
    assert plan(there, KEPT) == Listing(
        experiments=("1", "4", "07"),
        windows=("2", "11"),
        steps=("train.4.33", "adopt.4.38"),
        replays=("b" * 64 + ".jsonl",),
    )


@pytest.mark.guarantee("L26", "L27")
def test_a_window_that_is_half_prepared_stays():
    walk = Walk()
    assert walk.step.window in keep(walk.state).windows
    walk.do(prepared)
    assert walk.ahead.window in keep(walk.state).windows
    assert walk.ahead.number in keep(walk.state).experiments, "a step in hand keeps its folder"
    walk.do(trained, nominates=False)
    assert walk.step.window in keep(walk.state).windows


@pytest.mark.guarantee("L27", "K9")
def test_looking_removes_nothing_and_pruning_removes_what_was_looked_at(place):
    walk = Walk()
    live(walk, place, 3)
    found = pruning.look(place, keep(walk.state))
    before = sizes(place)
    assert found
    assert all((place.watch.root / one.path).exists() for one in found)
    done = pruning.prune(place, keep(walk.state))
    assert not any((place.watch.root / one.path).exists() for one in found)
    assert before - sizes(place) == done.freed_bytes == sum(one.size_bytes for one in found)
    again = pruning.prune(place, keep(walk.state))
    assert again == msgspec.structs.replace(done, experiments=0, windows=0, steps=0, freed_bytes=0)


@pytest.mark.guarantee("L27")
def test_pruning_that_was_cut_goes_on(place, monkeypatch):
    live(walk := Walk(), place, 3)
    removed = files.remove_recorded
    calls = []

    def dies(path, root):
        if len(calls) == 2:
            raise LongwatchError("killed")
        calls.append(path)
        removed(path, root)

    monkeypatch.setattr(pruning.files, "remove_recorded", dies)
    with pytest.raises(LongwatchError):
        pruning.prune(place, keep(walk.state))
    monkeypatch.setattr(pruning.files, "remove_recorded", removed)
    pruning.prune(place, keep(walk.state))
    assert pruning.look(place, keep(walk.state)) == ()


@pytest.mark.guarantee("L27", "K9", "K34")
def test_a_link_in_the_place_of_a_folder_is_not_ours(place, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_text("x")
    live(walk := Walk(), place, 4)
    (place.experiments / "1").symlink_to(elsewhere)
    pruning.prune(place, keep(walk.state))
    assert (place.experiments / "1").is_symlink()
    assert (elsewhere / "precious").exists()
