"""Time that only the event log knows: waits by their cause, and stretches without a supervisor."""

import json

import msgspec
import pytest
from tests.support import toy, watches

from longwatch.kernel.clock import stamp
from longwatch.kernel.journal import Event
from longwatch.kernel.timing import Span
from longwatch.observe import reports, timings

BEGIN_S = 1_700_000_000


def log(*entries) -> tuple[Event, ...]:
    return tuple(
        Event(seq=n, at=stamp(BEGIN_S + at), generation=1, kind=kind, text=kind, data=data)
        for n, (at, kind, data) in enumerate(entries, 1)
    )


def spans(*entries, until=1000):
    found = timings.supervisor_spans(log(*entries), stamp(BEGIN_S + until))
    return [(span.phase, span.duration_s) for span in found]


@pytest.mark.guarantee("K36", "M36")
@pytest.mark.parametrize(
    ("failure", "phase"),
    [
        ({"class": "fault", "retry_in_s": 30}, "back-off"),
        ({"class": "transient", "retry_in_s": 30}, "provider wait"),
        ({"class": "quota", "retry_in_s": 30}, "provider wait"),
    ],
)
def test_a_wait_is_told_by_its_cause(failure, phase):
    assert spans(
        (0, "step.failed", failure), (1, "watch.waiting", {}), (31, "watch.due", {}), (32, "step.started", {})
    ) == [(phase, 30)]


@pytest.mark.guarantee("K36")
def test_a_wait_without_a_failure_is_no_back_off():
    failed = (0, "step.failed", {"class": "fault", "retry_in_s": 1})
    told = spans(
        failed,
        (1, "watch.waiting", {}),
        (2, "watch.due", {}),
        (5, "watch.waiting", {}),
        (9, "request.obeyed", {"verb": "pause"}),
    )
    assert told == [("back-off", 1), ("waiting", 4)]


@pytest.mark.guarantee("K36")
def test_a_wait_that_is_still_open_counts_until_now():
    assert spans((10, "watch.waiting", {}), until=70) == [("waiting", 60)]


@pytest.mark.guarantee("K36")
def test_the_time_after_a_killed_supervisor_belongs_to_nobody():
    assert spans((0, "supervisor.began", {}), (5, "step.started", {}), (65, "supervisor.began", {})) == [
        ("no supervisor", 60)
    ]


@pytest.mark.guarantee("K36")
def test_a_real_run_leaves_steps_a_wall_time_and_the_rest(tmp_path):
    watch = toy.make(tmp_path, (toy.step("long", sleep_s=0.3), toy.step("bad", "transient")))
    line = toy.ToyLine(watch.root)
    toy.supervisor(watch, line).run(max_cycles=2)
    seen = timings.read(watch)
    assert seen.table.wall_s > 0.3
    assert {step.id.split(".")[0] for step in seen.steps} == {"long", "bad"}
    assert max(step.active_s for step in seen.steps) >= 0.3
    assert seen.table.accounted_s + seen.table.unaccounted_s == pytest.approx(seen.table.wall_s)
    assert json.loads(msgspec.json.encode(seen))["table"]["wall_s"] == seen.table.wall_s


@pytest.mark.guarantee("M36")
def test_the_first_action_of_each_attempt_is_shown():
    events = log((0, "worker.first_action", {"step": "greeting.1", "after_s": 2.5}), (1, "job.done", {}))
    assert [(one.step, one.seconds) for one in timings.first_actions(events)] == [("greeting.1", 2.5)]


def span(phase, at, seconds):
    return Span(phase=phase, started_at=stamp(BEGIN_S + at), duration_s=seconds)


@pytest.mark.guarantee("M36")
def test_each_attempt_has_a_trace_over_all_its_steps_in_both_forms_and_for_handoffs():
    steps = [
        timings.StepTime(id=name, active_s=seconds)
        for name, seconds in (
            ("survey.0", 1.0),
            ("greeting.1.attempt.1", 9.0),
            ("greeting.1.verify.2", 4.0),
            ("shapes.cube.2.attempt.3", 2.0),
            ("shapes.handoff.1.attempt.4", 3.0),
            ("shapes.handoff.1.commit.5", 0.5),
        )
    ]
    measured = [
        ("survey.0", span("survey", 0, 1)),
        ("greeting.1.attempt.1", span("prepare", 1, 0.5)),
        ("greeting.1.attempt.1", span("worker", 2, 8)),
        ("greeting.1.verify.2", span("digest", 11, 0.25)),
        ("greeting.1.verify.2", span("check:test", 12, 3)),
        ("greeting.1.verify.2", span("digest", 15, 0.25)),
        ("shapes.handoff.1.attempt.4", span("handoff", 20, 2)),
        ("shapes.handoff.1.commit.5", span("git", 25, 0.5)),
    ]
    acted = [timings.Latency(step="greeting.1.attempt.1", phase="worker", seconds=2.5)]
    charged = {"job": "shapes.cube", "attempt": 2, "tokens": 1200, "usd": 2.5}
    costs = timings.costs(log((0, "attempt.charged", charged | {"tokens_known": True, "usd_known": False})))
    greeting, cube, handoff = timings.traces(steps, measured, acted, costs)
    assert (greeting.attempt, greeting.active_s, greeting.first_action_s) == ("greeting.1", 13.0, 2.5)
    assert greeting.since == stamp(BEGIN_S + 1)
    assert [(one.phase, one.seconds) for one in greeting.phases] == [
        ("prepare", 0.5),
        ("worker", 8),
        ("digest", 0.5),
        ("check:test", 3),
    ]
    assert (cube.attempt, cube.since, cube.first_action_s, cube.phases) == ("shapes.cube.2", "", None, ())
    assert cube.cost == timings.Cost(tokens=1200, usd=2.5, tokens_known=True, usd_known=False)
    assert greeting.cost is None
    assert reports._trace_row(cube)[:5] == ("shapes.cube.2", "2.0 s", "", "1,200", "2.50?")
    assert (handoff.attempt, handoff.active_s) == ("shapes.handoff.1", 3.5)
    assert [one.phase for one in handoff.phases] == ["handoff", "git"]


@pytest.mark.guarantee("M36")
def test_the_table_separates_what_the_time_was_for():
    events = log(
        (0, "supervisor.began", {}),
        (60, "step.failed", {"class": "transient", "retry_in_s": 30}),
        (60, "watch.waiting", {}),
        (90, "watch.due", {}),
        (90, "step.failed", {"class": "fault", "retry_in_s": 5}),
        (90, "watch.waiting", {}),
        (95, "watch.due", {}),
        (100, "job.done", {}),
    )
    measured = (
        span("worker", 0, 20),
        span("check:test", 20, 10),
        span("check:lint", 30, 5),
        span("digest", 35, 2),
        span("sign", 37, 1),
        span("checkout", 40, 3),
        span("git", 43, 2),
        span("push", 45, 1),
        span("handoff", 50, 4),
        span("survey", 55, 1),
    )
    every = (*measured, *timings.supervisor_spans(events, stamp(BEGIN_S + 100)))
    found = {one.phase: one.total_s for one in timings.by_purpose(every, 100.0)}
    assert found == {
        "model work": 20,
        "validation": 15,
        "hashing": 3,
        "git": 6,
        "generators": 4,
        "queue": 1,
        "provider wait": 30,
        "back-off": 5,
    }


@pytest.mark.guarantee("K10", "K36", "M36")
def test_the_command_prints_a_table_and_json(tmp_path):
    watch = watches.migrate(tmp_path / "repo")
    assert "No supervisor has run yet" in watches.longwatch(watch.root, "timings").stdout
    watches.verified(watch)
    text = watches.longwatch(watch.root, "timings").stdout
    assert "(unaccounted)" in text
    assert "greeting.1.verify.1" in text
    assert "attempts:" in text
    told = json.loads(watches.longwatch(watch.root, "timings", "--json").stdout)
    assert told["steps"][0]["active_s"] == 1.0
    assert [(one["attempt"], one["active_s"]) for one in told["traces"]] == [("greeting.1", 1.0)]
