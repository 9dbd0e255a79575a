"""A learn watch on the embedded SmolLM2-135M, of the size of the demonstration, and what its running step does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomlkit

from _common import LONGWATCH, ran
from longwatch.kernel.child import Identity
from longwatch.kernel.identity import alive, find_by_cookie
from longwatch.kernel.line import Progress
from longwatch.kernel.program import PROGRESS
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch

SMALL: Mapping[str, Mapping[str, Any]] = {
    "curriculum": {
        "families": ["lists"],
        "levels": [1],
        "train_tasks": 48,
        "dev_tasks": 20,
        "confirm_tasks": 100,
    },
    "training": {"samples": 2, "tasks_per_round": 48},
    "experiment": {"rounds": 1},
    "acceptance": {"sealed_tasks": 20},
}


def watch_of_a_student(folder: Path) -> Watch:
    """Make a real learn watch; the student must have been fetched."""
    root = folder / "student"
    root.mkdir()
    ran((*LONGWATCH, "init", "learn"), root)
    path = root / "longwatch.toml"
    config: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
    for table, values in SMALL.items():
        config[table].update(values)
    path.write_text(tomlkit.dumps(config), encoding="utf-8")
    return Watch(root)


class Running(msgspec.Struct, frozen=True):
    """The program of the one step that runs."""

    step: str
    identity: Identity
    began_s: float

    @property
    def gone(self) -> bool:
        """Whether nothing of it lives, also none of its sandboxes; the dead have given their memory back."""
        return not alive(self.identity) and not find_by_cookie(self.identity.cookie)

    def phase(self, watch: Watch) -> str:
        """What it does; `start` until it says so for the first time."""
        path = watch.step(self.step) / PROGRESS
        if not path.exists() or path.stat().st_mtime < self.began_s:
            return "start"
        return msgspec.json.decode(path.read_bytes(), type=Progress).phase


def running(watch: Watch) -> Running | None:
    """Return what runs, or `None` between two steps."""
    store = Store.read(watch.database)
    try:
        steps = store.open_steps()
    finally:
        store.close()
    living = (
        Running(step.id, step.identity, step.began.wall_s)
        for step in steps
        if step.identity is not None and alive(step.identity)
    )
    return next(living, None)
