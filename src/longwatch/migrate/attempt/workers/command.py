"""The `command` worker: any program. The prompt comes on its standard input, its answer lies in a file.

It finds three variables: LONGWATCH_NONCE, LONGWATCH_RESULT (the path of the file to write) and LONGWATCH_SCHEMA (the
JSON Schema of that file).
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.files import read_bounded
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.result import MAX_RESULT_BYTES
from longwatch.migrate.attempt.trace import Patience, PlainTrace, Trace, TraceState
from longwatch.migrate.attempt.workers.model import Launch, Mount, WorkRequest
from longwatch.migrate.attempt.workers.verdict import RunEnd, of_exit
from longwatch.migrate.settings import WorkerSettings


class CommandWorker:
    """The adapter."""

    where_to_answer = "the file whose path stands in the environment variable LONGWATCH_RESULT"

    def prepare(self, request: WorkRequest) -> Launch:
        """Return the person's own command line; a missing one is a `ConfigError`."""
        argv, shown = reachable((*request.settings.argv, *request.settings.options), request)
        if not request.settings.argv:
            raise ConfigError(
                'longwatch.toml: [worker] argv is empty; name the program: argv = ["./agent.sh"]'
            )
        return Launch(
            argv=argv,
            stdin=request.prompt.encode(),
            environment={**request.environment, **contract_variables(request)},
            readonly=shown,
            writable=(answer_folder(request),),
            network=request.settings.network,
        )

    def trace(self) -> Trace:
        """Every line is a sign of life."""
        return PlainTrace()

    def patience(self, settings: WorkerSettings) -> Patience | None:  # noqa: ARG002 - the protocol's signature
        """Any program may be silent as long as the idle limit allows."""
        return None

    def answer(self, state: TraceState, path: Path) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        """Return the result file's content."""
        return read_answer(path)

    def classify(self, state: TraceState, end: RunEnd, now: datetime) -> Failure | None:  # noqa: ARG002 - the protocol's signature
        """Only its exit speaks."""
        return of_exit(end)

    def unserved(self, state: TraceState) -> bool:  # noqa: ARG002 - the protocol's signature
        """Nobody can tell."""
        return False


def reachable(argv: tuple[str, ...], request: WorkRequest) -> tuple[tuple[str, ...], tuple[Mount, ...]]:
    """Return the command line as it reads inside, and the person's own files in it, which have to be shown there.

    A word that is a file beside longwatch.toml means that file, wherever the checkout stands.
    """
    words, shown = [], []
    for word in argv:
        file = request.base / word
        own = "/" in word and file.is_file()
        words.append(str(file.resolve()) if own else word)
        if own and request.confined:
            shown.append((file.resolve(), file.resolve()))
    return tuple(words), tuple(shown)


def contract_variables(request: WorkRequest) -> Mapping[str, str]:
    """Return the variables that tell a program what its answer must be and where it belongs."""
    return {
        "LONGWATCH_NONCE": request.nonce,
        "LONGWATCH_RESULT": str(request.answer[1]),
        "LONGWATCH_SCHEMA": request.schema.decode(),
    }


def answer_folder(request: WorkRequest) -> tuple[Path, Path]:
    """Return the folder of the result file, on the host and inside."""
    host, inside = request.answer
    return host.parent, inside.parent


def read_answer(path: Path) -> bytes | None:
    """Return what the worker wrote there, or `None`. A link, a FIFO or a huge file is refused with `PathError`."""
    try:
        return read_bounded(path, MAX_RESULT_BYTES)
    except FileNotFoundError:
        return None
