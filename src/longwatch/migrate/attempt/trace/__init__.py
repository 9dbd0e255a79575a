"""What a worker's event stream tells while it runs: pure parsers, one file per format (specification M8)."""

from longwatch.migrate.attempt.trace.acp import AcpTrace
from longwatch.migrate.attempt.trace.claude import ClaudeTrace
from longwatch.migrate.attempt.trace.codex import CodexTrace
from longwatch.migrate.attempt.trace.model import Ending, Item, ProviderError, Tokens, Trace, TraceState
from longwatch.migrate.attempt.trace.plain import PlainTrace
from longwatch.migrate.attempt.trace.watch import Patience, TraceMonitor, reason_to_end

__all__ = [
    "AcpTrace",
    "ClaudeTrace",
    "CodexTrace",
    "Ending",
    "Item",
    "Patience",
    "PlainTrace",
    "ProviderError",
    "Tokens",
    "Trace",
    "TraceMonitor",
    "TraceState",
    "reason_to_end",
]
