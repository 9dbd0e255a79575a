"""The `acp` worker: any agent that speaks the Agent Client Protocol. See `acp_failures` for what their errors mean.

The conversation is held by a small program of ours beside the agent, inside the sandbox, so that to the supervisor
this worker is like the others: one command line, a prompt on its standard input, events on its standard output.
"""

import re
from datetime import datetime
from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace import AcpTrace, Patience, Trace, TraceState
from longwatch.migrate.attempt.workers.acp_failures import ACP_FAILURES
from longwatch.migrate.attempt.workers.command import reachable
from longwatch.migrate.attempt.workers.model import TOOLS, Launch, WorkRequest
from longwatch.migrate.attempt.workers.verdict import RunEnd, classify
from longwatch.migrate.settings import WorkerSettings

PROGRAM = Path(__file__).with_name("acp_program.py")
PROGRAM_INSIDE = TOOLS / "acp.py"
_FENCED = re.compile(rb"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What the program is told on its standard input."""

    argv: tuple[str, ...]
    """The agent."""
    cwd: str
    prompt: str
    """Empty: it is only asked who it is."""
    model: str
    """Empty: the agent's own choice."""
    confined: bool


class AcpWorker:
    """The adapter."""

    where_to_answer = "your last message, and nothing else in it"

    def prepare(self, request: WorkRequest) -> Launch:
        """Return how our program is started; a missing agent is a `ConfigError`."""
        settings = request.settings
        if not settings.argv:
            raise ConfigError(
                'longwatch.toml: [worker] argv is empty; name the agent: argv = ["opencode", "acp"]'
            )
        argv, shown = reachable((*settings.argv, *settings.options), request)
        script = Script(
            argv=argv,
            cwd=str(request.workdir),
            prompt=request.prompt,
            model=settings.model,
            confined=request.confined,
        )
        return Launch(
            argv=command_line(confined=request.confined),
            stdin=msgspec.json.encode(script),
            # Usage limits name a time of day: in this zone.
            environment={**request.environment, "TZ": "UTC"},
            readonly=(*shown, (PROGRAM, PROGRAM_INSIDE)) if request.confined else (),
            network=True,
        )

    def trace(self) -> Trace:
        """What our program reports."""
        return AcpTrace()

    def patience(self, settings: WorkerSettings) -> Patience | None:
        """Agents retry in silence, some of them for ever: they must be watched."""
        return Patience(start_s=settings.model_start_timeout_s, idle_s=settings.model_idle_timeout_s)

    def answer(self, state: TraceState, path: Path) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        """Return its last message. No schema holds the model back, so a fence around the JSON is taken off."""
        fenced = _FENCED.fullmatch(state.answer or b"")
        return fenced[1] if fenced else state.answer

    def classify(self, state: TraceState, end: RunEnd, now: datetime) -> Failure | None:
        """Read its events and words with the table of all agents."""
        return classify(state, end, ACP_FAILURES, now)

    def unserved(self, state: TraceState) -> bool:  # noqa: ARG002 - the protocol's signature
        """What agents count is too different."""
        return False


def command_line(*, confined: bool) -> tuple[str, ...]:
    """Return how our program is started."""
    return ("python3", "-I", "-S", str(PROGRAM_INSIDE if confined else PROGRAM))
