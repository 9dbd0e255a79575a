"""`set-hours`: the limit of an experiment's active hours, changed in an idle watch only (specification L31)."""

import math

import msgspec
import tomlkit

from longwatch.kernel import files
from longwatch.kernel.errors import RefusedError
from longwatch.kernel.identity import alive
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Desired
from longwatch.kernel.ownership import owned
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn.state import LearnState
from longwatch.observe import kinds

LEAST, MOST = 0.01, 24.0


def set_hours(watch: Watch, hours: float) -> str:
    """Change the limit, and leave an event that says so.

    Raises:
        RefusedError: the number is out of bounds, the watch is no learn watch, or it is not idle.
        LeaseHeldError: a supervisor runs.
    """
    if not math.isfinite(hours) or not LEAST <= hours <= MOST:
        raise RefusedError(f"{hours} hours: give a number from {LEAST} to {MOST:g}.")
    application = kinds.load(watch)
    if application.settings.kind != "learn":
        raise RefusedError(
            f"{watch.config} is of kind {application.settings.kind}: only a learn watch has hours."
        )
    with owned(watch, application.settings.host):
        store = Store.open(watch.database)
        try:
            _refuse_busy(store)
            before = _write(watch, hours)
            text = f"One experiment may be active for {hours:g} hours now; it was {before:g}."
            generation = store.begin_generation(
                Note("hours.changed", text, {"before": before, "after": hours})
            )
            store.commit(generation, line=_limited(store, hours))
        finally:
            store.close()
    return f"{text} Nothing resumes by itself."


def _refuse_busy(store: Store) -> None:
    if store.snapshot().lifecycle.desired is Desired.RUN:
        raise RefusedError("The watch is not idle: `longwatch pause` or `longwatch stop` first.")
    if any(step.identity is not None and alive(step.identity) for step in store.open_steps()):
        raise RefusedError("A program of the watch still lives: wait until `longwatch status` says it ended.")


def _limited(store: Store, hours: float) -> bytes:
    """The state, in which the experiment that is bound already has the new limit."""
    state = msgspec.json.decode(store.snapshot().line, type=LearnState)
    if not state.experiment.generation:
        return msgspec.json.encode(state)
    experiment = msgspec.structs.replace(state.experiment, limit_s=3600 * hours)
    return msgspec.json.encode(msgspec.structs.replace(state, experiment=experiment))


def _write(watch: Watch, hours: float) -> float:
    document = tomlkit.parse(watch.config.read_text(encoding="utf-8"))
    table = document.setdefault("experiment", tomlkit.table())
    before = float(table.get("hours", 1.0))
    table["hours"] = hours
    files.replace(watch.config, tomlkit.dumps(document).encode(), 0o644)
    return before
