"""Tokens and money: reserved before a worker starts, charged once, and never spent twice (specification M11)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import FailureClass
from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Failed, Failure, Lost, Outcome, Stopped, Succeeded
from longwatch.migrate import budget
from longwatch.migrate.outcomes import after
from longwatch.migrate.settings import Budget, MigrateSettings, Repository, WorkerSettings
from longwatch.migrate.state import MigrateState
from longwatch.migrate.steps import Attempt, Refusal, Refused, Spent, Usage

NOW = Instant(wall_s=1.0e9, boottime_s=100.0, monotonic_s=100.0, boot_id="b")
BOTH = Budget(tokens=100, tokens_per_attempt=30, usd=10.0, usd_per_attempt=2.5)
STEP = Attempt(id="a.1.attempt.0", job="a", number=1, baseline="h", card="c")


def raw(evidence: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(evidence))


def refused(usage: Usage) -> Succeeded:
    return Succeeded(raw(Refused(kind=Refusal.CLAIM, reasons=("no",), usage=usage)))


def failed(evidence: object) -> Failed:
    return Failed(Failure(kind=FailureClass.TRANSIENT, message="down"), raw(evidence))


def charged(outcome: Outcome, limits: Budget = BOTH) -> tuple[int, float, list[dict[str, object]]]:
    settings = MigrateSettings(
        kind="migrate",
        repository=Repository(branch="main"),
        worker=WorkerSettings(adapter="replay"),
        budget=limits,
    )
    state, notes = after(settings, MigrateState(), STEP, outcome, NOW)
    told = [dict(note.data) for note in notes if note.kind == "attempt.charged"]
    return state.tokens, state.usd, told


@pytest.mark.guarantee("M11")
@pytest.mark.parametrize(
    ("outcome", "tokens", "usd"),
    [
        (refused(Usage(tokens=7, usd=0.5)), 7, 0.5),
        (refused(Usage(tokens=77, usd=5.0)), 77, 5.0),  # more than was reserved is not forgiven
        (refused(Usage(tokens=7)), 7, 2.5),
        (refused(Usage()), 30, 2.5),
        (failed(Spent(usage=Usage(tokens=0, usd=0.0))), 0, 0.0),
        (failed(Spent(usage=Usage())), 30, 2.5),
        (failed(None), 0, 0.0),  # no worker began
        (Lost("killed between reservation and charge"), 30, 2.5),
        (Stopped("paused"), 30, 2.5),
    ],
)
def test_what_is_charged(outcome: Outcome, tokens: int, usd: float) -> None:
    used_tokens, used_usd, told = charged(outcome)
    assert (used_tokens, used_usd) == (tokens, usd)
    assert [(one["job"], one["attempt"], one["tokens"], one["usd"]) for one in told] == (
        [("a", 1, tokens, usd)] if tokens else []
    )


def test_what_costs_nothing_that_anybody_counts_is_not_told() -> None:
    assert charged(Lost("killed"), Budget()) == (0, 0.0, [])
    assert charged(refused(Usage(tokens=7)), Budget())[0] == 7


@pytest.mark.guarantee("M11")
def test_the_event_says_what_is_known() -> None:
    (note,) = budget.charged(BOTH, STEP, Usage(tokens=1234))
    assert note.text == (
        "a: attempt 1 costs 1,234 tokens and 2.50 USD (all that was reserved: what it used is not known)."
    )
    assert (note.data["tokens_known"], note.data["usd_known"]) == (True, False)


@pytest.mark.guarantee("M11")
@pytest.mark.parametrize(
    ("tokens", "usd", "running", "why"),
    [
        (0, 0.0, 0, ""),
        (70, 7.5, 0, ""),
        (71, 0.0, 0, "30 tokens, and 71 of budget.tokens = 100 are used. Raise it"),
        (0, 7.51, 0, "2.50 USD, and 7.51 of budget.usd = 10.00 are used. Raise it"),
        (10, 0.0, 2, ""),
        (11, 0.0, 2, "71 of budget.tokens = 100 are used or reserved by running attempts"),
        (0, 0.0, 3, "90 of budget.tokens = 100 are used or reserved"),
        (0, 2.6, 2, "7.60 of budget.usd = 10.00 are used or reserved by running attempts"),
        (10**9, 1e9, 9, "budget.tokens"),
    ],
)
def test_the_next_reservation(tokens: int, usd: float, running: int, why: str) -> None:
    said = budget.spent(BOTH, MigrateState(tokens=tokens, usd=usd), running=running)
    assert bool(said) == bool(why)
    assert why in said


def test_without_a_budget_nothing_is_ever_spent() -> None:
    assert budget.spent(Budget(), MigrateState(tokens=10**12, usd=1e12), running=50) == ""


@pytest.mark.guarantee("M11", "M37")
@given(st.integers(1, 50), st.integers(1, 500), st.lists(st.integers(0, 99), max_size=60))
def test_side_by_side_attempts_that_keep_to_their_reservation_never_overspend(
    one: int, whole: int, moves: list[int]
) -> None:
    """An even move starts an attempt if it may, an odd one ends the oldest with some part of its reservation used."""
    limits = Budget(tokens=max(whole, one), tokens_per_attempt=one)
    state, running = MigrateState(), 0
    for move in moves:
        if move % 2 == 0:
            running += not budget.spent(limits, state, running=running)
        elif running:
            running -= 1
            state = budget.charge(limits, state, Usage(tokens=one * move // 99))
    for _ in range(running):
        state = budget.charge(limits, state, Usage())
    assert state.tokens <= limits.tokens


@pytest.mark.guarantee("M11")
@pytest.mark.parametrize(
    ("tokens", "usd", "why"),
    [
        (30, 2.5, ""),
        (31, None, "it used 31 tokens, and budget.tokens_per_attempt is 30"),
        (0, 2.51, "it used 2.51 USD, and budget.usd_per_attempt is 2.50"),
        (0, None, ""),
    ],
)
def test_an_attempt_that_uses_more_than_its_reservation(tokens: int, usd: float | None, why: str) -> None:
    assert budget.overrun(BOTH, tokens, usd) == why
    assert budget.overrun(Budget(tokens=1, usd=0.1), tokens, usd) == ""
