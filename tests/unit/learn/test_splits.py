from collections import Counter

import pytest
from curricula import generated, task

from longwatch.kernel.errors import IntegrityError
from longwatch.learn import splits
from longwatch.learn.tasks import Language, Split


def test_a_side_never_changes():
    assert [splits.side_of(f"mbpp.{number}").value for number in (1, 2, 3, 511, 512, 974)] == [
        "train", "train", "train", "train", "sealed", "confirm",
    ]  # fmt: skip


def test_shares_are_kept():
    shares = Counter(splits.side_of(f"problem {number}") for number in range(20_000))
    wanted = {Split.TRAIN: 0.50, Split.DEV: 0.15, Split.CONFIRM: 0.23, Split.SEALED: 0.12}
    assert {split: round(count / 20_000, 2) for split, count in shares.items()} == pytest.approx(
        wanted, abs=0.015
    )


@pytest.mark.guarantee("L4")
@pytest.mark.parametrize("kind", ["problem", "repository"])
def test_two_sides_are_refused_and_named(kind):
    one = task("a", **{kind: "shared"})
    other = task("b", Split.CONFIRM, **{kind: "shared"})
    with pytest.raises(
        IntegrityError, match=f"{kind} 'shared' is on two sides: 'a' is train and 'b' is confirm"
    ):
        splits.check([one, task("c"), other])


@pytest.mark.guarantee("L6")
def test_a_draw_is_balanced_by_language_and_family():
    tasks = generated(360)
    drawn = splits.draw(tasks, 240, seed=3)
    assert set(Counter((one.language, one.family) for one in drawn).values()) == {10}


@pytest.mark.guarantee("L6")
def test_a_small_family_gives_all_it_has_and_the_others_the_rest():
    tasks = [task(f"a{n}", family="a") for n in range(3)] + [task(f"b{n}", family="b") for n in range(50)]
    counts = Counter(one.family for one in splits.draw(tasks, 20, seed=1))
    assert counts == {"a": 3, "b": 17}


def test_a_problem_is_drawn_once_in_each_language():
    tasks = [task(f"p{n % 4}-{n}", problem=f"p{n % 4}", language=one) for n in range(12) for one in Language]
    tasks = [task(f"{one.id}-{one.language}", problem=one.problem, language=one.language) for one in tasks]
    drawn = splits.draw(tasks, 100, seed=1)
    assert max(Counter((one.problem, one.language) for one in drawn).values()) == 1
    assert len(drawn) == 4 * len(Language)


@pytest.mark.guarantee("L6")
def test_seeds_draw_differently_and_each_always_the_same():
    tasks = generated(100)
    assert splits.draw(tasks, 30, 1) != splits.draw(tasks, 30, 2)
    assert splits.draw(tasks, 30, 1) == splits.draw(tasks[::-1], 30, 1)
