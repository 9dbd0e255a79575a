"""The `replay` worker: repeats recorded attempts instead of asking a model, for trials and tests of a whole watch.

`[worker] argv` names a folder with one folder `<job>/<number>/` for each recorded attempt. There may lie in it:
`change.patch`, applied with `git apply`; `result.json`, in which `@NONCE@` stands for the nonce of the attempt; and
`attempt.toml`, which says how the program behaves. An attempt that was not recorded repeats the one before it.
"""

from pathlib import Path

import msgspec

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.attempt.result import Status
from longwatch.migrate.attempt.workers.command import CommandWorker, answer_folder
from longwatch.migrate.attempt.workers.model import TOOLS, Launch, WorkRequest

_PROGRAM = Path(__file__).with_name("replay_program.py")


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`attempt.toml`."""

    print: tuple[str, ...] = ()
    """Lines that it prints at the start."""
    sleep_s: float = 0.0
    """Before the change."""
    linger_s: float = 0.0
    """Between the change and the result."""
    leave_process: bool = False
    """It leaves a process behind that escaped from its session."""
    claim: Status | None = None
    """Write a result that says so; its list of changed files is read from the patch. A `result.json` wins."""
    reason: str = ""
    """For `claim`."""
    exit_code: int = 0


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What the program is told on its standard input."""

    behaviour: Behaviour
    patch: str | None
    """Path inside."""
    result: str | None
    """What it writes as its answer."""
    answer: str
    """Path inside."""


class ReplayWorker(CommandWorker):
    """The adapter: a command whose program is ours."""

    def prepare(self, request: WorkRequest) -> Launch:
        """Read the recorded attempt, and return how our small program repeats it."""
        recorded = _recorded(request)
        program, folder = (
            (TOOLS / "replay.py", TOOLS / "recorded") if request.confined else (_PROGRAM, recorded)
        )
        return Launch(
            argv=("python3", "-I", "-S", str(program)),
            stdin=msgspec.json.encode(_script(request, recorded, folder)),
            environment=dict(request.environment),
            readonly=((_PROGRAM, program), (recorded, folder)),
            writable=(answer_folder(request),),
        )


def _recorded(request: WorkRequest) -> Path:
    if len(request.settings.argv) != 1:
        raise ConfigError(
            'longwatch.toml: [worker] argv must name the folder of attempts: argv = ["attempts"]'
        )
    job = request.base / request.settings.argv[0] / request.job
    numbers = [number for number in range(request.number, 0, -1) if (job / str(number)).is_dir()]
    if not numbers:
        raise ConfigError(f"{job} holds no recorded attempt up to {request.number}: record one as {job}/1")
    return (job / str(numbers[0])).resolve()


def _script(request: WorkRequest, recorded: Path, folder: Path) -> Script:
    behaviour = _behaviour(recorded / "attempt.toml")
    patch = recorded / "change.patch"
    return Script(
        behaviour=behaviour,
        patch=str(folder / "change.patch") if patch.is_file() else None,
        result=_result(request, recorded, behaviour),
        answer=str(request.answer[1]),
    )


def _behaviour(path: Path) -> Behaviour:
    if not path.is_file():
        return Behaviour()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Behaviour)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(f"{path}: {error}; correct the recorded attempt") from error


def _result(request: WorkRequest, recorded: Path, behaviour: Behaviour) -> str | None:
    template = recorded / "result.json"
    if template.is_file():
        return template.read_text(encoding="utf-8").replace("@NONCE@", request.nonce)
    if behaviour.claim is None:
        return None
    patch = recorded / "change.patch"
    changed = _changed(patch.read_text(encoding="utf-8", errors="replace")) if patch.is_file() else []
    answer = {
        "nonce": request.nonce,
        "status": behaviour.claim,
        "summary": f"Recorded attempt {request.job}/{recorded.name}.",
        "changed": changed,
        "reason": behaviour.reason,
    }
    return msgspec.json.encode(answer).decode()


def _changed(patch: str) -> list[str]:
    """Paths of a patch with git's headers `a/` and `b/`, deleted files too."""
    paths = {line[6:].split("\t")[0] for line in patch.splitlines() if line.startswith(("--- a/", "+++ b/"))}
    return sorted(paths)
