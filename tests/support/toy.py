"""A line of work that does nothing but what a test asks of it: the smallest application of the kernel.

`python -m tests.support.toy FOLDER [confirm]` is the program of its steps; `python -m tests.support.toy supervise ROOT`
runs a supervisor on a watch that `make` prepared.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longwatch.executors.local import LocalExecutor
from longwatch.kernel import lease
from longwatch.kernel.errors import FailureClass, IntegrityError, QuotaError
from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import (
    Decision,
    Failed,
    Failure,
    Finish,
    Job,
    Outcome,
    Recovery,
    Start,
    Step,
    Stopped,
    Succeeded,
    Wait,
)
from longwatch.kernel.program import Work, main
from longwatch.kernel.settings import Backoff, Host, KernelSettings, Observe
from longwatch.kernel.store import Store
from longwatch.kernel.supervisor import Supervisor
from longwatch.kernel.watch import Watch

PROJECT = Path(__file__).parents[2]


class ToyStep(Step, frozen=True, kw_only=True, tag="toy"):
    do: str = "succeed"
    """succeed, die, fail, limited, log-integrity, integrity, hang, deaf: what its program does after `sleep_s`."""
    sleep_s: float = 0.0
    once: str = ""
    """A file that each effect appends a line to."""
    times: int = 0
    """With `fail`: how often this job fails before it succeeds (counted in the state)."""


class ToyState(msgspec.Struct, frozen=True, kw_only=True):
    plan: tuple[ToyStep, ...] = ()
    done: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    accepted: int = 0


class ToyLine:
    state_type = ToyState
    step_type: object = ToyStep

    def __init__(
        self, root: Path, *, side_by_side: bool = False, wall_s: float = 60.0, grace_s: float = 1.0
    ) -> None:
        self.root, self.side_by_side, self.wall_s, self.grace_s = root, side_by_side, wall_s, grace_s

    def begin(self) -> ToyState:
        return ToyState()

    def decide(self, state: ToyState, running: Mapping[str, ToyStep], now: Instant) -> Decision[ToyStep]:
        done = set(state.done)
        tries = len(state.outcomes)
        todo = [_numbered(step, tries) for step in state.plan if step.id not in done]
        names = {name.rsplit(".", 1)[0] for name in running}
        todo = [step for step in todo if step.id.rsplit(".", 1)[0] not in names]
        if todo and (self.side_by_side or not running):
            return Start(tuple(todo if self.side_by_side else todo[:1]))
        return Wait("steps run") if running else Finish(Verdict.COMPLETE, "all toys are done")

    def apply(
        self, state: ToyState, step: ToyStep, outcome: Outcome, now: Instant
    ) -> tuple[ToyState, tuple[Note, ...]]:
        name = step.id.rsplit(".", 1)[0]
        word = type(outcome).__name__.lower()
        done = (*state.done, name) if isinstance(outcome, Succeeded) else state.done
        told = (*state.outcomes, f"{name}:{word}")
        return msgspec.structs.replace(state, done=done, outcomes=told), (Note(f"toy.{word}", name),)

    def reopen(self, state: ToyState) -> ToyState:
        return state

    def resume(self, state: ToyState) -> ToyState:
        return state

    def accept(self, state: ToyState, *, refresh: bool) -> ToyState:
        return msgspec.structs.replace(state, accepted=state.accepted + 1)

    def job(self, step: ToyStep, *, confirm: bool) -> Job:
        mode = ("confirm",) if confirm else ()
        return Job(
            argv=(sys.executable, "-m", "tests.support.toy", *mode),
            cwd=PROJECT,
            limits=Limits(wall_s=self.wall_s, grace_s=self.grace_s),
        )


def _numbered(step: ToyStep, tries: int) -> ToyStep:
    return msgspec.structs.replace(step, id=f"{step.id}.{tries}")


# -- the program of a step


def perform(work: Work[ToyStep]) -> Outcome:
    step = work.step
    if "confirm" in sys.argv:
        return _confirm(step)
    work.progress("toy", step.do)
    if step.do == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if step.once:
        _effect(step)
    if not _sleep(work):
        return Stopped("asked to stop")
    match step.do:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "die-once":
            _die_once(work)
        case "fail":
            return Failed(Failure(kind=FailureClass.FAULT, message="toy failed"))
        case "transient":
            return Failed(Failure(kind=FailureClass.TRANSIENT, message="toy waits", retry_after_s=0.1))
        case "limited" if len(Path(step.once).read_text(encoding="utf-8").splitlines()) == 1:
            raise QuotaError("the toy is used up", retry_after_s=3600.0)
        case "log-integrity":
            print("integrity error: digest mismatch, evidence is wrong")
            return Failed(
                Failure(kind=FailureClass.FAULT, message="a digest of integrity, quota and auth errors")
            )
        case "integrity":
            raise IntegrityError("the toy is not what it was")
    return Succeeded(msgspec.Raw(b'"ok"'))


def _die_once(work: Work[ToyStep]) -> None:
    mark = work.folder / "died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _sleep(work: Work[ToyStep]) -> bool:
    end = time.monotonic() + work.step.sleep_s
    while time.monotonic() < end:
        if work.should_stop() and work.step.do != "deaf":
            return False
        time.sleep(0.02)
    return True


def _effect(step: ToyStep) -> None:
    with Path(step.once).open("a", encoding="utf-8") as file:
        file.write(step.id + "\n")


def _confirm(step: ToyStep) -> Outcome:
    """Ask the outside world: is the effect there? Make it only if it is not."""
    effects = Path(step.once).read_text(encoding="utf-8") if Path(step.once).exists() else ""
    if f"{step.id}\n" not in effects:
        _effect(step)
    return Succeeded(msgspec.Raw(b'"confirmed"'))


# -- a supervisor for tests


def make(root: Path, plan: tuple[ToyStep, ...]) -> Watch:
    watch = Watch(root)
    watch.steps.mkdir(parents=True, exist_ok=True)
    Store.create(watch.database, msgspec.json.encode(ToyState(plan=plan))).close()
    return watch


SETTINGS = KernelSettings(
    kind="toy",
    backoff=Backoff(first_s=0.05, max_s=0.2, max_faults=4, park_for_quota=True),
    host=Host(free_disk_bytes=0),
    observe=Observe(heartbeat_s=0.1),
)


def step(
    name: str,
    do: str = "succeed",
    *,
    recovery: Recovery = Recovery.RERUN,
    sleep_s: float = 0.0,
    once: str = "",
) -> ToyStep:
    return ToyStep(id=name, recovery=recovery, do=do, sleep_s=sleep_s, once=once)


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}


def supervisor(
    watch: Watch, line: ToyLine | None = None, settings: KernelSettings = SETTINGS
) -> Supervisor[ToyState, ToyStep]:
    store = Store.open(watch.database)
    return Supervisor(watch, settings, line or ToyLine(watch.root), LocalExecutor(environment()), store)


def state(watch: Watch) -> ToyState:
    store = Store.read(watch.database)
    try:
        return msgspec.json.decode(store.snapshot().line, type=ToyState)
    finally:
        store.close()


def supervise(root: Path) -> int:
    watch = Watch(root)
    held = lease.acquire(watch.lease)
    code = supervisor(watch).run()
    held.close()
    return int(code)


if __name__ == "__main__":
    if sys.argv[1] == "supervise":
        sys.exit(supervise(Path(sys.argv[2])))
    sys.exit(main(Path(sys.argv[-1]), ToyStep, perform))
