"""The training loop. Read it from `train` downwards.

One step: take the rows that the order names, add up their gradient in micro-batches, look whether it is sound, clip it,
move the adapter. Every so many steps, and whenever somebody asks to stop, the state is saved. Whatever happens, the state
on disk is a good one, and going on from it ends at the same bits as never having been killed (on a processor).
"""

import math
import os
import time
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, LongwatchError
from longwatch.learn import adapters, sealed
from longwatch.learn.training import checkpoints, gradient, memory, results
from longwatch.learn.training.checkpoints import Place, Tensors
from longwatch.learn.training.gradient import Measured, StopAskedError
from longwatch.learn.training.lora import Learner
from longwatch.learn.training.plan import Job, Plan, make_plan
from longwatch.learn.training.results import GaveUp, Paused, Report, Result, Setback, Trained
from longwatch.learn.training.watchdog import Pace, Watchdog

CLIP = 1.0
"""The largest norm of a gradient."""
SETBACKS = 3
"""So many steps may go wrong; after one more it gives up."""
PROOFS = 2
"""So often a resumed student is asked for the loss that it was saved with."""
ADAPTER = "adapter"
"""The folder of the finished adapter, beside the checkpoints."""


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """What every function here needs: the plan, what learns, whom to ask and whom to tell."""

    plan: Plan
    learner: Learner
    should_stop: Callable[[], bool]
    report: Callable[[Report], None]
    beat: Callable[[], None]


class HopelessError(Exception):
    """Control flow of this module: there is no state to go on from."""


def train(
    job: Job,
    model: torch.nn.Module,
    tokenizer: Any,
    *,
    should_stop: Callable[[], bool],
    report: Callable[[Report], None],
) -> Result:
    """Train an adapter for `model`, which is changed by it, or go on where an earlier call stopped or died.

    `should_stop` is asked before each micro-batch. `report` is called after each step, and for a stall from another thread.

    Raises:
        ConfigError: the student has no chat template, or the start adapter does not fit the recipe.
        IntegrityError: the folder holds another training.
        LongwatchError: a resumed model does not compute what it did when it was saved.
        NotReadyError: the disk is full; the last checkpoint stays.
    """
    make_deterministic(job.threads)
    plan = make_plan(job, model, tokenizer)
    if plan.steps == 0:
        return GaveUp(
            why=f"no row is left to train on: {plan.dropped} were longer than [training] max_tokens"
        )
    files.make_folder(job.folder)
    learner = Learner(model, job.recipe, job.start)
    with Watchdog(lambda silent_s: report(results.Stalled(silent_s=silent_s))) as watchdog:
        training = Training(
            plan=plan, learner=learner, should_stop=should_stop, report=report, beat=watchdog.beat
        )
        try:
            return make_steps(training, resume(training))
        except (HopelessError, memory.MemoryExhaustedError) as error:
            return GaveUp(why=str(error))


def make_steps(training: Training, place: Place) -> Result:
    """Make every step from `place` to the end of the plan."""
    plan, learner = training.plan, training.learner
    pace = Pace()
    while True:
        if plan.is_due(place.step) and (setback := save(training, place)):
            place = roll_back(training, place, setback)
        elif len(place.setbacks) > SETBACKS:
            return GaveUp(why="too many steps went wrong", setbacks=place.setbacks)
        elif place.step == plan.steps:
            return finish(training, place)
        elif any(setback.step == place.step for setback in place.setbacks):
            place = msgspec.structs.replace(place, step=place.step + 1)
        else:
            began_s = time.monotonic()
            try:
                place, measured = make_gradient(training, place)
            except StopAskedError:
                return pause(training, place)
            if why := gradient.trouble(measured, plan.bound_of(place)):
                place = roll_back(training, place, plan.setback(place.step, place, why))
            else:
                learner.update(plan.rate_of(place))
                place = count(plan, place, measured, time.monotonic() - began_s)
                pace = tell(training, place, pace)


def make_gradient(training: Training, place: Place) -> tuple[Place, Measured]:
    """Put the gradient of the next step into the adapter, clipped; with smaller micro-batches if need be.

    Raises:
        StopAskedError: somebody asked to stop; the gradient is not whole.
        MemoryExhaustedError: not even one row at a time fits.
    """
    rows = training.plan.rows_of(place.step)
    learner = training.learner

    def obey() -> None:
        training.beat()
        if training.should_stop():
            raise StopAskedError

    def attempt(micro_tokens: int) -> float:
        learner.forget_gradient()
        return gradient.accumulate(learner.model, rows, micro_tokens, obey)

    loss, micro_tokens = memory.fitting(attempt, rows, place.micro_tokens, _tell_halved(training, place.step))
    norm = gradient.clip(learner.parameters, CLIP)
    return msgspec.structs.replace(place, micro_tokens=micro_tokens), Measured(loss=loss, norm=norm)


def save(training: Training, place: Place) -> Setback | None:
    """Save the state if it is sound; otherwise save nothing, and say which step spoiled it."""
    plan, learner = training.plan, training.learner
    if (plan.folder / place.name).exists():
        return None
    probe = gradient.probe_loss(learner.model, plan.probe)
    why = gradient.trouble(Measured(loss=probe, norm=0.0), plan.bound_of(place))
    if why is None and not learner.finite():
        why = "a weight or a moment is NaN or infinite"
    if why is not None:
        return plan.setback(max(0, place.step - 1), place, f"after it, {why}")
    checkpoints.save(plan.folder, msgspec.structs.replace(place, probe=probe), learner.tensors())
    return None


def pause(training: Training, place: Place) -> Paused:
    """Save where training stands. A state that is not sound is not saved: the checkpoint before it is gone on from."""
    training.learner.forget_gradient()
    if save(training, place) is None:
        return Paused(place.step)
    found = checkpoints.newest(training.plan.folder, training.plan.run)
    return Paused(0 if found.place is None else found.place.step)


def resume(training: Training) -> Place:
    """Become what the newest good checkpoint holds, and prove it; or begin.

    Raises:
        IntegrityError: the folder holds another training.
        LongwatchError: as `prove`.
    """
    found = checkpoints.newest(training.plan.folder, training.plan.run)
    if found.place is None or found.tensors is None:
        place = begin(training)
    else:
        place = found.place
        prove(training, place, found.tensors)
    if found.place is not None or found.quarantined:
        lost, faults = found.lost_steps, found.quarantined
        training.report(results.Resumed(step=place.step, lost_steps=lost, quarantined=faults))
    return place


def prove(training: Training, place: Place, tensors: Tensors) -> None:
    """Become what was saved, and return if the student answers the probe as the saved one did: to the last bit on a processor.

    A processor that miscalculated once is asked again; one that goes on is no damage of what is bound by digest, so the
    next process tries.

    Raises:
        LongwatchError: it does not.
    """
    told: list[float] = []
    while len(told) < PROOFS:
        training.learner.restore(tensors)
        told.append(gradient.probe_loss(training.learner.model, training.plan.probe))
        tolerance = 0.0 if training.learner.device.type == "cpu" else 1e-3
        if math.isclose(told[-1], place.probe, rel_tol=tolerance, abs_tol=0.0):
            break
    else:
        raise LongwatchError(
            f"checkpoint {place.name} was saved with a probe loss of {place.probe!r}, and has {told[-1]!r} here: the base"
            f" model, the processor or a library differs. If it stays so, bring it back, or remove {training.plan.folder} and"
            " train anew"
        )
    if wrong := told[:-1]:
        training.report(results.Miscalculated(step=place.step, probe=place.probe, wrong=wrong[0]))


def begin(training: Training) -> Place:
    """Try the heaviest micro-batch there can be, so that memory runs out now or never; it teaches nothing."""
    plan, learner = training.plan, training.learner
    rows = memory.heaviest(plan.rows, plan.batch)
    first = memory.first_micro_tokens(learner.device, plan.rows, plan.batch)

    def attempt(micro_tokens: int) -> float:
        learner.forget_gradient()
        training.beat()
        part = memory.first_part(rows, micro_tokens)
        return gradient.accumulate(learner.model, part, micro_tokens, training.beat)

    _, micro_tokens = memory.fitting(attempt, rows, first, _tell_halved(training, 0))
    learner.forget_gradient()
    probe = gradient.probe_loss(learner.model, plan.probe)
    if not math.isfinite(probe):
        raise HopelessError(f"the student's loss is {probe} before any training: look at the base model")
    return Place(run=plan.run, micro_tokens=micro_tokens, first_probe=probe)


def roll_back(training: Training, place: Place, setback: Setback) -> Place:
    """Go back to the last good checkpoint, knowing which step to skip; that knowledge is saved at once."""
    folder = training.plan.folder
    found = checkpoints.newest(folder, training.plan.run)
    if found.place is None or found.tensors is None:
        raise HopelessError(f"step {setback.step} went wrong ({setback.why}), and no checkpoint is left")
    training.learner.restore(found.tensors)
    earlier = msgspec.structs.replace(
        found.place,
        setbacks=(*place.setbacks, setback),
        micro_tokens=place.micro_tokens,
        seconds=place.seconds,
    )
    checkpoints.save(folder, earlier, found.tensors)
    training.report(results.RolledBack(setback=setback, to=earlier.step))
    return earlier


def finish(training: Training, place: Place) -> Result:
    """Write the adapter, whole and durable. A repeat is harmless.

    Raises:
        IntegrityError: another adapter, or a damaged one, stands there.
    """
    if not place.losses:
        return GaveUp(why="every step went wrong", setbacks=place.setbacks)
    contents = training.learner.files()
    target = training.plan.folder / ADAPTER
    if not target.exists():
        sealed.publish(target, contents)
    if sealed.read(target) != contents:
        raise IntegrityError(f"{target} is not what was trained here: move it away, and finish again")
    return Trained(
        steps=place.step,
        losses=place.losses,
        tokens=place.tokens,
        seconds=place.seconds,
        dropped=training.plan.dropped,
        setbacks=place.setbacks,
        adapter=adapters.address(contents),
    )


def count(plan: Plan, place: Place, measured: Measured, seconds: float) -> Place:
    """Pure: the place after a step that counted."""
    return msgspec.structs.replace(
        place,
        step=place.step + 1,
        losses=(*place.losses, measured.loss),
        tokens=place.tokens + sum(len(row.ids) for row in plan.rows_of(place.step)),
        seconds=place.seconds + seconds,
        last_s=seconds,
    )


def tell(training: Training, place: Place, pace: Pace) -> Pace:
    """Report the step that was just made, and whether it was suddenly slow; return the pace that knows it, too."""
    tokens = sum(len(row.ids) for row in training.plan.rows_of(place.step - 1))
    if factor := pace.slow_down(place.last_s, tokens):
        training.report(results.Slowed(step=place.step, factor=factor))
    training.report(
        results.Progress(
            step=place.step,
            steps=training.plan.steps,
            loss=place.losses[-1],
            tokens_per_s=place.tokens / max(place.seconds, 1e-9),
        )
    )
    return pace.with_step(place.last_s, tokens)


def make_deterministic(threads: int) -> None:
    """Make equal inputs give equal bits, as far as the device can."""
    # cuBLAS reads it when it starts, and needs it for its deterministic sums.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    # Filling fresh memory would find reads of memory that nobody wrote; it costs time in every operation.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_num_threads(threads)


def _tell_halved(training: Training, step: int) -> Callable[[int], None]:
    return lambda micro_tokens: training.report(results.Halved(step=step, micro_tokens=micro_tokens))
