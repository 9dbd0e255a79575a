"""The learn line: what to do next, and what an outcome changes. Pure; the programs of the steps have the effects."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from longwatch.kernel.errors import StateError
from longwatch.kernel.instant import Instant
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Verdict
from longwatch.kernel.limits import Limits
from longwatch.kernel.line import Cycle, Decision, Finish, Job, Outcome, Start, Wait
from longwatch.learn.acceptance import Lord
from longwatch.learn.outcomes import after
from longwatch.learn.pruning import keep
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import Experiment, LearnState, Stage
from longwatch.learn.steps import (
    BASE,
    Adopt,
    Anchor,
    Audit,
    Bind,
    Challenger,
    Confirm,
    LearnStep,
    OfGeneration,
    Prepare,
    Prune,
    Train,
    Window,
    ident,
)

DAY_S = 86_400.0
ENVIRONMENT = {
    # Training sets it for its own sums; every exam shall be computed with the same, before and after.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Threads that wait in a loop starve everything else on a machine that somebody also works on.
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
T = TypeVar("T")


class LearnLine:
    """One experiment after another, for as long as the curriculum gives tasks."""

    state_type = LearnState
    step_type: object = LearnStep

    def __init__(self, settings: LearnSettings, root: Path) -> None:
        """`root` is the watch's folder."""
        self._settings, self._root = settings, root

    def begin(self) -> LearnState:
        """Return the state of a new watch."""
        schedule = Lord(q=self._settings.acceptance.q)
        return LearnState(schedule=schedule, next_row=self._settings.curriculum.start_row)

    def decide(
        self,
        state: LearnState,
        running: Mapping[str, LearnStep],
        now: Instant,  # noqa: ARG002 - the protocol's signature
    ) -> Decision[LearnStep]:
        """Return what to do next."""
        experiment = state.experiment
        preparing = any(isinstance(step, Prepare) for step in running.values())
        own = [step for step in running.values() if step.number == experiment.number]
        if own:
            ahead = not preparing and any(isinstance(step, Train) for step in own) and _lacks_next(state)
            return Start((_ahead(state, beside=True),)) if ahead else Wait("a step is running")
        if experiment.stage is Stage.PREPARE:
            if preparing:
                return Wait("the next experiment's tasks come first")
            if state.exhausted and experiment.confirmation is None:
                return Finish(Verdict.COMPLETE, f"The curriculum is exhausted: {state.exhausted}")
        step = self._step(state, experiment)
        if isinstance(step, OfGeneration) and step.number == experiment.number:
            step = msgspec.structs.replace(step, generation=experiment.generation)
        return Start((step,))

    def apply(
        self, state: LearnState, step: LearnStep, outcome: Outcome, now: Instant
    ) -> tuple[LearnState, tuple[Note, ...]]:
        """Return the state after an outcome, and what to say about it."""
        counted = msgspec.structs.replace(state, serial=state.serial + 1)
        return after(self._settings, counted, step, outcome, now)

    def reopen(self, state: LearnState) -> LearnState:
        """A watch in which nothing was done yet begins as its file says now; another keeps no view of the world."""
        return state if state.serial else self.begin()

    def resume(self, state: LearnState) -> LearnState:
        """It never waits by itself."""
        return state

    def accept(self, state: LearnState, *, refresh: bool) -> LearnState:  # noqa: ARG002 - the protocol's signature
        """A person looked: the experiment goes on where it stands."""
        return state

    def job(self, step: LearnStep, *, confirm: bool) -> Job:  # noqa: ARG002 - no step of this line asks the world
        """Return how a step's program is run."""
        argv = (sys.executable, "-I", "-W", "ignore", "-m", "longwatch.learn.program")
        return Job(
            argv=argv,
            cwd=self._root,
            limits=Limits(wall_s=30 * DAY_S, grace_s=12.0),
            environment=ENVIRONMENT,
        )

    def _step(self, state: LearnState, experiment: Experiment) -> LearnStep:
        number = experiment.number
        name = ident(experiment.stage, number, state.serial)
        if experiment.stage is Stage.PREPARE:
            return _prepare(state, name)
        if experiment.stage in {Stage.PRUNE, Stage.BIND}:
            return self._beforehand(state, name)
        if experiment.stage is Stage.CHECK:
            return self._anchor(state, name, state.champion)
        if experiment.stage is Stage.AUDIT:
            return Audit(id=name, number=number, champion=state.champion)
        window = _given(experiment.window, experiment, Window)
        if experiment.stage is Stage.TRAIN:
            return Train(
                id=name,
                number=number,
                window=window,
                champion=state.champion,
                replay=state.replay,
                continued=any(one.experiment == number for one in state.continuations),
            )
        return self._decisive(state, experiment, name, window)

    def _beforehand(self, state: LearnState, name: str) -> LearnStep:
        number = state.experiment.number
        if state.experiment.stage is Stage.PRUNE:
            return Prune(id=name, number=number, keep=keep(state))
        previous = state.history[-1].generation if state.history else ""
        return Bind(id=name, number=number, champion=state.champion, previous=previous)

    def _anchor(self, state: LearnState, name: str, candidate: str) -> Anchor:
        sealed = _given(state.sealed, state.experiment, Window)
        rivals = tuple(rival for rival in dict.fromkeys((BASE, state.best)) if rival != candidate)
        return Anchor(
            id=name, number=state.experiment.number, window=sealed, candidate=candidate, rivals=rivals
        )

    def _decisive(self, state: LearnState, experiment: Experiment, name: str, window: Window) -> LearnStep:
        challenger = _given(experiment.challenger, experiment, Challenger)
        number = experiment.number
        if experiment.stage is Stage.CONFIRM and experiment.confirmation is not None:
            return Confirm(
                id=name,
                number=number,
                window=experiment.fresh[-1] if experiment.fresh else window,
                champion=state.champion,
                challenger=challenger,
                confirmation=experiment.confirmation,
                block=experiment.block,
            )
        if experiment.stage is Stage.ANCHOR:
            return self._anchor(state, name, challenger.adapter)
        if experiment.ruling is None:
            raise StateError(f"experiment {number} is to be adopted without a ruling")
        return Adopt(
            id=name,
            number=number,
            window=window,
            fresh=experiment.fresh,
            challenger=challenger,
            champion=state.champion,
            ruling=experiment.ruling,
            replay=state.replay,
        )


def _lacks_next(state: LearnState) -> bool:
    """Return whether the next experiment has no window yet, and may get one."""
    return state.pending is None and not state.exhausted


def _prepare(state: LearnState, name: str) -> Prepare:
    """Return the preparation that the experiment waits for.

    The next experiment's window always comes before further windows of fresh problems, prepared beside the training or
    not: which rows are in which window hangs on what was decided, never on what was faster.
    """
    experiment = state.experiment
    undecided = experiment.confirmation is not None
    if undecided and _lacks_next(state):
        return msgspec.structs.replace(_ahead(state), cycle=Cycle.CONTINUES)
    return Prepare(
        id=name,
        number=experiment.number,
        window=state.windows + 1,
        start_row=state.next_row,
        sealed=state.sealed is None,
        fresh_only=undecided,
        cycle=Cycle.CONTINUES if undecided else Cycle.AHEAD,
    )


def _ahead(state: LearnState, *, beside: bool = False) -> Prepare:
    number = state.experiment.number + 1
    return Prepare(
        id=ident(Stage.PREPARE, number, state.serial),
        number=number,
        window=state.windows + 1,
        start_row=state.next_row,
        beside=beside,
    )


def _given(value: T | None, experiment: Experiment, kind: type[T]) -> T:
    if value is None:
        raise StateError(
            f"experiment {experiment.number} is in stage {experiment.stage} without a {kind.__name__}"
        )
    return value
