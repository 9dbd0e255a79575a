"""Tokens and money for the life of the watch (specification M11). Pure; unknown usage counts as the reservation."""

import msgspec

from longwatch.migrate.settings import Budget
from longwatch.migrate.state import MigrateState
from longwatch.migrate.steps import Usage


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


def charge(budget: Budget, state: MigrateState, usage: Usage) -> MigrateState:
    """Return the state after an attempt's cost is counted; what is unknown costs the whole reservation."""
    tokens = budget.tokens_per_attempt if usage.tokens is None else usage.tokens
    usd = budget.usd_per_attempt if usage.usd is None else usage.usd
    return msgspec.structs.replace(state, tokens=state.tokens + tokens, usd=state.usd + usd)


def rows(budget: Budget, state: MigrateState) -> tuple[tuple[str, str], ...]:
    """Return what a person's status shows of the cost."""
    tokens = f"{state.tokens:,}" + (f" of {budget.tokens:,}" if budget.tokens else "")
    usd = f"{state.usd:.2f}" + (f" of {budget.usd:.2f}" if budget.usd else "")
    return (("tokens", tokens), ("USD", usd))
