"""The time of steps is watched: slow-downs and silence."""

import threading

import pytest

from longwatch.learn.training.watchdog import HISTORY, STALL_S, Pace, Watchdog, stalled


@pytest.mark.guarantee("L12")
@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (3.9, False), (4.1, True), (20.0, True)])
def test_a_fourfold_slow_down_for_each_token_is_news(factor, told):
    pace = Pace()
    for _ in range(HISTORY):
        assert pace.slow_down(100.0, 10) is None, "nothing to compare with yet"
        pace = pace.with_step(1.0, 100)
    assert (pace.slow_down(2.0 * factor, 200) is not None) is told
    assert pace.slow_down(8.0, 800) is None, "more tokens may take longer"


@pytest.mark.guarantee("L12")
def test_slow_steps_do_not_become_the_measure_of_slow_steps():
    pace = Pace()
    for step in range(50):
        pace = pace.with_step(1.0 if step < HISTORY else 100.0, 100)
    assert pace.slow_down(100.0, 100) == pytest.approx(100.0)


@pytest.mark.guarantee("L12")
def test_silence_is_a_stall_only_when_it_is_long_in_both_measures():
    assert not stalled(STALL_S - 1, 1.0)
    assert stalled(STALL_S, 1.0)
    assert not stalled(STALL_S, 60.0)
    assert stalled(1200.0, 60.0)


@pytest.mark.guarantee("L12")
def test_each_silence_is_told_once_and_a_beat_ends_it():
    told, called = [], threading.Event()
    silent = threading.Event()
    silent.set()

    def on_stall(silent_s):
        told.append(silent_s)
        called.set()

    looks = threading.Semaphore(0)

    def judge(silent_s, usual_s):
        looks.release()
        return silent.is_set()

    with Watchdog(on_stall, look_s=0.001, judge=judge) as watchdog:
        assert called.wait(60)
        called.clear()
        silent.clear()
        watchdog.beat()
        for _ in range(20):
            assert looks.acquire(timeout=60)
        assert len(told) == 1
        silent.set()
        assert called.wait(60)
    assert len(told) == 2
