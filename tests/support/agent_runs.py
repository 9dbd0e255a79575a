"""Runs a worker adapter for real: in bubblewrap, under the kernel's supervision, on a real repository."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Failure
from longwatch.kernel.process import new_cookie, run, tail
from longwatch.migrate.attempt.result import RESULT_SCHEMA
from longwatch.migrate.attempt.trace import TraceMonitor, TraceState
from longwatch.migrate.attempt.workers import WORKERS, Launch, RunEnd, WorkRequest
from longwatch.migrate.settings import WorkerSettings
from longwatch.sandbox import SANDBOXES, Plan
from tests.support.repositories import commit_all, new_repository, write

AGENTS = Path(__file__).parents[1] / "agents" / "node_modules"
NONCE = "nonce-0123456789"
REPOSITORY = Path("/repo")
PATH = "/usr/local/bin:/usr/bin:/bin"


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    record: ProcessRecord
    state: TraceState
    answer: bytes | None
    failure: Failure | None
    left: tuple[int, ...]
    """Processes that still carry the run's mark."""
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


def work(tmp_path: Path, asked: WorkRequest, *, wall_s: float = 60.0) -> Ran:
    adapter = WORKERS[asked.settings.adapter]()
    launch = adapter.prepare(asked)
    monitor = TraceMonitor(adapter.trace(), adapter.patience(asked.settings))
    cookie = new_cookie()
    command = _command(tmp_path, launch, wall_s)
    record = run(command, cookie=cookie, monitor=monitor)
    log = tail(command.log, 40)
    end = RunEnd(
        exit_code=record.exit_code, limit=record.limit, limit_detail=record.limit_detail, log_tail=log
    )
    return Ran(
        record=record,
        state=monitor.state,
        answer=adapter.answer(monitor.state, asked.answer[0]),
        failure=adapter.classify(monitor.state, end, datetime.now(UTC)),
        left=marked(cookie),
        log=log,
    )


def _command(tmp_path: Path, launch: Launch, wall_s: float) -> Command:
    plan = Plan(
        workdir=REPOSITORY,
        writable=((tmp_path / "repo", REPOSITORY), *launch.writable),
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
