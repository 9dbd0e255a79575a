"""The table of phases and events, read as data."""

import pytest

from longwatch.kernel.errors import ExitCode, RefusedError
from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.lifecycle import (
    DRAINING,
    EDGES,
    EXIT_CODES,
    HELD,
    KEEPS_WAIT,
    TABLE,
    VERDICT_EVENTS,
    Event,
    Lifecycle,
    Phase,
    Verdict,
    move,
)

START = Instant(wall_s=1e9, boottime_s=50.0, monotonic_s=40.0, boot_id="one")
BY_A_PERSON = frozenset({Event.ACCEPT, Event.RESUME})


def reachable(start: Phase, events: frozenset[Event]) -> set[Phase]:
    found, fresh = {start}, [start]
    while fresh:
        phase = fresh.pop()
        for edge in EDGES:
            if edge.phase is phase and edge.event in events and edge.to not in found:
                found.add(edge.to)
                fresh.append(edge.to)
    return found


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.phase}-{edge.event}")
def test_every_edge_has_a_name_and_a_sentence(edge):
    assert edge.name == edge.name.strip().lower() != ""
    assert edge.sentence[0].isupper()
    assert edge.sentence.endswith(".")


def test_no_edge_stands_twice_and_every_phase_and_event_is_used():
    assert len(TABLE) == len(EDGES)
    assert {edge.phase for edge in EDGES} == set(Phase)
    assert {edge.to for edge in EDGES} == set(Phase)
    assert {edge.event for edge in EDGES} == set(Event)


@pytest.mark.guarantee("K12", "K13")
@pytest.mark.parametrize("phase", Phase)
def test_no_phase_is_a_trap_and_held_ones_are_left_by_a_word_alone(phase):
    assert Phase.RUNNING in reachable(phase, frozenset(Event))
    without_a_word = reachable(phase, frozenset(Event) - {Event.ACCEPT})
    assert (Phase.RUNNING in without_a_word) == (phase not in HELD)


@pytest.mark.guarantee("K13")
@pytest.mark.parametrize("phase", sorted(HELD))
def test_what_leads_out_of_a_held_phase(phase):
    out = {edge.event for edge in EDGES if edge.phase is phase and edge.to is not phase}
    assert out == {Event.ACCEPT}


@pytest.mark.guarantee("K27")
def test_a_paused_or_stopped_watch_never_wakes_by_itself():
    assert reachable(Phase.PAUSED, frozenset(Event) - BY_A_PERSON - {Event.STOP}) == {Phase.PAUSED}
    by_itself = frozenset(Event) - BY_A_PERSON - {Event.PAUSE, Event.BEGIN}
    assert reachable(Phase.STOPPED, by_itself) == {Phase.STOPPED}


@pytest.mark.guarantee("K12")
def test_work_begins_only_where_it_may():
    assert {edge.phase for edge in EDGES if edge.event is Event.STARTED} == {Phase.IDLE, Phase.RUNNING}
    assert {edge.to for edge in EDGES if edge.event is Event.STARTED} == {Phase.RUNNING}


@pytest.mark.guarantee("K12")
def test_paused_and_stopped_are_reached_from_running_only_through_draining():
    settled = {Phase.PAUSED, Phase.STOPPED, Phase.COMPLETE}
    assert not [edge for edge in EDGES if edge.phase is Phase.RUNNING and edge.to in settled]
    drained = {(edge.phase, edge.to) for edge in EDGES if edge.event is Event.DRAINED}
    assert drained == {
        (Phase.RUNNING, Phase.IDLE),
        (Phase.PAUSING, Phase.PAUSED),
        (Phase.STOPPING, Phase.STOPPED),
    }


@pytest.mark.guarantee("K11", "K27")
@pytest.mark.parametrize(
    ("event", "to"),
    [(Event.PAUSE, Phase.PAUSED), (Event.STOP, Phase.STOPPED), (Event.RESUME, Phase.IDLE)],
)
def test_a_request_cuts_a_wait_at_once(event, to):
    waiting = Lifecycle(phase=Phase.WAITING, wait=Deadline(since=START, delay_s=900.0), reason="overload")
    after = move(waiting, event, "requested")
    assert (after.phase, after.wait, after.reason) == (to, None, "requested")


@pytest.mark.guarantee("K27")
@pytest.mark.parametrize("event", [Event.BEGIN, Event.DRAINED, Event.STARTED, Event.WAIT, Event.HALT])
def test_what_is_no_request_leaves_a_deadline_standing(event):
    assert event in KEEPS_WAIT
    wait = Deadline(since=START, delay_s=900.0)
    phase = next(edge.phase for edge in EDGES if edge.event is event)
    assert move(Lifecycle(phase=phase, wait=wait), event).wait == wait


def test_a_reason_stays_until_the_phase_changes_or_a_newer_one_comes():
    blocked = Lifecycle(phase=Phase.BLOCKED, reason="a digest differs")
    assert move(blocked, Event.BEGIN).reason == "a digest differs"
    assert move(blocked, Event.ACCEPT).reason == ""
    assert move(blocked, Event.ACCEPT, "resume requested").reason == "resume requested"


@pytest.mark.guarantee("K13")
def test_a_refusal_says_what_is_possible():
    with pytest.raises(RefusedError, match=r"blocked \(a digest differs\).*resume --accept"):
        move(Lifecycle(phase=Phase.BLOCKED, reason="a digest differs"), Event.RESUME)
    for phase in DRAINING:
        with pytest.raises(RefusedError, match="a child of the previous run still lives"):
            move(Lifecycle(phase=phase), Event.RESUME)
    with pytest.raises(RefusedError, match="'started' is not possible now"):
        move(Lifecycle(phase=Phase.PAUSED), Event.STARTED)


@pytest.mark.guarantee("K15")
def test_exit_codes_are_what_service_units_rely_on():
    assert EXIT_CODES == {
        Phase.PAUSED: ExitCode.OK,
        Phase.STOPPED: ExitCode.OK,
        Phase.COMPLETE: ExitCode.OK,
        Phase.BLOCKED: ExitCode.BLOCKED,
        Phase.NEEDS_RECONCILE: ExitCode.NEEDS_RECONCILE,
        Phase.EXHAUSTED: ExitCode.EXHAUSTED,
    }
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 75]


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_ends_an_idle_watch(verdict):
    assert move(Lifecycle(), VERDICT_EVENTS[verdict], "why").phase.value == verdict.value


@pytest.mark.parametrize("phase", [Phase.RUNNING, *sorted(DRAINING)])
def test_every_halt_can_end_a_draining_watch(phase):
    for verdict in set(Verdict) - {Verdict.COMPLETE}:
        assert (phase, VERDICT_EVENTS[verdict]) in TABLE
