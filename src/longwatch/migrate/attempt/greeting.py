"""Starts an agent in its sandbox and asks who it is: the proof that it starts, for `doctor`. No model is asked."""

import os
import tempfile
from pathlib import Path

from longwatch.kernel.child import Command
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import run, tail
from longwatch.migrate.attempt.trace import TraceMonitor
from longwatch.migrate.attempt.workers import WORKERS, WorkRequest
from longwatch.migrate.bench import Bench, bench_of
from longwatch.migrate.place import Place

_WALL_S = 60.0


def greet(place: Place) -> str:
    """Return what the agent of an `acp` worker calls itself, with its version.

    Raises:
        ConfigError: it does not start, or does not speak the protocol; the message holds its last words.
    """
    bench = bench_of(place, place.settings.worker.argv[:1])
    # Not in the temporary folder: a sandbox has its own.
    with tempfile.TemporaryDirectory(prefix="greeting-", dir=place.watch.hidden) as name:
        folder = Path(name)
        checkout = folder / "repo"
        checkout.mkdir()
        asked = _request(place, bench, checkout)
        adapter = WORKERS["acp"]()
        launch = adapter.prepare(asked)
        plan = bench.plan(checkout, environment={}, readonly=launch.readonly, network=launch.network)
        command = Command(
            argv=bench.sandbox.wrap(launch.argv, plan),
            cwd=checkout,
            environment={**plan.environment, **launch.environment},
            log=folder / "log",
            limits=Limits(wall_s=_WALL_S),
            phase="greeting",
            contained=bench.sandbox.contained,
            stdin=launch.stdin,
            secrets=tuple(asked.environment.values()),
        )
        monitor = TraceMonitor(adapter.trace(), None)
        record = run(command, monitor=monitor)
        if record.ok:
            return monitor.state.agent or "nothing"
        raise ConfigError(record.limit_detail or tail(command.log, 3) or "it said nothing")


def _request(place: Place, bench: Bench, checkout: Path) -> WorkRequest:
    worker = place.settings.worker
    inside = bench.inside(checkout)
    return WorkRequest(
        prompt="",
        nonce="",
        schema=b"",
        job="",
        number=1,
        settings=worker,
        environment={name: os.environ[name] for name in worker.environment if name in os.environ},
        search_path=os.environ.get("PATH", ""),
        home=Path.home(),
        base=place.watch.root,
        workdir=inside,
        private=(checkout, inside),
        answer=(checkout / "result.json", inside / "result.json"),
        confined=bench.sandbox.confines,
    )
