"""Text for people: columns, durations, zones, and nothing that a terminal obeys."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.journal import Event
from longwatch.observe import render
from longwatch.observe.status import Status, StepStatus, Supervising

NOON = "2026-07-01T12:00:00.000000Z"


def status(**changed) -> Status:
    values = {
        "watch": "/w",
        "kind": "migrate",
        "phase": "waiting",
        "desired": "run",
        "reason": "transient: overloaded",
        "next_retry_s": 90.0,
        "failures": 2,
        "active_s": 3700.0,
        "generation": 1,
        "events": 5,
        "pending_requests": ("pause",),
        "supervisor": Supervising(pid=7, host="h", since=NOON, alive=True),
        "steps": (
            StepStatus(
                id="a.1", active_s=65.0, phase="worker", text="t", done=1, total=3, idle_s=4, left_s=130.0
            ),
        ),
        "summary": (("jobs", "3: 2 done"),),
        "exit_code": None,
    }
    return Status(**(values | changed))


def shown(seen: Status, *events: Event) -> str:
    return render.status_text(seen, events, datetime(2026, 7, 1, 12, 0, 0, tzinfo=UTC))


@pytest.mark.guarantee("K37")
@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "2026-07-01 12:00:00 UTC"),
        ("Europe/Berlin", "2026-07-01 14:00:00 CEST"),
        ("Asia/Kolkata", "2026-07-01 17:30:00 IST"),
    ],
)
def test_stored_times_are_shown_in_the_configured_zone(zone, told):
    assert render.stamped(NOON, zone) == told
    event = Event(seq=1, at=NOON, generation=1, kind="job.done", text="x")
    text = shown(status(zone=zone), event)
    assert text.count(told) == 1
    assert f"last events ({told[-4:].strip()}):\n  {told[5:19]}  x" in text


@pytest.mark.guarantee("K37")
def test_the_next_retry_is_a_time_in_the_zone():
    assert "in 1 min 30 s, at 2026-07-01 14:01:30 CEST" in shown(status(zone="Europe/Berlin"))


@pytest.mark.guarantee("K26")
def test_what_was_parked_is_shown():
    assert "parked" not in shown(status())
    assert "2 h 05 min in all, for usage limits" in shown(status(parked_s=7500.0))


@pytest.mark.guarantee("K12", "K21")
def test_the_status_shows_all_that_matters():
    text = shown(status())
    for told in ("transient: overloaded", "process 7 on h", "pause (not obeyed yet)", "3: 2 done"):
        assert told in text
    assert "a.1: worker t [#####...........] 1/3 (1 min 05 s, idle 4.0 s, about 2 min 10 s to go)" in text
    assert "2 in a row" in text


@pytest.mark.guarantee("K3")
def test_a_dead_supervisor_is_called_the_last_one():
    gone = Supervising(pid=7, host="h", since=NOON, alive=False)
    assert "none; the last was process 7" in shown(status(supervisor=gone))
    assert "none so far" in shown(status(supervisor=None))


@given(reason=st.text(max_size=60))
def test_no_text_of_a_worker_reaches_the_terminal_as_a_command(reason):
    text = shown(status(reason=reason), Event(seq=1, at=NOON, generation=1, kind="k", text=reason))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.split("\n")) == len(
        shown(status(), Event(seq=1, at=NOON, generation=1, kind="k", text="")).split("\n")
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0.0 s"),
        (9.96, "10.0 s"),
        (59.4, "59 s"),
        (59.7, "60 s"),
        (60, "1 min 00 s"),
        (3599.9, "1 h 00 min"),
        (90061, "1 d 01 h"),
    ],
)
def test_durations_have_their_two_largest_units(seconds, told):
    assert render.duration(seconds) == told


def test_columns_are_aligned_and_numbers_stand_right():
    assert (
        render.table([("a", "1", "x"), ("bbb", "22", "y")], right=frozenset({1})) == "a     1  x\nbbb  22  y"
    )
    assert render.table([]) == ""
