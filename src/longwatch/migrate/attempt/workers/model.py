"""What a worker adapter is asked for and what it gives: values, and the Protocol that every adapter fulfils."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace import Patience, Trace, TraceState
from longwatch.migrate.attempt.workers.verdict import RunEnd
from longwatch.migrate.settings import WorkerSettings

Mount = tuple[Path, Path]
"""A path on the host, and where it stands inside the sandbox."""
TOOLS = Path("/agent")
"""Where the worker's own program stands inside a sandbox."""


class WorkRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, as an adapter sees it. Without a sandbox, paths inside are the paths on the host."""

    prompt: str
    nonce: str
    schema: bytes
    """JSON Schema of the answer."""
    job: str
    number: int
    """Of the attempt; counts from 1."""
    settings: WorkerSettings
    environment: Mapping[str, str]
    """The variables that the person lets the worker see, with their values."""
    search_path: str
    """PATH of the host, where the agent's program is looked for."""
    home: Path
    """The person's home, where an agent program keeps its credentials."""
    base: Path
    """What relative paths in the settings start from."""
    workdir: Path
    """Of the repository, inside."""
    private: Mount
    """An existing, empty folder of this attempt alone for generated configuration."""
    answer: Mount
    """Where the result file is to be written; its folder exists and is this attempt's alone."""
    confined: bool
    """A sandbox stands around the worker."""
    budget_usd: float = 0.0
    """What this attempt may cost at most; 0: no limit."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How to start the worker's program."""

    argv: tuple[str, ...]
    """As it reads inside."""
    environment: Mapping[str, str]
    """On top of PATH, HOME and LANG; it holds secrets, so it must not stand in a command line."""
    stdin: bytes = b""
    readonly: tuple[Mount, ...] = ()
    writable: tuple[Mount, ...] = ()
    network: bool = False
    nested: bool = False
    """It brings a sandbox of its own and needs user namespaces."""


class WorkerAdapter(Protocol):
    """Knows one kind of worker: how it is started, read, and understood when it fails."""

    @property
    def where_to_answer(self) -> str:
        """What the prompt says about it."""

    def prepare(self, request: WorkRequest) -> Launch:
        """Write what the worker needs into the private folder, and say how it is started.

        Raises:
            ConfigError: the program or its configuration cannot be used; the message says what to mend.
        """

    def trace(self) -> Trace:
        """Return the parser of its output."""

    def patience(self, settings: WorkerSettings) -> Patience | None:
        """Return how long signs of its model are waited for; `None` if it gives none."""

    def answer(self, state: TraceState, path: Path) -> bytes | None:
        """Return the raw answer, from its output or from the result file at `path` on the host; `None`: there is none.

        Raises:
            PathError: something else than a small regular file stands at `path`.
        """

    def classify(self, state: TraceState, end: RunEnd, now: datetime) -> Failure | None:
        """Return why the run is no claim, or `None`. `now` is in UTC."""

    def unserved(self, state: TraceState) -> bool:
        """Return whether it is known that no request was served, though its program does not count: it cost nothing."""
