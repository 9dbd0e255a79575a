import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longwatch.kernel.errors import IntegrityError
from longwatch.learn import splits
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.curriculum.order import Rounds
from longwatch.learn.curriculum.render import build
from longwatch.learn.tasks import Language, Split

seeds = st.integers(min_value=0, max_value=2**63)
rows = st.integers(min_value=0, max_value=10**9)
TASKS = [
    task for row in Generated(1, (Language.PYTHON, Language.JAVASCRIPT)).rows(0, 120) for task in row.tasks
]


@pytest.mark.guarantee("L1")
@settings(max_examples=60, deadline=None)
@given(seed=seeds, row=rows)
def test_any_row_of_any_seed_is_there_and_always_the_same(seed, row):
    first, second = (
        list(Generated(seed, levels=(1,), families=("lists",)).rows(row, row + 1)) for _ in range(2)
    )
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert first[0].tasks or first[0].left_out


@settings(max_examples=200, deadline=None)
@given(sizes=st.lists(st.integers(min_value=1, max_value=30), min_size=1, max_size=12))
def test_rounds_visit_each_member_as_often_as_it_is_large(sizes):
    rounds = Rounds(sizes)
    visits = [rounds.at(place) for place in range(rounds.total)]
    assert len(set(visits)) == rounds.total == sum(sizes)
    assert visits == sorted(visits)
    for turn, rank in visits:
        assert rank < sum(size > turn for size in sizes)


@pytest.mark.guarantee("L6")
@settings(max_examples=60, deadline=None)
@given(seed=seeds, count=st.integers(min_value=0, max_value=300), order=st.randoms(use_true_random=False))
def test_a_draw_depends_on_the_seed_and_not_on_the_order(seed, count, order):
    shuffled = TASKS[:]
    order.shuffle(shuffled)
    drawn = splits.draw(TASKS, count, seed)
    assert drawn == splits.draw(shuffled, count, seed)
    assert len(drawn) == min(count, len(TASKS))
    assert len({task.id for task in drawn}) == len(drawn)
    assert {task.id for task in splits.draw(TASKS, max(0, count - 5), seed)} <= {task.id for task in drawn}


@pytest.mark.guarantee("L4")
@settings(max_examples=60, deadline=None)
@given(place=st.integers(min_value=0, max_value=len(TASKS) - 1), side=st.sampled_from([*Split]))
def test_one_task_on_another_side_is_always_seen(place, side):
    moved = msgspec.structs.replace(TASKS[place], split=side)
    tasks = [*TASKS[:place], moved, *TASKS[place + 1 :]]
    if side is TASKS[place].split:
        splits.check(tasks)
    else:
        with pytest.raises(IntegrityError, match="on two sides"):
            splits.check(tasks)


@settings(max_examples=40, deadline=None)
@given(row=rows, chance=st.randoms(use_true_random=False))
def test_expected_values_survive_plain_data(row, chance):
    template, number = Generated(1).walk.at(row)
    built = build(template, number, chance)
    if built is not None:
        assert msgspec.json.decode(msgspec.json.encode(built[1]), type=type(built[1])) is not None
        assert all(
            msgspec.json.decode(msgspec.json.encode(case.expected)) == case.expected for case in built[1]
        )
