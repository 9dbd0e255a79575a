"""Compares what the worker says with what is there (specification M12, M13, M18, M25). Pure."""

import msgspec

from longwatch.migrate.attempt.declaration import Known, faults
from longwatch.migrate.attempt.result import Result, Status, read_result
from longwatch.migrate.declared import Declared
from longwatch.migrate.patterns import Patterns, refusal
from longwatch.migrate.repository.harvest import Harvest
from longwatch.migrate.steps import Refusal


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a claim after it was compared. With anything `refused` nothing is."""

    refused: tuple[str, ...] = ()
    kind: Refusal = Refusal.CLAIM
    summary: str = ""
    reason: str = ""
    declared: Declared | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """Something stands where the answer belongs, and it is none."""

    reason: str


def claimed(
    raw: bytes | Unreadable | None,
    nonce: str,
    taken: Harvest,
    *,
    owned: tuple[str, ...],
    protected: Patterns,
    known: Known | None = None,
) -> Claim:
    """Return the claim, or everything that is wrong with it, answer and change together.

    `known` is what declarations are held against, where the profile asks for any.
    """
    if raw is None:
        why = "the worker left no result: a run that ends without one is no claim"
        return Claim(refused=(why, *taken.refused))
    if isinstance(raw, Unreadable):
        return Claim(refused=(f"the worker left no result that can be read: {raw.reason}", *taken.refused))
    read = read_result(raw, nonce, cases=known is not None)
    if not isinstance(read, Result):
        return Claim(refused=(*(f"result: {reason}" for reason in read), *taken.refused))
    if read.status is Status.BLOCKED:
        return Claim(refused=(f"the worker says it is blocked: {read.reason}",))
    untrue = tuple(faults(read.declared, known)) if read.declared and known else ()
    wrong = (*taken.refused, *_wrong_paths(taken, owned, protected), *_undeclared(read, taken))
    if untrue or wrong:
        return Claim(refused=(*untrue, *wrong), kind=Refusal.CHANGE if wrong else Refusal.CLAIM)
    return _of_status(read, taken)


def _of_status(read: Result, taken: Harvest) -> Claim:
    if read.status is Status.DONE and not taken.changes:
        why = "the worker claims it is done and changed nothing; where nothing has to change, the status is no_change"
        return Claim(refused=(why,))
    return Claim(summary=read.summary, reason=read.reason, declared=read.declared)


def _wrong_paths(taken: Harvest, owned: tuple[str, ...], protected: Patterns) -> tuple[str, ...]:
    found = (refusal(change.path, owned, protected) for change in taken.changes)
    return tuple(reason for reason in found if reason is not None)


def _undeclared(read: Result, taken: Harvest) -> tuple[str, ...]:
    there = {change.path for change in taken.changes}
    undeclared = sorted(there - set(read.changed))
    missing = sorted(set(read.changed) - there)
    return (
        *(f"{path}: it was changed and not declared" for path in undeclared),
        *(f"{path}: it is declared as changed and is as it was" for path in missing),
    )
