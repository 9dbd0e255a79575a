"""How much of the machine a preparation takes: little while the student is busy."""

import os
import threading
from pathlib import Path

import pytest
from teaching import task

from longwatch.kernel.watch import Watch
from longwatch.learn import preparing
from longwatch.learn.grading.place import HERE
from longwatch.learn.grading.screening import Finding, Screened
from longwatch.learn.place import Place
from longwatch.learn.readiness import turns
from longwatch.learn.settings import LearnSettings, Readiness
from longwatch.learn.stages import StoppedError
from longwatch.learn.steps import Prepare

BESIDE = Prepare(id="prepare.2.1", number=2, window=2, start_row=0, beside=True)
OWN = Prepare(id="prepare.1.1", number=1, window=1, start_row=0)


class Working:
    """A step's work that is stopped after so many looks."""

    def __init__(self, looks=1000):
        self.looks = looks

    def should_stop(self):
        self.looks -= 1
        return self.looks < 0


def place(*, one_watch=True):
    return Place(
        Watch(Path("/nowhere")), LearnSettings(kind="learn", readiness=Readiness(one_watch=one_watch))
    )


@pytest.fixture
def most(monkeypatch):
    """Validates nothing, and tells how many were validated at once."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    lock, seen, now = threading.Lock(), [], [0]

    def screen(one, *, where):
        with lock:
            now[0] += 1
            seen.append(now[0])
        threading.Event().wait(0.002)
        with lock:
            now[0] -= 1
        return Screened(task=one.id, finding=Finding.USABLE)

    monkeypatch.setattr(preparing, "screen", screen)
    return seen


def screened(step, where, looks=1000):
    tasks = [task(f"t{n}") for n in range(24)]
    found = list(preparing._screened(Working(looks), tasks, lambda: preparing._at_once(step, where), HERE))
    assert [one.task for one in found] == [one.id for one in tasks], "all of them, in their order"


@pytest.mark.guarantee("L3")
def test_one_at_a_time_while_the_student_is_busy_and_all_cores_when_it_is_not(monkeypatch, most):
    busy = [True]
    monkeypatch.setattr(turns, "taken", lambda _lock: object() if busy[0] else None)
    screened(BESIDE, place())
    assert max(most) == 1
    busy[0] = False
    screened(BESIDE, place())
    assert 1 < max(most) <= 4
    most.clear()
    busy[0] = True
    screened(OWN, place())
    assert 1 < max(most) <= 4, "what everything waits for takes what there is"


@pytest.mark.guarantee("L3")
def test_where_watches_do_not_take_turns_nobody_knows_whether_the_student_is_busy(monkeypatch, most):
    monkeypatch.setattr(turns, "taken", lambda _lock: None)
    screened(BESIDE, place(one_watch=False))
    assert max(most) == 1


@pytest.mark.guarantee("L3", "L14")
def test_a_stop_is_obeyed_after_the_task_in_hand(monkeypatch, most):
    monkeypatch.setattr(turns, "taken", lambda _lock: object())
    with pytest.raises(StoppedError):
        screened(BESIDE, place(), looks=3)
    assert len(most) <= 5
