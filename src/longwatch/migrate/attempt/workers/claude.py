"""The `claude` worker: Claude Code without its screen, measured with 2.1.197. See `claude_failures` for its errors.

The program gets a home of its own with a copy of the person's credentials. It has no sandbox: inside ours, where it
is an ordinary user, it may do everything that ours allows; without one it may edit files and run commands only in its
own rules. Its key is visible to the commands that its model runs: a key with a spending limit is the answer to that.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace import ClaudeTrace, Patience, Trace, TraceState
from longwatch.migrate.attempt.workers.claude_failures import CLAUDE_FAILURES
from longwatch.migrate.attempt.workers.model import TOOLS, Launch, WorkRequest
from longwatch.migrate.attempt.workers.programs import native
from longwatch.migrate.attempt.workers.verdict import RunEnd, classify
from longwatch.migrate.settings import WorkerSettings

_NATIVE = "claude-code-linux-*/claude"
_CREDENTIALS = ".credentials.json"
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
"""The person's own values win."""
_ALLOWED = "Bash Edit Write Read Glob Grep"


class ClaudeWorker:
    """The adapter."""

    where_to_answer = "the structured output of this session"

    def prepare(self, request: WorkRequest) -> Launch:
        """Write its home, and return the command line."""
        path = native(request, "claude", _NATIVE)
        inside = TOOLS / "claude" if request.confined else path
        _write_home(request)
        return Launch(
            argv=(str(inside), *_arguments(request)),
            stdin=request.prompt.encode(),
            environment=_variables(request),
            readonly=((path, inside),) if request.confined else (),
            writable=(request.private,),
            network=True,
        )

    def trace(self) -> Trace:
        """Its stream of JSON events."""
        return ClaudeTrace()

    def patience(self, settings: WorkerSettings) -> Patience | None:
        """Claude waits five minutes and more in the middle of a stream: it must be watched."""
        return Patience(start_s=settings.model_start_timeout_s, idle_s=settings.model_idle_timeout_s)

    def answer(self, state: TraceState, path: Path) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        """Return its structured output; words are none."""
        return state.answer

    def classify(self, state: TraceState, end: RunEnd, now: datetime) -> Failure | None:
        """Read its events and words with the table of claude."""
        return classify(state, end, CLAUDE_FAILURES, now)

    def unserved(self, state: TraceState) -> bool:  # noqa: ARG002 - the protocol's signature
        """It counts itself, also where it fails."""
        return False


def _arguments(request: WorkRequest) -> tuple[str, ...]:
    settings = request.settings
    free = ("--dangerously-skip-permissions",)
    ruled = ("--permission-mode", "acceptEdits", "--allowedTools", _ALLOWED)
    return (
        *("-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"),
        # Servers that the repository names would be programs that nobody asked for.
        *("--strict-mcp-config", "--json-schema", request.schema.decode()),
        *(free if request.confined else ruled),
        *(("--model", settings.model) if settings.model else ()),
        *(("--max-budget-usd", f"{request.budget_usd:g}") if request.budget_usd else ()),
        *settings.options,
    )


def _variables(request: WorkRequest) -> Mapping[str, str]:
    timeout_ms = round(request.settings.model_idle_timeout_s * 1000)
    return {
        **_QUIET,
        "API_TIMEOUT_MS": str(timeout_ms),
        **request.environment,
        "CLAUDE_CONFIG_DIR": str(request.private[1]),
        # Its usage limits name a time of day: in this zone.
        "TZ": "UTC",
    }


def _write_home(request: WorkRequest) -> None:
    source = Path(request.environment.get("CLAUDE_CONFIG_DIR") or request.home / ".claude") / _CREDENTIALS
    if source.is_file():
        files.replace(request.private[0] / _CREDENTIALS, source.read_bytes())
