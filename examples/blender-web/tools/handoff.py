"""Finishes a task of the queue when all its jobs are verified.

Longwatch runs this file in its sandbox, in a private clone, and commits what it changed only if that proves true in a
clean checkout ("How a task ends" in docs/reference/profiles.md of Longwatch). It may write the pointer, manifests, the
inventory, the parity map and evidence, and nothing else.

All of it works as it is, but for PLAN: the order of the tasks is yours.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

# Each task with the one that follows it (None: the plan ends there), and what its acceptance was about.
PLAN = {
    "primitives": {
        "next": "placement",
        "acceptance": ["The torus is what Blender makes: every vertex, face and corner of its UV map."],
    },
    "placement": {
        "next": None,
        "acceptance": [
            "Objects are aligned as Blender aligns them, whatever they are aligned to.",
            "The same seed gives the scene that it gives in Blender.",
        ],
    },
}

POINTER, TASKS, EVIDENCE = "migration/QUEUE.md", "migration/tasks", "migration/evidence"
INVENTORY, PARITY = "migration/inventory.json", "migration/parity.json"


def main() -> None:
    facts = read(os.environ["LONGWATCH_HANDOFF"])
    task = facts["task"]
    if task not in PLAN:
        sys.exit(f"PLAN in {__file__} has no entry for {task!r}: write which task follows it, and what accepts it")
    units = {unit: job for job in facts["jobs"] for unit in job["units"]}
    ports = {unit: [path for path in job["paths"] if Path(path).is_file()] for unit, job in units.items()}
    record_units(task, units)
    record_ports(ports)
    files = sorted({path for paths in ports.values() for path in paths})
    write(facts["manifest"], {
        "task": task,
        "status": "done",
        "acceptance": [{"criterion": text, "met": True} for text in PLAN[task]["acceptance"]],
        "artifacts": [{**bound(path), "kind": "port"} for path in files],
        "deferred": [],
        "nextTask": PLAN[task]["next"],
    })
    point(PLAN[task]["next"], facts["manifest"])


def record_units(task: str, units: dict) -> None:
    """Call the covered units verified, each with evidence: which jobs, receipts and commits show it."""
    inventory = read(INVENTORY)
    for unit in inventory["units"]:
        if unit["id"] in units:
            job = units[unit["id"]]
            shown = f"{EVIDENCE}/{task}.{unit['id']}.json"
            write(shown, {name: job[name] for name in ("job", "receipt", "commit")})
            unit.update(status="verified", evidence=[bound(shown)])
    write(INVENTORY, inventory)


def record_ports(ports: dict) -> None:
    """Say which files port which unit."""
    others = [port for port in read(PARITY)["ports"] if port["unit"] not in ports]
    write(PARITY, {"ports": others + [{"unit": unit, "files": files} for unit, files in ports.items()]})


def point(task, manifest: str) -> None:
    """Move the pointer, and leave what else stands in its file."""
    card = f"{TASKS}/{task}.md" if task else "none"
    lines = Path(POINTER).read_text(encoding="utf-8").split("\n")
    head = next(number for number, line in enumerate(lines) if "Current task" in line and line.strip().startswith("|"))
    lines[head + 2] = f"| {task or 'none'} | {card} | {manifest} |"
    Path(POINTER).write_text("\n".join(lines), encoding="utf-8")


def bound(path: str) -> dict:
    return {"path": path, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}


def read(path: str) -> dict:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write(path: str, value: dict) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


main()
