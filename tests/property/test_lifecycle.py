"""The lifecycle under any order of events and requests."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel import control
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.lifecycle import DRAINING, HELD, TABLE, Desired, Event, Lifecycle, Phase, move
from longwatch.kernel.request import Request, Verb

EVENTS = st.lists(st.sampled_from(Event), max_size=60)
REQUESTS = st.builds(Request, verb=st.sampled_from(Verb), accept=st.booleans(), after_step=st.booleans())
MOVES = st.lists(st.sampled_from(Event) | REQUESTS, max_size=60)
LIVES = st.builds(Lifecycle, phase=st.sampled_from(Phase), reason=st.text(max_size=5))


def attempt(life: Lifecycle, event: Event) -> Lifecycle:
    try:
        return move(life, event)
    except RefusedError:
        return life


def obey(life: Lifecycle, seq: int, request: Request) -> Lifecycle:
    try:
        moved = move(life, control.event_of(request, life.phase))
    except RefusedError:
        return msgspec.structs.replace(life, obeyed=seq)
    return control.obeyed(moved, seq, request)


@pytest.mark.guarantee("K12")
@given(LIVES, EVENTS)
def test_every_move_is_an_edge_and_a_refused_one_changes_nothing(life, events):
    for event in events:
        after = attempt(life, event)
        edge = TABLE.get((life.phase, event))
        assert after.phase is (edge.to if edge else life.phase)
        if edge is None:
            assert after == life
        life = after


@pytest.mark.guarantee("K12")
@given(LIVES, EVENTS)
def test_a_draining_watch_starts_nothing_before_it_drained(life, events):
    for event in events:
        after = attempt(life, event)
        if life.phase in DRAINING:
            assert after.phase not in {Phase.RUNNING, Phase.IDLE, Phase.WAITING}
        life = after


@pytest.mark.guarantee("K13")
@given(LIVES, MOVES)
def test_a_held_watch_is_left_by_accept_alone(life, moves):
    for seq, step in enumerate(moves, life.obeyed + 1):
        after = obey(life, seq, step) if isinstance(step, Request) else attempt(life, step)
        if life.phase in HELD and after.phase is not life.phase:
            accepted = step.verb is Verb.RESUME and step.accept if isinstance(step, Request) else False
            assert accepted or step is Event.ACCEPT
            assert after.phase is Phase.IDLE
        life = after


@pytest.mark.guarantee("K11", "K12")
@given(LIVES.filter(lambda life: life.phase not in HELD), st.lists(REQUESTS, min_size=1, max_size=12))
def test_the_newest_request_that_was_not_refused_decides(life, requests):
    for seq, request in enumerate(requests, 1):
        before = life
        life = obey(life, seq, request)
        assert life.obeyed == seq
        resumes_while_draining = request.verb is Verb.RESUME and before.phase in DRAINING
        assert resumes_while_draining or life.desired is control.obeyed(before, seq, request).desired
    settled = attempt(life, Event.DRAINED) if life.phase in DRAINING else life
    if any(request.verb is not Verb.RESUME for request in requests):
        ends = {Desired.PAUSE: {Phase.PAUSED}, Desired.STOP: {Phase.STOPPED}}
        assert settled.phase in ends.get(settled.desired, set(Phase) - {Phase.PAUSED, Phase.STOPPED})
    life = settled


@pytest.mark.guarantee("K13")
@given(LIVES, st.integers(1, 99))
def test_resume_forgets_failures_and_waits(life, failures):
    failing = msgspec.structs.replace(life, failures=failures)
    after = obey(failing, 1, Request(verb=Verb.RESUME, accept=True))
    if (after.desired, life.phase in DRAINING) == (Desired.RUN, False):
        assert (after.failures, after.wait) == (0, None)
