"""The `codex` worker: `codex exec`, measured with 0.171.0. What its errors mean stands in `codex_failures`.

The program gets a home of its own with copies of the person's credentials and configuration, so an attempt changes
nothing of theirs. That home lies outside the temporary folders: inside one, codex runs no command and still exits
with 0. Inside our sandbox its own one is off: what it may touch is decided by ours.
"""

import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from longwatch.kernel import files
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.line import Failure
from longwatch.migrate.attempt.trace import CodexTrace, Patience, Trace, TraceState
from longwatch.migrate.attempt.workers.codex_failures import CODEX_FAILURES, REFUSALS
from longwatch.migrate.attempt.workers.model import TOOLS, Launch, WorkRequest
from longwatch.migrate.attempt.workers.programs import native
from longwatch.migrate.attempt.workers.verdict import RunEnd, classify
from longwatch.migrate.settings import WorkerSettings

_NATIVE = "codex-linux-*/vendor/*/bin/codex"
_RETRIES = {"request_max_retries": 3, "stream_max_retries": 3}
"""At most: a longer wait is ours to decide, where it is durable and shown."""
_HIDDEN = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*")
"""Variables that codex sees and the commands of its model do not."""
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - compared with, never written to


class CodexWorker:
    """The adapter."""

    where_to_answer = "your last message, and nothing else in it"

    def prepare(self, request: WorkRequest) -> Launch:
        """Write home and schema, and return the command line."""
        program, mounts = _program(request)
        host, inside = request.private
        _write_home(host, request)
        files.replace(host / "schema.json", request.schema)
        return Launch(
            argv=(program, *_arguments(request, inside)),
            stdin=request.prompt.encode(),
            environment={**request.environment, **_variables(inside)},
            readonly=mounts,
            writable=(request.private,),
            network=True,
            nested=not request.confined,
        )

    def trace(self) -> Trace:
        """Its JSON events."""
        return CodexTrace()

    def patience(self, settings: WorkerSettings) -> Patience | None:
        """Codex retries a refused connection for ever, and waits for headers for ever: it must be watched."""
        return Patience(start_s=settings.model_start_timeout_s, idle_s=settings.model_idle_timeout_s)

    def answer(self, state: TraceState, path: Path) -> bytes | None:  # noqa: ARG002 - the protocol's signature
        """Return its last message. Codex does not check it against the schema."""
        return state.answer

    def classify(self, state: TraceState, end: RunEnd, now: datetime) -> Failure | None:
        """Read its events and words with the table of codex."""
        return classify(state, end, CODEX_FAILURES, now)

    def unserved(self, state: TraceState) -> bool:
        """Codex counts only what it finished: what was refused is seen from its words."""
        errors = (*state.provider_errors, *((state.error,) if state.error else ()))
        return bool(errors) and not state.actions and all(REFUSALS.search(error.text) for error in errors)


def _program(request: WorkRequest) -> tuple[str, tuple[tuple[Path, Path], ...]]:
    """Its path inside, and what must be shown for it: the program looks for its helpers beside itself."""
    path = native(request, "codex", _NATIVE)
    if not request.confined:
        return str(path), ()
    root = (
        path.parent.parent
        if path.parent.name == "bin" and (path.parents[1] / "codex-path").is_dir()
        else path
    )
    inside = TOOLS / "codex"
    return str(inside / path.relative_to(root)), ((root, inside),)


def _arguments(request: WorkRequest, inside: Path) -> tuple[str, ...]:
    model = request.settings.model
    sandbox = "danger-full-access" if request.confined else "workspace-write"
    return (
        *("exec", "--json", "--color", "never", "--ephemeral"),
        *("--output-schema", str(inside / "schema.json"), "-s", sandbox, "-C", str(request.workdir)),
        *(("-m", model) if model else ()),
        *request.settings.options,
        "-",
    )


def _variables(inside: Path) -> Mapping[str, str]:
    below = next((folder for folder in _TEMPORARY if inside.is_relative_to(folder)), None)
    elsewhere = next(folder for folder in reversed(_TEMPORARY) if folder != below)
    return {
        "CODEX_HOME": str(inside),
        "TMPDIR": str(elsewhere),
        # Its usage limits name a time of day: in this zone.
        "TZ": "UTC",
    }


def _write_home(host: Path, request: WorkRequest) -> None:
    import tomlkit  # noqa: PLC0415 - only this adapter needs it, and all are loaded

    source = Path(request.environment.get("CODEX_HOME") or request.home / ".codex")
    credentials = source / "auth.json"
    if credentials.is_file():
        files.replace(host / "auth.json", credentials.read_bytes())
    settings = _merged(_theirs(source / "config.toml"))
    files.replace(host / "config.toml", tomlkit.dumps(settings).encode())


def _theirs(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}; codex itself cannot read it either: correct it") from error


def _merged(theirs: Mapping[str, object]) -> dict[str, object]:
    """Their configuration with what unattended work needs; a program that tells them of each turn is left out."""
    kept = {key: value for key, value in theirs.items() if key != "notify"}
    shell = _table(kept.get("shell_environment_policy"))
    given = shell.get("exclude")
    hidden = [*(given if isinstance(given, list) else []), *_HIDDEN]
    providers = {name: _bounded(_table(value)) for name, value in _table(kept.get("model_providers")).items()}
    return {
        **kept,
        "approval_policy": "never",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "shell_environment_policy": {**shell, "exclude": hidden},
        **({"model_providers": providers} if providers else {}),
    }


def _bounded(provider: dict[str, object]) -> dict[str, object]:
    def bound(key: str, most: int) -> int:
        given = provider.get(key)
        return min(given, most) if isinstance(given, int) else most

    return {**provider, **{key: bound(key, most) for key, most in _RETRIES.items()}}


def _table(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}
