"""Which rows make a step, how many steps, how fast: pure functions, no state."""

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.learn.settings import Recipe
from longwatch.learn.training.order import effective_batch, planned_steps, rate_at, rows_of_step

SEEDS = st.integers(0, 2**31)
ROWS = st.integers(1, 60)


@pytest.mark.guarantee("L11")
@given(seed=SEEDS, rows=ROWS, batch=st.integers(1, 16), asked=st.lists(st.integers(0, 80), max_size=20))
def test_a_step_has_the_same_rows_whatever_was_asked_before(seed, rows, batch, asked):
    first = {step: rows_of_step(seed, step, rows, batch) for step in asked}
    assert {step: rows_of_step(seed, step, rows, batch) for step in reversed(asked)} == first


@pytest.mark.guarantee("L11")
@given(seed=SEEDS, rows=ROWS, batch=st.integers(1, 16), epoch=st.integers(0, 4))
def test_each_epoch_has_each_row_once(seed, rows, batch, epoch):
    line = [
        row
        for step in range((epoch + 1) * rows // batch + 1)
        for row in rows_of_step(seed, step, rows, batch)
    ]
    assert sorted(line[epoch * rows : (epoch + 1) * rows]) == list(range(rows))


@pytest.mark.guarantee("L11")
def test_epochs_and_seeds_are_shuffled_apart():
    orders = {rows_of_step(seed, epoch, 40, 40) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9
    assert tuple(range(40)) not in orders


@pytest.mark.guarantee("L11")
def test_another_process_has_the_same_order():
    program = (
        "from longwatch.learn.training.order import rows_of_step;"
        "print([rows_of_step(9, step, 17, 4) for step in range(12)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([rows_of_step(9, step, 17, 4) for step in range(12)])
    # Bound for good: a new version of Python or of a library must not change what a checkpoint goes on with.
    assert hashlib.sha256(done.stdout.strip().encode()).hexdigest() == ORDER


ORDER = "789e34b02eafd1da032d5419b75fd2da08cd9a9218d4d1e8958d57e22a0e2c75"


@pytest.mark.guarantee("L11")
@given(rows=st.integers(0, 400), batch=st.integers(1, 64), epochs=st.integers(1, 3), most=st.integers(1, 500))
def test_steps_stay_inside_epochs_and_bound(rows, batch, epochs, most):
    recipe = Recipe(batch=batch, epochs=epochs, max_steps=most)
    steps = planned_steps(recipe, rows)
    assert steps <= most
    assert steps * effective_batch(recipe, rows) <= epochs * rows
    assert (steps >= 1) == (rows >= 1)


@pytest.mark.guarantee("L11")
@given(steps=st.integers(1, 500), peak=st.floats(1e-6, 2e-4))
def test_the_rate_rises_then_falls_and_stays_in_its_bounds(steps, peak):
    rates = [rate_at(step, steps, peak) for step in range(steps)]
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
    assert max(rates) <= peak * (1 + 1e-12)
