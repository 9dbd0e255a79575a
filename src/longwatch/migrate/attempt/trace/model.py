"""What is known of a worker from the events that it printed. Values, and the interface of the parsers.

A trace is observation, never evidence: it says how far the worker got and why it stopped, not whether it is right.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

MAX_ANSWER_BYTES = 1024 * 1024
"""A longer answer is cut one byte beyond, so that whoever reads it sees that it is too large."""
MAX_TEXT = 500
"""Texts of foreign programs are kept up to so many characters."""
MAX_KEPT = 64
"""So many items in flight, denied tools or provider errors are remembered; the counts go on."""


class Ending(StrEnum):
    """What the worker's terminal event said."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Item(msgspec.Struct, frozen=True):
    """A tool call: its id in the event stream and what a person reads."""

    id: str
    title: str


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a run used, as its terminal event says. `input` holds the `cached` ones as well."""

    input: int = 0
    cached: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        """Everything that counts against a budget."""
        return self.input + self.output


class ProviderError(msgspec.Struct, frozen=True, kw_only=True):
    """An error of the model's provider: its text, and its HTTP status where the event carries one."""

    text: str
    status: int | None = None
    retry_after_s: float | None = None
    """The provider's own word, where the event carries it."""


class TraceState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was seen so far. Times are seconds since the start of the process."""

    lines: int = 0
    last_activity_s: float = 0.0
    """The latest line of any kind."""
    last_progress_s: float = 0.0
    """The latest line that was no provider error: a worker that only reconnects makes no progress."""
    actions: int = 0
    """Things the model did: words, thoughts, tool calls."""
    first_action_s: float | None = None
    calls: int = 0
    """Tool calls that began. From the first one on, files may have changed."""
    calls_done: int = 0
    """Tool calls that ended without an error."""
    in_flight: tuple[Item, ...] = ()
    current: str = ""
    """What a person reads: the latest tool call or words."""
    ended: Ending | None = None
    ended_s: float | None = None
    error: ProviderError | None = None
    """Why it ended, if it failed."""
    provider_errors: tuple[ProviderError, ...] = ()
    """The latest ones, also those that a retry got over."""
    limit_resets_at: float | None = None
    """When the usage limit lifts that the worker ran into, in seconds since 1970, where its format says so."""
    denied: tuple[str, ...] = ()
    """Names of tools that the worker's own permission rules refused."""
    answer: bytes | None = None
    """The final answer as it was given: JSON where the adapter asked for it, but nothing is checked here."""
    tokens: Tokens | None = None
    """`None`: unknown."""
    live_tokens: int = 0
    """Tokens of the finished messages so far, for a display; 0 where the format does not say."""
    cost_usd: float | None = None
    unknown_events: int = 0
    """Lines that this version of the parser cannot read. They count as activity, never as failure."""
    message: str = ""
    """Id of the latest message, so that what comes in parts counts once."""
    agent: str = ""
    """What the program calls itself, with its version, where its format says."""


class Trace(Protocol):
    """Reads one format of events."""

    def feed(self, state: TraceState, line: bytes, elapsed_s: float) -> TraceState:
        """Pure: the state after one more line. Survives any bytes; never raises."""
