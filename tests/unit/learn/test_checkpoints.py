"""Checkpoints: the newest good one is found whatever happened to the others; a damaged one is set aside and said."""

import json
import os

import msgspec
import pytest
import torch

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.learn import sealed
from longwatch.learn.training import checkpoints
from longwatch.learn.training.checkpoints import Place, Tensors
from longwatch.learn.training.results import Setback

RUN = of_bytes(b"run")


def place(step, setbacks=0):
    bad = tuple(Setback(step=9, why="nan", rate=0.1) for _ in range(setbacks))
    return Place(run=RUN, step=step, micro_tokens=64, first_probe=3.0, probe=0.1 + step, setbacks=bad)


def tensors(value):
    return Tensors(
        adapter={"w": torch.full((4, 4), float(value))},
        optimiser={"w/exp_avg": torch.full((4, 4), value / 3), "w/step": torch.tensor(float(value))},
        random={"cpu": torch.get_rng_state()},
    )


def write(folder, *steps):
    for step in steps:
        checkpoints.save(folder, place(step), tensors(step))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.guarantee("L12")
def test_what_was_saved_comes_back_bit_for_bit(tmp_path):
    checkpoints.save(tmp_path, place(3), tensors(0.1))
    found = checkpoints.newest(tmp_path, RUN)
    assert (found.place, found.lost_steps, found.quarantined) == (place(3), 0, ())
    for kind in ("adapter", "optimiser", "random"):
        expected, actual = getattr(tensors(0.1), kind), getattr(found.tensors, kind)
        assert actual.keys() == expected.keys()
        assert all(torch.equal(actual[name], expected[name]) for name in expected)


def test_nothing_is_found_in_an_empty_folder(tmp_path):
    found = checkpoints.newest(tmp_path, RUN)
    assert (found.place, found.lost_steps, found.quarantined) == (None, 0, ())


@pytest.mark.guarantee("L12")
def test_the_newest_two_are_kept_and_the_later_knowledge_of_a_setback_wins(tmp_path):
    write(tmp_path, 0, 2, 4)
    assert names(tmp_path) == ["step-000002-00", "step-000004-00"]
    checkpoints.save(tmp_path, place(4, setbacks=1), tensors(4))
    assert names(tmp_path) == ["step-000004-00", "step-000004-01"]
    assert checkpoints.newest(tmp_path, RUN).place == place(4, setbacks=1)


@pytest.mark.guarantee("L12")
def test_saving_again_changes_nothing(tmp_path):
    write(tmp_path, 2)
    before = {path: path.stat().st_ino for path in tmp_path.rglob("*")}
    write(tmp_path, 2)
    assert {path: path.stat().st_ino for path in tmp_path.rglob("*")} == before


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def linked(path):
    path.symlink_to(path.rename(path.parent.parent / "moved"))


FILES = [
    *(checkpoints.ADAPTER, checkpoints.OPTIMISER, checkpoints.RANDOM, checkpoints.PLACE),
    *(sealed.MANIFEST, sealed.MARKER),
]


@pytest.mark.guarantee("L12")
@pytest.mark.parametrize("harm", [flip, cut, empty, linked, lambda path: path.unlink()])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_newest_one_is_set_aside_and_the_one_before_is_taken(tmp_path, name, harm):
    write(tmp_path, 20, 40)
    harm(tmp_path / "step-000040-00" / name)
    found = checkpoints.newest(tmp_path, RUN)
    assert (found.place, found.lost_steps) == (place(20), 20)
    assert len(found.quarantined) == 1
    assert "step-000040-00" in found.quarantined[0]
    assert "quarantined-000-step-000040-00" in names(tmp_path)
    # The next write and the next start go on as usual.
    write(tmp_path, 40)
    assert checkpoints.newest(tmp_path, RUN).place == place(40)


@pytest.mark.guarantee("L12")
def test_with_all_damaged_it_begins_anew_and_says_what_is_lost(tmp_path):
    write(tmp_path, 20, 40)
    for name in names(tmp_path):
        (tmp_path / name / sealed.MARKER).unlink()
    found = checkpoints.newest(tmp_path, RUN)
    assert (found.place, found.lost_steps, len(found.quarantined)) == (None, 40, 2)


@pytest.mark.guarantee("L12")
def test_a_file_that_was_added_makes_it_damaged(tmp_path):
    write(tmp_path, 20, 40)
    (tmp_path / "step-000040-00" / "optimizer.pt").write_bytes(b"pickle")
    assert checkpoints.newest(tmp_path, RUN).place == place(20)


@pytest.mark.guarantee("L12")
def test_a_sealed_folder_of_another_program_is_set_aside(tmp_path):
    write(tmp_path, 20)
    sealed.publish(tmp_path / "step-000040-00", {checkpoints.PLACE: json.dumps({"step": 1}).encode()})
    assert checkpoints.newest(tmp_path, RUN).place == place(20)


@pytest.mark.guarantee("L12")
def test_leftovers_of_a_writer_that_died_are_removed(tmp_path):
    write(tmp_path, 20)
    leftover = tmp_path / ".staging-0123456789abcdef"
    leftover.mkdir()
    (leftover / checkpoints.ADAPTER).write_bytes(b"half")
    assert checkpoints.newest(tmp_path, RUN).place == place(20)
    assert not leftover.exists()


@pytest.mark.guarantee("L12")
def test_a_checkpoint_of_another_training_is_refused_and_left_alone(tmp_path):
    write(tmp_path, 20)
    with pytest.raises(IntegrityError, match="another training"):
        checkpoints.newest(tmp_path, of_bytes(b"other"))
    assert names(tmp_path) == ["step-000020-00"]


def test_floats_of_a_place_keep_all_their_bits():
    value = msgspec.structs.replace(place(1), probe=0.1 + 0.2, losses=(1 / 3, 2**-40))
    assert msgspec.json.decode(msgspec.json.encode(value), type=Place) == value
