"""The files of a queue in pointer form, as far as they can be written by somebody who does not know the plan.

They authorise nothing: the first manifest is open, and its criteria say in a person's words what is still to fill in.
So `longwatch doctor` tells exactly that, and a run stops before a token is spent.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from longwatch.kernel.errors import PathError, RefusedError
from longwatch.kernel.files import contained
from longwatch.migrate.profiles import SLOT, QueueSettings
from longwatch.migrate.queue.authority import manifest_path
from longwatch.migrate.queue.forms import Backlog, Catalog, Criterion, Inventory, Manifest, Parity, Standing

FIRST = "first"
"""The first task, until somebody gives it another name."""
_START = "start"
_NAMED = re.compile(r"\{\{ ([a-z]+) \}\}")


def skeleton(queue: QueueSettings, texts: Mapping[str, str]) -> dict[str, str]:
    """Return path and content of each file; `texts` are those of the `card` and the `generator`. Pure."""
    slots = _slots(queue)
    parent = manifest_path(queue, _START)
    head = (queue.task_column, queue.card_column, queue.parent_column)
    table = "".join(_row(cells) for cells in (head, ("---",) * 3, (FIRST, slots["card"], parent)))
    first = {
        slots["card"]: _filled(texts["card"], slots),
        parent: _json(_start(queue, slots)),
        slots["backlog"]: _json(Backlog(task=FIRST, jobs=())),
    }
    account = {
        queue.pointer: f"# Queue\n\nThe row names the current task. Only an accepted handoff moves it.\n\n{table}",
        queue.inventory: _json(Inventory(units=())),
        queue.catalog: _json(Catalog(routes=())),
        queue.parity: _json(Parity(ports=())),
        slots["generator"]: _filled(texts["generator"], slots),
    }
    return {path: text for path, text in (first | account).items() if path}


def missing(root: Path, queue: QueueSettings, texts: Mapping[str, str]) -> dict[str, str]:
    """Return what of the skeleton is not there yet; where a pointer is, the first task is not ours to make up.

    Raises:
        RefusedError: a file would lie outside the repository or below something that is no folder; nothing was written.
    """
    wanted = skeleton(queue, texts)
    if os.path.lexists(root / queue.pointer):
        slots = _slots(queue)
        for path in (slots["card"], manifest_path(queue, _START), slots["backlog"]):
            wanted.pop(path, None)
    absent = {path: text for path, text in wanted.items() if not os.path.lexists(root / path)}
    for path in absent:
        _refuse_unfit(root, path)
    return absent


def next_step(queue: QueueSettings) -> str:
    """Say what a person has to fill in."""
    return (
        f"Fill in the queue: {manifest_path(queue, _START)} says point by point what it needs. Mark each point as met "
        "when it is, and then set the status to done. Until then nothing begins."
    )


def _slots(queue: QueueSettings) -> dict[str, str]:
    tasks = PurePosixPath(queue.pointer).parent / "tasks"
    generated = next((one.strip("/") for one in queue.generated), "evidence")
    return {
        "first": FIRST,
        "card": f"{tasks / FIRST}.md",
        "tasks": str(tasks),
        "backlog": queue.backlog.replace(SLOT, FIRST),
        "generator": queue.handoff[0][-1],
        "evidence": generated,
        "pointer": queue.pointer,
        "inventory": queue.inventory,
        "parity": queue.parity,
        "column": queue.task_column,
    }


def _start(queue: QueueSettings, slots: Mapping[str, str]) -> Manifest:
    points = (
        f"{queue.inventory} lists every unit to be ported, with its sources below {queue.source_root} and their SHA-256",
        f"{queue.catalog} lists how a user reaches each unit",
        f"{slots['card']} says what the first task is, and {slots['backlog']} splits it into jobs with owned paths and units",
        f"PLAN in {slots['generator']} says which task follows which, and what accepts each",
        "the checks in longwatch.toml are this repository's own commands, and those with cases leave receipts",
    )
    return Manifest(
        task=_START,
        status=Standing.OPEN,
        acceptance=tuple(Criterion(criterion=point, met=False) for point in points),
        artifacts=(),
        deferred=(),
        next_task=FIRST,
    )


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _filled(text: str, slots: Mapping[str, str]) -> str:
    return _NAMED.sub(lambda slot: slots[slot[1]], text)


def _refuse_unfit(root: Path, path: str) -> None:
    try:
        contained(root, path)
    except PathError as error:
        raise RefusedError(
            f"the queue's {path} cannot be written: {error}. Move what is in its way"
        ) from error
    for above in PurePosixPath(path).parents:
        if os.path.lexists(root / above) and not (root / above).is_dir():
            raise RefusedError(
                f"the queue's {path} cannot be written: {root / above} is no folder. Move it away"
            )
