"""What the migrate line decides of a queue in pointer form. Pure: states, surveys and outcomes as values."""

from pathlib import Path

import msgspec
import pytest

from longwatch.kernel.errors import RefusedError
from longwatch.kernel.instant import Instant
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.line import Decision, Finish, Start, Succeeded
from longwatch.migrate.line import MigrateLine
from longwatch.migrate.settings import Budget, MigrateSettings, Repository, WorkerSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import (
    Attempt,
    Candidate,
    CardRef,
    Commit,
    Committed,
    Evidence,
    Handoff,
    MigrateStep,
    Survey,
    Surveyed,
    Verified,
    Verify,
    Worked,
)

NOW = Instant(wall_s=1.0e9, boottime_s=100.0, monotonic_s=100.0, boot_id="b")
SETTINGS = MigrateSettings(
    kind="migrate",
    repository=Repository(branch="main"),
    worker=WorkerSettings(adapter="replay"),
    budget=Budget(tokens=10, tokens_per_attempt=5),
)
LINE = MigrateLine(SETTINGS, Path("/watch"))
CARDS = (
    CardRef(id="t.a", title="A", digest="1"),
    CardRef(id="t.handoff", title="Hand off t", digest="2", after=("t.a",), finishes="t"),
)
DONE = Job(status=Status.DONE, number=1, card="1", receipt="r", commit="h", paths=("a",), units=("cube",))


def state(survey: Surveyed, **changed: object) -> MigrateState:
    given = {"survey": survey, "surveyed_at": NOW, "head": "h", "task": "t", **changed}
    return MigrateState(**given)  # type: ignore[arg-type]


def decided(found: MigrateState) -> Decision[MigrateStep]:
    return LINE.decide(found, {}, NOW)


def step(found: MigrateState) -> MigrateStep:
    decision = decided(found)
    assert isinstance(decision, Start), decision
    return decision.steps[0]


def after(
    found: MigrateState, done: MigrateStep, evidence: Evidence | Surveyed
) -> tuple[MigrateState, list[str]]:
    moved, notes = LINE.apply(found, done, Succeeded(msgspec.Raw(msgspec.json.encode(evidence))), NOW)
    return moved, [note.kind for note in notes]


@pytest.mark.guarantee("M4", "M32")
def test_a_task_is_handed_off_when_all_its_receipts_hold_and_not_before() -> None:
    survey = Surveyed(head="h", cards=CARDS, task="t")
    assert isinstance(step(state(survey)), Attempt)
    handoff = step(state(survey, jobs={"t.a": DONE}))
    assert isinstance(handoff, Handoff)
    assert (handoff.task, [one.units for one in handoff.done]) == ("t", [("cube",)])
    again = step(
        state(msgspec.structs.replace(survey, stale=(("t.a", "its source drifted"),)), jobs={"t.a": DONE})
    )
    assert isinstance(again, Attempt)
    assert again.job == "t.a"


@pytest.mark.guarantee("M32", "M11")
def test_a_handoff_needs_no_budget() -> None:
    survey = Surveyed(head="h", cards=CARDS, task="t")
    ended = decided(state(survey, tokens=10))
    assert isinstance(ended, Finish)
    assert ended.verdict is Verdict.EXHAUSTED
    assert isinstance(step(state(survey, jobs={"t.a": DONE}, tokens=10)), Handoff)


@pytest.mark.guarantee("M32")
def test_a_handoff_goes_the_way_of_every_change_and_says_to_whom() -> None:
    found = state(Surveyed(head="h", cards=CARDS, task="t"), jobs={"t.a": DONE})
    candidate = Candidate(
        attempt="t.handoff.1",
        number=1,
        nonce="n",
        baseline="h",
        commit="c",
        tree="t",
        paths=("q",),
        summary="s",
    )
    found, said = after(found, step(found), Worked(candidate=candidate))
    assert said == ["handoff.generated"]
    verify = step(found)
    assert isinstance(verify, Verify)
    found, _ = after(found, verify, Verified(receipt="r2", checks=("x",), handed_to="u"))
    commit = step(found)
    assert isinstance(commit, Commit)
    found, said = after(found, commit, Committed(commit="d"))
    assert said == ["job.committed", "job.done", "task.handed_off"]
    assert found.jobs["t.handoff"].status is Status.DONE


@pytest.mark.guarantee("M32", "M34")
def test_the_end_of_the_queue_is_complete_only_if_every_unit_is_proved() -> None:
    end = Surveyed(head="h", ended=True)
    proved = decided(state(end))
    assert isinstance(proved, Finish)
    assert proved.verdict is Verdict.COMPLETE
    planning = decided(state(msgspec.structs.replace(end, planning="2 unverified: a, b")))
    assert isinstance(planning, Finish)
    assert planning.verdict is Verdict.BLOCKED
    assert planning.reason == "planning_required: 2 unverified: a, b"


@pytest.mark.guarantee("M5")
def test_the_task_that_was_current_is_remembered_over_a_survey_that_blocks() -> None:
    look = step(msgspec.structs.replace(state(Surveyed()), surveyed_at=None))
    assert isinstance(look, Survey)
    assert look.task == "t"
    blocked, _ = after(state(Surveyed()), look, Surveyed(problem="the queue moved from t to u"))
    assert blocked.task == "t"
    again = step(msgspec.structs.replace(LINE.accept(blocked, refresh=True), surveyed_at=None))
    assert isinstance(again, Survey)
    assert again.task == "t"
    moved, _ = after(state(Surveyed()), look, Surveyed(head="h", task="u"))
    assert moved.task == "u"


@pytest.mark.guarantee("M33")
@pytest.mark.parametrize("status", [Status.CANDIDATE, Status.VERIFIED, Status.COMMITTED])
def test_a_baseline_is_not_adopted_over_edits_or_unpublished_receipts(status: Status) -> None:
    held = state(Surveyed(), jobs={"t.a": Job(status=status)})
    with pytest.raises(RefusedError, match="refresh-baseline"):
        LINE.accept(held, refresh=True)
    assert LINE.accept(held, refresh=False).head == "h"
    assert LINE.accept(state(Surveyed(), jobs={"t.a": DONE}), refresh=True).head == ""
