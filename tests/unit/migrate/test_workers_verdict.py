"""From what was seen to the class of a failure."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.limits import LimitHit
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace import ProviderError, TraceState
from longwatch.migrate.attempt.trace.model import Ending
from longwatch.migrate.attempt.workers.claude_failures import CLAUDE_FAILURES
from longwatch.migrate.attempt.workers.codex_failures import CODEX_FAILURES
from longwatch.migrate.attempt.workers.reset_time import retry_after_s
from longwatch.migrate.attempt.workers.verdict import RunEnd, after_changes, class_of, classify, of_exit

NOW = datetime(2026, 11, 30, 16, 6, 30, tzinfo=UTC)
WORKED = {"calls": 3, "calls_done": 3, "first_action_s": 1.0, "actions": 3}
REFUSED = (
    ProviderError(text="Reconnecting... waiting for network (Connection failed: error sending request)"),
)
UNAUTHORISED = (ProviderError(text="Reconnecting... 4/5 (unexpected status 401 Unauthorized)"),)


def state(**known: object) -> TraceState:
    return msgspec.structs.replace(TraceState(), **known)


def kind(seen: TraceState, end: RunEnd) -> FailureClass | None:
    failure = classify(seen, end, CODEX_FAILURES, NOW)
    return failure and failure.kind


@pytest.mark.guarantee("M9", "M12", "K26")
@pytest.mark.parametrize(
    ("seen", "limit", "code", "expected"),
    [
        # nothing was touched: safe to try again, or the provider's own reason
        (state(), LimitHit.MONITOR, None, "transient"),
        (state(first_action_s=1.0, actions=2), LimitHit.MONITOR, None, "transient"),
        (state(provider_errors=REFUSED), LimitHit.MONITOR, None, "transient"),
        (state(provider_errors=UNAUTHORISED), LimitHit.MONITOR, None, "auth"),
        (state(), LimitHit.IDLE, None, "transient"),
        (state(), LimitHit.MEMORY, None, "fault"),
        (state(), LimitHit.LOG, None, "fault"),
        (state(), LimitHit.STOPPED, None, "interrupted"),
        (state(), None, 1, "fault"),
        (state(), None, 0, "fault"),
        (state(), None, None, "fault"),
        # a usage limit with exit 0 and no work done
        (state(provider_errors=(ProviderError(text="You've hit your usage limit."),)), None, 0, "quota"),
        (
            state(ended=Ending.SUCCEEDED, current="You've hit your usage limit.", answer=b"x"),
            None,
            0,
            "quota",
        ),
        # edits may be half done
        (state(**WORKED), LimitHit.MONITOR, None, "interrupted"),
        (state(**WORKED, provider_errors=UNAUTHORISED), LimitHit.MONITOR, None, "interrupted"),
        (state(**WORKED), LimitHit.WALL, None, "interrupted"),
        (state(**WORKED), None, 0, "interrupted"),
        (state(**WORKED), None, None, "interrupted"),
        # a claim
        (state(**WORKED, ended=Ending.SUCCEEDED, answer=b"{}"), None, 0, None),
        (state(**WORKED, ended=Ending.SUCCEEDED, answer=b"{}"), LimitHit.MONITOR, None, None),
        (state(**WORKED, ended=Ending.SUCCEEDED, answer=b"{}"), None, 1, "fault"),
        (state(**WORKED, ended=Ending.SUCCEEDED), None, 0, "fault"),
        (state(ended=Ending.SUCCEEDED, answer=b"{}"), None, 0, "fault"),
        (state(ended=Ending.FAILED), None, 1, "fault"),
    ],
)
def test_classes(seen: TraceState, limit: LimitHit | None, code: int | None, expected: str | None) -> None:
    assert kind(seen, RunEnd(exit_code=code, limit=limit)) == expected


@pytest.mark.guarantee("K25")
def test_words_of_the_model_are_never_classified() -> None:
    tail = '{"type":"item.completed","item":{"text":"unexpected status 401 Unauthorized"}}\npanic'
    assert kind(state(), RunEnd(exit_code=1, log_tail=tail)) == "fault"
    assert kind(state(), RunEnd(exit_code=1, log_tail="Not logged in")) == "auth"


@pytest.mark.guarantee("K25")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (429, "transient"),
        (503, "transient"),
        (529, "transient"),
        (401, "auth"),
        (403, "auth"),
        (400, "fault"),
        (404, "fault"),
        (None, None),
        (418, None),
    ],
)
def test_statuses(status: int | None, expected: str | None) -> None:
    assert class_of("words", status, CLAUDE_FAILURES) == expected


@pytest.mark.guarantee("M10")
@pytest.mark.parametrize(
    "failed", [FailureClass.TRANSIENT, FailureClass.QUOTA, FailureClass.AUTH, FailureClass.FAULT]
)
def test_a_failure_with_changed_files_needs_a_look(failed: FailureClass) -> None:
    failure = Failure(kind=failed, message="the provider failed", retry_after_s=5.0, log="w.log")
    assert after_changes(failure, ()) == failure
    changed = after_changes(failure, ["a.py", "b.py"])
    assert (changed.kind, changed.retry_after_s, changed.log) == (FailureClass.INTERRUPTED, None, "w.log")
    assert "a.py, b.py" in changed.message


def test_an_integrity_failure_stays_one() -> None:
    failure = Failure(kind=FailureClass.INTEGRITY, message="x")
    assert after_changes(failure, ["a"]) is failure


@pytest.mark.guarantee("M12")
def test_programs_without_a_protocol() -> None:
    assert of_exit(RunEnd(exit_code=0)) is None
    ends = [RunEnd(exit_code=3), RunEnd(exit_code=None), RunEnd(exit_code=None, limit=LimitHit.WALL)]
    kinds = [failure.kind for end in ends if (failure := of_exit(end))]
    assert kinds == ["fault", "fault", "interrupted"]
    told = of_exit(RunEnd(exit_code=3, log_tail="no such option: --fast\n"))
    assert told is not None
    assert told.message == "the worker's program ended with exit code 3: no such option: --fast"


@pytest.mark.guarantee("K26")
@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("try again at 5:07 PM.", 3630 + 60),
        ("or try again at 4:07 PM.", 30 + 60),
        ("try again at 4:00 PM.", 60),  # just reached
        ("try again at 3:06 PM.", 23 * 3600 - 30 + 60),
        ("try again at 12:06 AM.", 8 * 3600 - 30 + 60),
        ("try again at Dec 1st, 2026 4:06 PM.", 86_400 - 30 + 60),
        ("Please try again in 3s.", 3),
        ("Please try again in 1.5 seconds", 1.5),
        ("try again in 250ms", 0.25),
        ("try again in 2 days 3 hours 4 minutes.", 2 * 86_400 + 3 * 3600 + 240),
        ("limit reached · resets 5pm", 3210 + 60),
        ("try again at 25:99 PM", None),
        ("try again at Feb 31st, 2026 4:06 PM.", None),
        ("try again in 3 parsecs", None),
        ("try again later", None),
        ("", None),
    ],
)
def test_reset_times(text: str, expected_s: float | None) -> None:
    assert retry_after_s(text, NOW) == (None if expected_s is None else pytest.approx(expected_s))


@pytest.mark.guarantee("K26", "K27")
@pytest.mark.parametrize(
    ("text", "resets_in_s", "expected_s"),
    [
        ("You've hit your usage limit, try again in 3 hours", None, 3 * 3600),
        ("You've hit your usage limit, try again in 3 hours", 7200, 7260),  # the event is exact
        ("You've hit your usage limit", 7 * 86_400, 7 * 86_400 + 60),
        ("You've hit your usage limit", -3600, 60),  # already over, and still refused
        ("You've hit your usage limit, try again in 0s", None, 60),
        ("You've hit your usage limit", 2**53, None),
        ("You've hit your usage limit, try again in " + "9" * 400 + "s", None, None),
        ("at capacity, try again in 5s", 7200, 5),  # no usage limit
        ("at capacity, try again in 0s", None, 1),
        ("at capacity, try again in 99999999 days", None, None),
    ],
)
def test_how_long_is_waited(text: str, resets_in_s: float | None, expected_s: float | None) -> None:
    resets_at = None if resets_in_s is None else NOW.timestamp() + resets_in_s
    failed = state(ended=Ending.FAILED, error=ProviderError(text=text), limit_resets_at=resets_at)
    failure = classify(failed, RunEnd(exit_code=1), CODEX_FAILURES, NOW)
    assert failure is not None
    assert failure.retry_after_s == expected_s


@given(st.text(alphabet="try again at in resets0123456789:PMAms ,stDec", max_size=60))
def test_any_prose_is_survived(text: str) -> None:
    wait_s = retry_after_s(text, NOW)
    assert wait_s is None or wait_s >= 0
