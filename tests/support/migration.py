"""A repository of the shape that the profile `blender-web` asks for, small enough for a test.

The source system is a folder of texts; a unit is ported when `web/UNIT.txt` says the same in capitals. The harness shows
all five kinds of cases for every ported unit. Two tasks: `shapes` with the jobs `cube` and `ball`, then `colors`, which
is its own one job and has no successor.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import tomlkit

from longwatch.migrate import settings
from longwatch.migrate.place import Place
from longwatch.migrate.profiles import Profile
from tests.support import repositories, shop
from tests.support.shop import Shop, new_file

SOURCES = {"cube": "a cube\n", "ball": "a ball\n", "red": "red\n"}
KINDS = ("positive", "negative", "undo_redo", "save_reopen", "determinism")
CHECKS: Mapping[str, tuple[str, ...]] = {
    "source_build": ("python3", "tools/build.py"),
    "typecheck": ("python3", "tools/build.py"),
    "lint": ("python3", "tools/build.py"),
    "chromium": ("python3", "oracle/harness.py"),
    **dict.fromkeys(KINDS, ("python3", "oracle/harness.py")),
}
HARNESS = """import hashlib, json, os, pathlib

out, word = pathlib.Path(os.environ["LONGWATCH_RECEIPTS"]), os.environ["LONGWATCH_RUN"]


def show(unit, kind, runtime="CHROMIUM_WEBENGINE", **states):
    case, artifacts, seen = f"{unit}-{kind}", [], {}
    for name, state in states.items():
        path = f"{case}.{name}.txt"
        (out / path).write_text(state)
        seen[name] = hashlib.sha256(state.encode()).hexdigest()
        artifacts.append({"path": path, "sha256": seen[name]})
    receipt = {"nonce": word, "case": case, "kind": kind, "status": "passed", "runtime": runtime, "units": [unit],
               "observations": seen, "artifacts": artifacts}
    (out / f"{case}.case.json").write_text(json.dumps(receipt))


for port in sorted(pathlib.Path("web").glob("*.txt")):
    unit, after = port.stem, port.read_text()
    expected = pathlib.Path("SOURCE", f"{unit}.txt").read_text().upper()
    show(unit, "positive", before="", after=after, expected=expected, actual=after)
    show(unit, "negative", before="x", after="x")
    show(unit, "undo_redo", before="", after=after, undo="", redo=after)
    show(unit, "save_reopen", saved=after, reopened=after)
    show(unit, "determinism", "BLENDER_NATIVE", first=expected, second=expected)
"""
BUILD = """import os, pathlib
os.makedirs("dist", exist_ok=True)
pathlib.Path("dist/app.bin").write_bytes(b"".join(p.read_bytes() for p in sorted(pathlib.Path("web").glob("*.txt"))))
"""
HANDOFF = """import hashlib, json, os, pathlib

facts = json.loads(pathlib.Path(os.environ["LONGWATCH_HANDOFF"]).read_text())
task, units = facts["task"], [unit for job in facts["jobs"] for unit in job["units"]]
following = {"shapes": "colors", "colors": None}[task]
sha = lambda path: hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def write(path, value):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(json.dumps(value, indent=1))


inventory = json.loads(pathlib.Path("migration/inventory.json").read_text())
parity = json.loads(pathlib.Path("migration/parity.json").read_text())
for unit in inventory["units"]:
    if unit["id"] in units:
        evidence = f"migration/evidence/{unit['id']}.json"
        write(evidence, {"receipts": [job["receipt"] for job in facts["jobs"]]})
        unit.update(status="verified", evidence=[{"path": evidence, "sha256": sha(evidence)}])
        parity["ports"].append({"unit": unit["id"], "files": [f"web/{unit['id']}.txt"]})
write("migration/inventory.json", inventory)
write("migration/parity.json", parity)
artifacts = [{"path": f"web/{unit}.txt", "sha256": sha(f"web/{unit}.txt"), "kind": "port"} for unit in units]
write(facts["manifest"], {"task": task, "status": "done", "acceptance": [{"criterion": "ported", "met": True}],
                          "artifacts": artifacts, "deferred": [], "nextTask": following})
row = f"| {following or 'none'} | {f'migration/tasks/{following}.md' if following else 'none'} | {facts['manifest']} |"
pathlib.Path("migration/QUEUE.md").write_text("# Queue\\n\\n| Current task | Card | Parent manifest |\\n| --- | --- | --- |\\n" + row + "\\n")
#MORE
"""
POINTER = """# Queue

| Current task | Card | Parent manifest |
| --- | --- | --- |
| `shapes` | migration/tasks/shapes.md | migration/manifests/start.json |
"""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def documents() -> dict[str, object]:
    """The queue's JSON documents, by path."""
    job = {"title": "Port it", "priority": 0}
    units = [
        {"id": unit, "status": "unverified", "references": [{"path": f"{unit}.txt", "sha256": sha(text)}]}
        for unit, text in SOURCES.items()
    ]
    return {
        "migration/manifests/start.json": manifest("start", "shapes"),
        "migration/backlog/shapes.json": {
            "task": "shapes",
            "jobs": [
                {**job, "id": "ball", "owned": ["web/ball.txt"], "units": ["ball"]},
                {**job, "id": "cube", "owned": ["web/cube.txt"], "units": ["cube"], "priority": 5},
            ],
        },
        "migration/backlog/colors.json": {"task": "colors", "jobs": []},
        "migration/inventory.json": {"units": units},
        "migration/routes.json": {"routes": [{"route": f"/add/{unit}", "units": [unit]} for unit in SOURCES]},
        "migration/parity.json": {"ports": []},
    }


def manifest(task: str, following: str | None, **changed: object) -> dict[str, object]:
    return {
        "task": task,
        "status": "done",
        "acceptance": [{"criterion": "all is there", "met": True}],
        "artifacts": [],
        "deferred": [],
        "nextTask": following,
        **changed,
    }


def lay_out(root: Path, source: Path, *, handoff: str = "") -> Path:
    """Write the repository's files, and the source system's."""
    for unit, text in SOURCES.items():
        repositories.write(source, f"{unit}.txt", text)
    for path, value in documents().items():
        repositories.write(root, path, json.dumps(value, indent=1) + "\n")
    for task in ("shapes", "colors"):
        owned = "\nowned: [web/red.txt]" if task == "colors" else ""
        head = f"---\nid: {task}\ntitle: Port the {task}{owned}\n---\n"
        repositories.write(root, f"migration/tasks/{task}.md", f"{head}\nPort the {task}.\n")
    repositories.write(root, "migration/QUEUE.md", POINTER)
    repositories.write(root, "oracle/harness.py", HARNESS.replace("SOURCE", str(source)))
    repositories.write(root, "tools/build.py", BUILD)
    repositories.write(root, "tools/handoff.py", HANDOFF.replace("#MORE", handoff))
    repositories.write(root, ".gitignore", "dist/\n")
    repositories.write(root, "web/README", "Ports.\n")
    return root


def settings_text(source: Path, attempts: Path | str = "attempts") -> str:
    document = tomlkit.document()
    document.update(
        {
            "kind": "migrate",
            "repository": {"branch": "main"},
            "worker": {"adapter": "replay", "argv": [str(attempts)], "retry_delay_s": 0.1},
            "profile": {"name": "blender-web"},
            "queue": {"source_root": str(source), "handoff": [["python3", "tools/handoff.py"]]},
            "backoff": dict(shop.QUICK),
        }
    )
    checks = tomlkit.aot()
    for kind, argv in CHECKS.items():
        checks.append(tomlkit.item({"name": kind, "kind": kind, "argv": list(argv), "census": "none"}))
    document["checks"] = checks
    return tomlkit.dumps(document)


def profile() -> Profile:
    """The policy as the settings of this repository make it."""
    text = settings_text(Path("/source"))
    return msgspec.toml.decode(text, type=settings.MigrateSettings).policy_in_force()


def answer(unit: str, **changed: object) -> dict[str, object]:
    """What an honest worker declares for a unit."""
    cases = [
        {
            "id": f"{unit}-{kind}",
            "kind": kind,
            "runtime": "BLENDER_NATIVE" if kind == "determinism" else "CHROMIUM_WEBENGINE",
            "check": kind,
            "units": [unit],
        }
        for kind in KINDS
    ]
    return {
        "nonce": "@NONCE@",
        "status": "done",
        "summary": f"Ported {unit}.",
        "changed": [f"web/{unit}.txt"],
        "reason": "",
        "units": [unit],
        "routes": [f"/add/{unit}"],
        "references": [f"{unit}.txt"],
        "cases": cases,
        "artifacts": [{"path": "dist/app.bin", "kind": "compiled"}],
        **changed,
    }


@dataclass
class Migration(Shop):
    """One watch over such a repository."""

    source: Path = Path()

    def place(self) -> Place:
        return Place(self.watch, settings.load(self.root))

    def recorded(self, job: str, unit: str, number: int = 1, text: str | None = None, **said: object) -> None:
        """Record an attempt: by default the honest one."""
        content = SOURCES[unit].upper() if text is None else text
        folder = self.attempts / job / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "change.patch").write_text(new_file(f"web/{unit}.txt", content.splitlines()))
        (folder / "result.json").write_text(json.dumps(answer(unit, **said)))

    def rewrite(self, path: str, **changed: object) -> None:
        """Change keys of a JSON document."""
        value = {**json.loads((self.root / path).read_text()), **changed}
        (self.root / path).write_text(json.dumps(value))

    def commit(self) -> str:
        return repositories.commit_all(self.root, "By hand")


def open_migration(folder: Path, *, handoff: str = "") -> Migration:
    """Make such a repository a watch, with the honest attempts recorded."""
    root, source = folder / "port", folder / "source"
    repositories.new_repository(root)
    lay_out(root, source, handoff=handoff)
    repositories.commit_all(root, "As it was")
    found = Migration(root, folder / "attempts", folder / "flags", source=source)
    found.attempts.mkdir()
    words = ("--worker", "replay", "--argv", str(found.attempts), "--profile", "blender-web")
    made = found.call("init", "migrate", *words)
    assert made.returncode == 0, made
    found.watch.config.write_text(settings_text(source, found.attempts))
    repositories.commit_all(root, "The watch")
    for job, unit in (("shapes.cube", "cube"), ("shapes.ball", "ball"), ("colors", "red")):
        found.recorded(job, unit)
    return found
