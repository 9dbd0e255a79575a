"""Runs a worker adapter for real: in bubblewrap, under the kernel's supervision, on a real repository."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Failure
from longwatch.kernel.process import new_cookie, run, tail
from longwatch.migrate.attempt.result import RESULT_SCHEMA
from longwatch.migrate.attempt.trace import Patience, Trace, TraceMonitor, TraceState
from longwatch.migrate.attempt.workers import WORKERS, Launch, RunEnd, WorkRequest
from longwatch.migrate.settings import WorkerSettings
from longwatch.sandbox import SANDBOXES, Plan
from tests.support.repositories import commit_all, new_repository, write

AGENTS = (Path(__file__).parents[1] / "agents" / "node_modules").resolve()
NONCE = "nonce-0123456789"
REPOSITORY = Path("/repo")
PATH = "/usr/local/bin:/usr/bin:/bin"


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    record: ProcessRecord
    state: TraceState
    answer: bytes | None
    failure: Failure | None
    log: str


def request(tmp_path: Path, settings: WorkerSettings, **given: object) -> WorkRequest:
    """What a worker is asked for, with a repository and all folders in place."""
    repository = new_repository(tmp_path / "repo")
    write(repository, "hello.py", "print(40 + 1)\n")
    commit_all(repository)
    for name in ("private", "answer", "home"):
        (tmp_path / name).mkdir(exist_ok=True)
    asked = WorkRequest(
        prompt="Make hello.py print 42.",
        nonce=NONCE,
        schema=RESULT_SCHEMA,
        job="hello",
        number=1,
        settings=settings,
        environment={},
        search_path=PATH,
        home=tmp_path / "home",
        base=tmp_path,
        workdir=REPOSITORY,
        private=(tmp_path / "private", Path("/private")),
        answer=(tmp_path / "answer" / "result.json", Path("/answer/result.json")),
        confined=True,
    )
    return msgspec.structs.replace(asked, **given)


class Hurried(TraceMonitor):
    """Loses its patience a second after the model was asked, however long the program takes to start."""

    def __init__(self, trace: Trace, patience: Patience, asked: Callable[[], object]) -> None:
        super().__init__(trace, patience)
        self._start, self._asked = patience, asked

    def reason_to_end(self, elapsed_s: float) -> str | None:
        if self._patience is self._start and self._asked():
            self._patience = msgspec.structs.replace(self._start, start_s=elapsed_s + 1.0)
        return super().reason_to_end(elapsed_s)


def work(
    tmp_path: Path,
    asked: WorkRequest,
    *,
    wall_s: float = 60.0,
    expose: tuple[Path, ...] = (),
    nested: bool | None = None,
    hurry: Callable[[], object] | None = None,
) -> Ran:
    """Let the worker work, and see that nothing of it lives on. `nested` overrules whether it may make a sandbox of its own."""
    adapter = WORKERS[asked.settings.adapter]()
    launch = adapter.prepare(asked)
    patience = adapter.patience(asked.settings)
    monitor = TraceMonitor(adapter.trace(), patience)
    if hurry is not None and patience is not None:
        monitor = Hurried(adapter.trace(), patience, hurry)
    cookie = new_cookie()
    if nested is not None:
        launch = msgspec.structs.replace(launch, nested=nested)
    command = _command(tmp_path, launch, wall_s, expose)
    record = run(command, cookie=cookie, monitor=monitor)
    assert marked(cookie) == (), "a process of the worker lives on"
    log = tail(command.log, 40)
    end = RunEnd(
        exit_code=record.exit_code, limit=record.limit, limit_detail=record.limit_detail, log_tail=log
    )
    return Ran(
        record=record,
        state=monitor.state,
        answer=adapter.answer(monitor.state, asked.answer[0]),
        failure=adapter.classify(monitor.state, end, datetime.now(UTC)),
        log=log,
    )


def _command(tmp_path: Path, launch: Launch, wall_s: float, expose: tuple[Path, ...]) -> Command:
    plan = Plan(
        workdir=REPOSITORY,
        writable=((tmp_path / "repo", REPOSITORY), *launch.writable),
        expose=expose,
        readonly=launch.readonly,
        network=launch.network,
        nested=launch.nested,
        hand_on_environment=True,
    )
    return Command(
        argv=SANDBOXES["bubblewrap"]().wrap(launch.argv, plan),
        cwd=tmp_path,
        environment={"PATH": PATH, "HOME": "/home/worker", "LANG": "C.UTF-8", **launch.environment},
        stdin=launch.stdin,
        log=tmp_path / "worker.log",
        limits=Limits(wall_s=wall_s, grace_s=2.0),
        phase="worker",
    )


def marked(cookie: str) -> tuple[int, ...]:
    """Processes whose environment holds the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if cookie.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return tuple(found)
