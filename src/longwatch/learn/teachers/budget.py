"""What a teacher may cost, and what it has cost. Pure; unknown usage counts as the whole reservation."""

from collections.abc import Mapping

import msgspec

from longwatch.learn.teachers.settings import Teaching

MILLION = 1_000_000


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was used, or is reserved."""

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum."""
        return Usage(
            requests=self.requests + other.requests,
            tokens=self.tokens + other.tokens,
            usd=self.usd + other.usd,
        )


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was used for the life of the watch, and in the current experiment."""

    life: Usage = Usage()
    experiment: int = 0
    spent: Usage = Usage()
    """In that experiment."""
    open: Mapping[str, Usage] = {}
    """Reserved for requests that are under way, by a name that each has alone."""


def cost(teaching: Teaching, asked: int, answered: int) -> float:
    """Return the price of these tokens in US dollars."""
    return (asked * teaching.usd_per_million_asked + answered * teaching.usd_per_million_answered) / MILLION


def begun(ledger: Ledger, experiment: int) -> Ledger:
    """Return the ledger for an experiment that begins or goes on: what nobody settled counts as used."""
    for name in ledger.open:
        ledger = settled(ledger, name, None)
    if experiment == ledger.experiment:
        return ledger
    return msgspec.structs.replace(ledger, experiment=experiment, spent=Usage())


def refusal(teaching: Teaching, ledger: Ledger, wanted: Usage) -> str:
    """Return why so much more may not be reserved, or an empty text."""
    reserved = Usage()
    for one in ledger.open.values():
        reserved = reserved.plus(one)
    for scope, used in (("_per_experiment", ledger.spent), ("", ledger.life)):
        after = used.plus(reserved).plus(wanted)
        for unit in Usage.__struct_fields__:
            limit = getattr(teaching, f"{unit}{scope}")
            if limit and getattr(after, unit) > limit:
                return (
                    f"the next request could take teacher.{unit}{scope} from {getattr(used, unit):g} to "
                    f"{getattr(after, unit):g}, and {limit:g} are allowed"
                )
    return ""


def sentence(teaching: Teaching, ledger: Ledger) -> str:
    """Return what it has cost so far, for a person; empty if nothing was asked."""
    if not ledger.life.requests:
        return ""
    most = {unit: getattr(teaching, unit) for unit in Usage.__struct_fields__}
    of = {unit: f" of {limit:,}" if limit else "" for unit, limit in most.items()}
    life = ledger.life
    return (
        f"{life.requests:,}{of['requests']} requests, {life.tokens:,}{of['tokens']} tokens, "
        f"{life.usd:.2f}{of['usd']} USD"
    )


def reserved(ledger: Ledger, name: str, wanted: Usage) -> Ledger:
    """Return the ledger before a request is sent."""
    return msgspec.structs.replace(ledger, open={**ledger.open, name: wanted})


def settled(ledger: Ledger, name: str, used: Usage | None) -> Ledger:
    """Return the ledger after a request; `None`: nobody knows what it used."""
    still = dict(ledger.open)
    reservation = still.pop(name)
    counted = reservation if used is None else used
    return msgspec.structs.replace(
        ledger, open=still, life=ledger.life.plus(counted), spent=ledger.spent.plus(counted)
    )
