"""Tokens and money for the life of the watch (specification M11). Pure; unknown usage counts as the reservation."""

import msgspec

from longwatch.kernel.journal import Note
from longwatch.migrate.settings import Budget
from longwatch.migrate.state import MigrateState
from longwatch.migrate.steps import Attempt, Usage


def spent(budget: Budget, state: MigrateState, running: int = 0) -> str:
    """Return why the next attempt may not be reserved beside those that are `running`, or an empty text."""
    tokens = state.tokens + running * budget.tokens_per_attempt
    if budget.tokens and tokens + budget.tokens_per_attempt > budget.tokens:
        return (
            f"The next attempt would reserve {budget.tokens_per_attempt:,} tokens, and {tokens:,} of "
            f"budget.tokens = {budget.tokens:,} are used{_or_reserved(running)}. Raise it to go on."
        )
    usd = state.usd + running * budget.usd_per_attempt
    if budget.usd and usd + budget.usd_per_attempt > budget.usd:
        return (
            f"The next attempt would reserve {budget.usd_per_attempt:.2f} USD, and {usd:.2f} of "
            f"budget.usd = {budget.usd:.2f} are used{_or_reserved(running)}. Raise it to go on."
        )
    return ""


def _or_reserved(running: int) -> str:
    return " or reserved by running attempts" if running else ""


def overrun(budget: Budget, tokens: int, usd: float | None) -> str:
    """Return why an attempt that has used so much so far must not go on, or an empty text."""
    if 0 < budget.tokens_per_attempt < tokens:
        return f"it used {tokens:,} tokens, and budget.tokens_per_attempt is {budget.tokens_per_attempt:,}"
    if usd is not None and 0 < budget.usd_per_attempt < usd:
        return f"it used {usd:.2f} USD, and budget.usd_per_attempt is {budget.usd_per_attempt:.2f}"
    return ""


def charge(budget: Budget, state: MigrateState, usage: Usage) -> MigrateState:
    """Return the state after an attempt's cost is counted; what is unknown costs the whole reservation."""
    tokens, usd = _counted(budget, usage)
    return msgspec.structs.replace(state, tokens=state.tokens + tokens, usd=state.usd + usd)


def charged(budget: Budget, step: Attempt, usage: Usage) -> tuple[Note, ...]:
    """Return the event that tells an attempt's cost; none where nothing is known and nothing was reserved."""
    tokens, usd = _counted(budget, usage)
    parts = [
        f"{tokens:,} tokens{_known(usage.tokens)}" if tokens else "",
        f"{usd:.2f} USD{_known(usage.usd)}" if usd else "",
    ]
    text = f"{step.title} costs {' and '.join(filter(None, parts))}."
    data: dict[str, str | int | float | bool | None] = {
        "job": step.job,
        "attempt": step.number,
        "tokens": tokens,
        "usd": usd,
        "tokens_known": usage.tokens is not None,
        "usd_known": usage.usd is not None,
    }
    return (Note("attempt.charged", text, data),) if tokens or usd else ()


def _counted(budget: Budget, usage: Usage) -> tuple[int, float]:
    tokens = budget.tokens_per_attempt if usage.tokens is None else usage.tokens
    return tokens, budget.usd_per_attempt if usage.usd is None else usage.usd


def _known(amount: float | None) -> str:
    return " (all that was reserved: what it used is not known)" if amount is None else ""


def rows(budget: Budget, state: MigrateState) -> tuple[tuple[str, str], ...]:
    """Return what a person's status shows of the cost."""
    tokens = f"{state.tokens:,}" + (f" of {budget.tokens:,}" if budget.tokens else "")
    usd = f"{state.usd:.2f}" + (f" of {budget.usd:.2f}" if budget.usd else "")
    return (("tokens", tokens), ("USD", usd))
