"""The exception tree. The class of a failure and the exit code stand on the type, and nowhere else.

A failure gets its type once, at the boundary where it arises. Nothing is ever guessed from our own message texts:
a message that happens to contain the word "integrity" blocks nothing, an `IntegrityError` does.
"""

from enum import IntEnum, StrEnum
from typing import ClassVar


class FailureClass(StrEnum):
    """What a failure means for the watch (specification K26)."""

    INTEGRITY = "integrity"
    """A digest, source or evidence mismatch: blocked at once, never retried."""
    TRANSIENT = "transient"
    """Network, overload, a busy device: waits, for ever if need be."""
    QUOTA = "quota"
    """A usage limit with a reset time: parked until then if the configuration allows."""
    AUTH = "auth"
    """Credentials are refused: one stop, no retry."""
    BUDGET = "budget"
    """Tokens, money or time are spent: one stop, no retry."""
    FAULT = "fault"
    """Anything else: waits, and blocks after several in a row."""
    INTERRUPTED = "interrupted"
    """Nobody knows how far it got: a person has to look."""


class ExitCode(IntEnum):
    """Exit codes of every command (specification K15). Service units rely on them: they are stable."""

    OK = 0
    ERROR = 1
    BLOCKED = 2
    NEEDS_RECONCILE = 3
    EXHAUSTED = 4
    NOT_READY = 75


class LongwatchError(Exception):
    """Root of all our failures. The message says what, where, and what to do next."""

    failure_class: ClassVar[FailureClass] = FailureClass.FAULT
    exit_code: ClassVar[ExitCode] = ExitCode.ERROR


class ConfigError(LongwatchError):
    """A file that a person wrote is wrong: the message names the file, the value and the mend."""

    exit_code = ExitCode.BLOCKED


class IntegrityError(LongwatchError):
    """Something that was bound by digest is not what it was."""

    failure_class = FailureClass.INTEGRITY
    exit_code = ExitCode.BLOCKED


class StateError(IntegrityError):
    """The durable state is damaged, foreign, or newer than this program. Nothing was overwritten."""


class PathError(LongwatchError):
    """A path in an input would leave its root."""

    exit_code = ExitCode.BLOCKED


class TransientError(LongwatchError):
    """The world outside is not ready; the same call may work later."""

    failure_class = FailureClass.TRANSIENT
    exit_code = ExitCode.NOT_READY

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        """`retry_after_s` is the provider's own word and wins over our back-off."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaError(TransientError):
    """A usage limit was reached; `retry_after_s` is the time to its reset, where it is known."""

    failure_class = FailureClass.QUOTA


class AuthError(LongwatchError):
    """Credentials are missing or refused."""

    failure_class = FailureClass.AUTH
    exit_code = ExitCode.BLOCKED


class BudgetError(LongwatchError):
    """A budget is spent, or cannot be shown to be unspent."""

    failure_class = FailureClass.BUDGET
    exit_code = ExitCode.EXHAUSTED


class InterruptedWorkError(LongwatchError):
    """Work ended at an unknown point and its effect cannot be asked for."""

    failure_class = FailureClass.INTERRUPTED
    exit_code = ExitCode.NEEDS_RECONCILE


class LeaseHeldError(LongwatchError):
    """Another supervisor owns this watch; the message names it and since when."""

    exit_code = ExitCode.NOT_READY


class NotReadyError(LongwatchError):
    """The host or the watch is not ready for this now; later it may be."""

    failure_class = FailureClass.TRANSIENT
    exit_code = ExitCode.NOT_READY


class RefusedError(LongwatchError):
    """The person asked for something that is not safe in this state; the message says what is."""

    exit_code = ExitCode.BLOCKED
