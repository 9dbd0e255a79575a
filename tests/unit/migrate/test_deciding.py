"""What is decided while several jobs are in work. Pure: scenes as values."""

from collections.abc import Mapping

import msgspec
import pytest

from longwatch.kernel.instant import Deadline, Instant
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.line import Decision, Finish, Start, Succeeded, Wait
from longwatch.migrate.deciding import Scene, decide
from longwatch.migrate.outcomes import after
from longwatch.migrate.settings import Budget, MigrateSettings, Repository, WorkerSettings
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import (
    Attempt,
    Candidate,
    CardRef,
    Commit,
    Evidence,
    Merge,
    MigrateStep,
    Push,
    Refusal,
    Refused,
    Survey,
    Surveyed,
    Verified,
    Verify,
    Worked,
)

NOW = Instant(wall_s=1.0e9, boottime_s=100.0, monotonic_s=100.0, boot_id="b")
CARDS = tuple(CardRef(id=name, title=name.upper(), digest=name, files=(f"{name}.py",)) for name in "abcd")
SURVEY = Surveyed(head="h0", cards=CARDS)


def settings(parallel: int = 3, **budget: int) -> MigrateSettings:
    worker = WorkerSettings(adapter="replay", max_parallel=parallel)
    return MigrateSettings(
        kind="migrate", repository=Repository(branch="main"), worker=worker, budget=Budget(**budget)
    )


def scene(jobs: Mapping[str, Job] = {}, *running: MigrateStep, **changed: object) -> Scene:
    parallel = changed.pop("parallel", 3)
    budget = changed.pop("budget", {})
    head = changed.get("head", "h0")
    survey = msgspec.structs.replace(SURVEY, head=head)
    state = MigrateState(
        **{"survey": survey, "surveyed_at": NOW, "head": "h0", "jobs": jobs, **changed}  # type: ignore[arg-type]
    )
    given = settings(parallel, **budget)  # type: ignore[arg-type]
    return Scene(settings=given, state=state, running={step.id: step for step in running}, now=NOW)


def step(decision: Decision[MigrateStep]) -> MigrateStep:
    assert isinstance(decision, Start), decision
    (only,) = decision.steps
    return only


def attempt(job: str) -> Attempt:
    return Attempt(id=f"{job}.1.attempt.0", job=job, number=1, baseline="h0", card=job)


def candidate(job: str, baseline: str = "h0", **changed: object) -> Candidate:
    given: dict[str, object] = {
        "attempt": f"{job}.1",
        "commit": f"c-{job}",
        "paths": (f"{job}.py",),
        **changed,
    }
    return Candidate(number=1, nonce="n", baseline=baseline, tree="t", summary="s", **given)  # type: ignore[arg-type]


def job(name: str, status: Status, baseline: str = "h0", **changed: object) -> Job:
    found = candidate(name, baseline, **changed)
    return Job(status=status, number=1, card=name, receipt="r", candidate=found)


def applied(found: Scene, done: MigrateStep, evidence: Evidence) -> tuple[MigrateState, list[str]]:
    outcome = Succeeded(msgspec.Raw(msgspec.json.encode(evidence)))
    state, notes = after(found.settings, found.state, done, outcome, NOW)
    return state, [note.kind for note in notes]


@pytest.mark.guarantee("M37")
def test_jobs_begin_until_as_many_as_may_be_are_in_work() -> None:
    first = step(decide(scene()))
    assert isinstance(first, Attempt)
    second = step(decide(scene({}, first)))
    assert isinstance(second, Attempt)
    assert (first.job, second.job) == ("a", "b")
    third = step(decide(scene({"c": job("c", Status.VERIFIED, "h9", merged="x")}, first)))
    assert isinstance(third, Merge), "what is in hand goes first"
    assert isinstance(decide(scene({}, first, second, attempt("c"))), Wait)
    assert isinstance(decide(scene({"c": job("c", Status.DONE)}, first, parallel=1)), Wait)


@pytest.mark.guarantee("M37")
def test_a_job_that_owns_a_file_of_another_waits_for_it() -> None:
    cards = (CARDS[0], msgspec.structs.replace(CARDS[1], files=("b.py", "a.py")), CARDS[2])
    survey = Surveyed(head="h0", cards=cards)
    assert step(decide(scene({}, attempt("a"), survey=survey))).job == "c"  # type: ignore[union-attr]
    both = decide(scene({}, attempt("a"), attempt("c"), survey=survey))
    assert isinstance(both, Wait)
    assert step(decide(scene({"a": job("a", Status.DONE)}, attempt("c"), survey=survey))).job == "b"  # type: ignore[union-attr]


@pytest.mark.guarantee("M37", "M32")
def test_nothing_is_handed_off_while_a_job_is_in_work() -> None:
    cards = (CARDS[0], CardRef(id="t.handoff", title="T", digest="t", after=("a",), finishes="t"), CARDS[2])
    survey = Surveyed(head="h0", cards=cards)
    done = {"a": Job(status=Status.DONE, number=1)}
    assert isinstance(decide(scene(done, attempt("c"), survey=survey)), Wait)


@pytest.mark.guarantee("M37")
def test_one_job_lands_at_a_time_and_what_needs_no_merge_goes_first() -> None:
    jobs = {
        "a": job("a", Status.VERIFIED, "old"),
        "b": job("b", Status.VERIFIED),
        "c": job("c", Status.CANDIDATE),
    }
    commit = step(decide(scene(jobs)))
    assert isinstance(commit, Commit)
    assert (commit.job, commit.title_text) == ("b", "B")
    beside = step(decide(scene(jobs, commit)))
    assert isinstance(beside, Verify)
    assert beside.job == "c"
    assert isinstance(decide(scene(jobs, commit, beside)), Wait)
    pushed = {**jobs, "b": msgspec.structs.replace(jobs["b"], status=Status.COMMITTED, commit="h1")}
    assert isinstance(step(decide(scene(pushed, beside, head="h1"))), Push)
    landed = {**jobs, "b": Job(status=Status.DONE)}
    merge = step(decide(scene(landed, beside, head="h1")))
    assert isinstance(merge, Merge)
    assert (merge.job, merge.onto) == ("a", "h1")


@pytest.mark.guarantee("M37", "M24")
def test_what_was_merged_is_verified_again_before_anything_else_lands() -> None:
    jobs = {"a": job("a", Status.VERIFIED, "h0"), "b": job("b", Status.VERIFIED, "h0")}
    found = scene(jobs, head="h1")
    merge = step(decide(found))
    assert isinstance(merge, Merge)
    merged = candidate("a", "h1", attempt="a.1.merged", commit="m-a", merged="c-a")
    state, said = applied(found, merge, Worked(candidate=merged))
    assert said == ["job.merged"]
    again = Scene(settings=found.settings, state=state, running={}, now=NOW)
    verify = step(decide(again))
    assert isinstance(verify, Verify)
    assert verify.candidate == merged
    waiting = Scene(settings=found.settings, state=state, running={verify.id: verify}, now=NOW)
    assert not isinstance(step(decide(waiting)), Commit | Merge)
    state, _ = applied(again, verify, Verified(receipt="r2", checks=("x",)))
    commit = step(decide(Scene(settings=found.settings, state=state, running={}, now=NOW)))
    assert isinstance(commit, Commit)
    assert (commit.candidate, commit.receipt) == (merged, "r2")


@pytest.mark.guarantee("M37")
def test_what_was_merged_lands_before_what_needs_no_merge() -> None:
    """Else the branch would move under it, and it would be merged and verified for nothing."""
    merged = job("b", Status.VERIFIED, "h1", attempt="b.1.merged", merged="c-b")
    commit = step(decide(scene({"a": job("a", Status.VERIFIED, "h1"), "b": merged}, head="h1")))
    assert isinstance(commit, Commit)
    assert commit.job == "b"


@pytest.mark.guarantee("M37", "M27")
def test_a_failure_after_merging_returns_the_job_with_the_reason_and_counts_no_attempt() -> None:
    merged = job("a", Status.CANDIDATE, "h1", attempt="a.1.merged", merged="c-a")
    found = scene({"a": merged}, head="h1")
    verify = step(decide(found))
    refusal = Refused(kind=Refusal.CHECKS, reasons=("test x failed",), failing=("x",))
    state, said = applied(found, verify, refusal)
    back = state.jobs["a"]
    assert said == ["attempt.refused.merge"]
    assert (back.status, back.attempts, back.candidate) == (Status.RETRY_PENDING, 0, None)
    assert "It passed alone; merged onto h1" in back.failure
    assert "test x failed" in back.failure
    state, _ = applied(scene({"a": job("a", Status.CANDIDATE)}), verify_of("a"), refusal)
    assert state.jobs["a"].attempts == 1


def verify_of(name: str) -> Verify:
    return Verify(id="v", job=name, candidate=candidate(name), card=name)


@pytest.mark.guarantee("M37")
def test_a_conflict_returns_the_job_and_counts_no_attempt() -> None:
    found = scene({"a": job("a", Status.VERIFIED)}, head="h1")
    conflict = Refused(kind=Refusal.MERGE, reasons=("another job landed first",), counts=False)
    state, said = applied(found, step(decide(found)), conflict)
    assert said == ["attempt.refused.merge"]
    assert (state.jobs["a"].status, state.jobs["a"].attempts) == (Status.RETRY_PENDING, 0)


@pytest.mark.guarantee("M25", "M37")
def test_that_nothing_is_to_be_done_is_believed_only_of_the_branch_as_it_is() -> None:
    same = Verify(id="v", job="a", candidate=candidate("a", commit="h0", paths=()), card="a")
    jobs = {"a": Job(status=Status.CANDIDATE, number=1, card="a", candidate=same.candidate)}
    state, said = applied(scene(jobs), same, Verified(receipt="r", checks=("x",)))
    assert (state.jobs["a"].status, said[-1]) == (Status.DONE, "job.done")
    state, _ = applied(scene(jobs, head="h1"), same, Verified(receipt="r", checks=("x",)))
    assert state.jobs["a"].status is Status.VERIFIED
    assert isinstance(step(decide(scene(state.jobs, head="h1"))), Merge)


@pytest.mark.guarantee("M11", "M37")
def test_running_attempts_hold_their_reservations() -> None:
    budget = {"tokens": 10, "tokens_per_attempt": 4}
    assert isinstance(step(decide(scene({}, attempt("a"), budget=budget))), Attempt)
    full = decide(scene({}, attempt("a"), attempt("b"), budget=budget))
    assert isinstance(full, Wait)
    assert "4 tokens" in full.reason
    ended = decide(scene({}, tokens=8, budget=budget))
    assert isinstance(ended, Finish)
    assert ended.verdict is Verdict.EXHAUSTED


@pytest.mark.guarantee("M37", "M1")
def test_a_look_begins_beside_attempts_and_nothing_begins_beside_a_look() -> None:
    old = msgspec.structs.replace(NOW, boottime_s=NOW.boottime_s - 61)
    running = attempt("a")
    look = step(decide(scene({"b": job("b", Status.CANDIDATE)}, running, verify_of("b"), surveyed_at=old)))
    assert isinstance(look, Survey)
    assert set(look.busy) == {"a.1", "b.1.verify"}
    assert isinstance(decide(scene({"b": job("b", Status.CANDIDATE)}, running, look)), Wait)
    commit = step(decide(scene({"b": job("b", Status.VERIFIED)}, running)))
    assert isinstance(
        decide(scene({"b": job("b", Status.VERIFIED)}, running, commit, surveyed_at=None)), Wait
    )


@pytest.mark.guarantee("M27", "M37")
def test_a_retry_delay_holds_nothing_up_that_could_land() -> None:
    later = Job(status=Status.RETRY_PENDING, not_before=Deadline(since=NOW, delay_s=600.0))
    waiting = dict.fromkeys("bcd", later)
    decision = decide(scene(waiting, attempt("a")))
    assert isinstance(decision, Wait)
    assert decision.delay_s is None
    alone = decide(scene({**waiting, "a": job("a", Status.DONE)}))
    assert isinstance(alone, Wait)
    assert alone.delay_s == 600.0


@pytest.mark.guarantee("M31", "M37")
def test_a_held_change_lets_others_land_and_begins_nothing() -> None:
    held = msgspec.structs.replace(job("a", Status.VERIFIED), held="ready_to_publish")
    assert isinstance(step(decide(scene({"a": held, "b": job("b", Status.VERIFIED)}))), Commit)
    decision = decide(scene({"a": held}))
    assert isinstance(decision, Finish)
    assert decision.reason == "ready_to_publish"
