"""A handoff is proved by what the generators left in a clean checkout; each thing that is not so is named."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.support import migration

from longwatch.kernel.watch import Watch
from longwatch.migrate import settings
from longwatch.migrate.attempt.handoff import overwritten
from longwatch.migrate.checks.acceptance import Acceptance, prove
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.steps import Candidate, Done, Handoff

Edit = Callable[[Path], object]
MANIFEST, QUEUE = "migration/manifests/shapes.json", "migration/QUEUE.md"
INVENTORY, PARITY = "migration/inventory.json", "migration/parity.json"
CHANGED = (QUEUE, MANIFEST, INVENTORY, PARITY, "migration/evidence/cube.json", "migration/evidence/ball.json")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = migration.lay_out(tmp_path / "port", tmp_path / "source")
    for unit in ("cube", "ball"):
        (root / f"web/{unit}.txt").write_text(migration.SOURCES[unit].upper())
    (root / "longwatch.toml").write_text(migration.settings_text(tmp_path / "source"))
    return Place(Watch(root), settings.load(root))


def generated(place: Place, edit: Edit = lambda _: None) -> Folder:
    """The clean checkout of what the repository's own generator makes of two verified jobs."""
    after = place.repository.parent / "after"
    shutil.copytree(place.repository, after)
    jobs = [{"receipt": "r", "units": [unit]} for unit in ("cube", "ball")]
    facts = after.parent / "handoff.json"
    facts.write_text(json.dumps({"task": "shapes", "manifest": MANIFEST, "jobs": jobs}))
    environment = {**os.environ, "LONGWATCH_HANDOFF": str(facts)}
    subprocess.run([sys.executable, "tools/handoff.py"], cwd=after, env=environment, check=True)
    edit(after)
    return Folder(after)


def proved(place: Place, edit: Edit = lambda _: None, **changed: object) -> Acceptance:
    folder = generated(place, edit)
    queue = survey.read(place)
    candidate = Candidate(
        attempt="shapes.handoff.1",
        number=1,
        nonce="n",
        baseline="b",
        commit="c",
        tree="t",
        paths=CHANGED,
        summary="",
        covered=("cube", "ball"),
    )
    return prove(place, queue.cards[-1], msgspec.structs.replace(candidate, **changed), queue, folder)


@pytest.mark.guarantee("M32")
def test_what_the_generators_leave_is_accepted(place: Place) -> None:
    found = proved(place)
    assert (found.reasons, found.successor) == ((), "colors")
    assert [one.path for one in found.artifacts] == ["web/cube.txt", "web/ball.txt"]


def document(path: str, edit: Callable[[dict], object]) -> Edit:
    def apply(root: Path) -> None:
        value = json.loads((root / path).read_text())
        edit(value)
        (root / path).write_text(json.dumps(value))

    return apply


def units(edit: Callable[[list], object]) -> Edit:
    return document(INVENTORY, lambda value: edit(value["units"]))


def swapped(path: Path, place: Edit) -> None:
    path.unlink()
    place(path)


def removed(root: Path) -> None:
    units(lambda value: value.pop())(root)
    document("migration/routes.json", lambda value: value["routes"].pop())(root)


def pointer(task: str, parent: str = MANIFEST) -> Edit:
    text = migration.POINTER.replace("`shapes`", task).replace("tasks/shapes", f"tasks/{task}")
    return lambda root: (root / QUEUE).write_text(text.replace("migration/manifests/start.json", parent))


@pytest.mark.guarantee("M32", "M26", "M5")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda root: (root / MANIFEST).unlink(), f"{MANIFEST}: is missing"),
        (lambda root: (root / MANIFEST).write_bytes(b""), f"{MANIFEST}: line 1, column 1: is no JSON"),
        (lambda root: (root / MANIFEST).write_bytes(b'{"task": "\xff'), f"{MANIFEST}: line 1: is not UTF-8"),
        (lambda root: swapped(root / MANIFEST, os.mkfifo), f"{MANIFEST}: cannot be read"),
        (lambda root: swapped(root / MANIFEST, Path.mkdir), f"{MANIFEST}: cannot be read"),
        (
            document(MANIFEST, lambda v: v.update(accepted=True)),
            f"{MANIFEST}: accepted = true: is no known key",
        ),
        (
            document(MANIFEST, lambda v: v.update(nextTask="../x")),
            f'{MANIFEST}: nextTask = "../x": must look like',
        ),
        (document(MANIFEST, lambda v: v["artifacts"].append(v["artifacts"][0])), "stands 2 times"),
        (
            document(MANIFEST, lambda v: v["artifacts"][0].update(path="../x")),
            f"{MANIFEST}: artifacts[0].path",
        ),
        (lambda root: swapped(root / "web/cube.txt", os.mkfifo), "web/cube.txt: is no file"),
        (document(MANIFEST, lambda v: v.update(status="open")), 'status = "open": is not "done"'),
        (document(MANIFEST, lambda v: v.update(status="deferred")), 'is not "done"'),
        (document(MANIFEST, lambda v: v.update(deferred=["edges"])), "puts something off"),
        (document(MANIFEST, lambda v: v.update(acceptance=[])), "acceptance: is empty"),
        (document(MANIFEST, lambda v: v["acceptance"][0].update(met=False)), "is not met"),
        (document(MANIFEST, lambda v: v["artifacts"][0].update(sha256="0" * 64)), "its digest differs"),
        (lambda root: (root / "web/cube.txt").unlink(), "web/cube.txt: is no file"),
        (
            document(MANIFEST, lambda v: v.update(task="colors")),
            "task: is colors, and the task that is handed off",
        ),
        (document(MANIFEST, lambda v: v.update(nextTask="start")), "does not authorise colors"),
        (document(MANIFEST, lambda v: v.update(nextTask=None)), "does not authorise colors"),
        (lambda root: (root / QUEUE).unlink(), "the queue is not fit to go on with"),
        (pointer("shapes", "migration/manifests/start.json"), "the queue still shows shapes"),
        (pointer("colors", "migration/manifests/start.json"), "the queue is not fit to go on with"),
        (
            lambda root: (root / "migration/backlog/colors.json").unlink(),
            "the queue is not fit to go on with",
        ),
        (removed, "red is gone: a handoff removes no units"),
        (units(lambda v: v.append({**v[0], "id": "cone"})), "cone is new: a handoff brings no units"),
        (
            units(lambda v: v[2].update(status="verified", evidence=v[0]["evidence"])),
            "red is called verified, and no receipt",
        ),
        (
            units(lambda v: v[0].update(status="unverified")),
            "cube is covered by a receipt of this task and is not",
        ),
        (units(lambda v: v[2]["references"][0].update(sha256="0" * 64)), "the references of red changed"),
        (units(lambda v: v[0]["evidence"][0].update(sha256="0" * 64)), "evidence of cube"),
        (lambda root: (root / "migration/evidence/cube.json").unlink(), "evidence of cube"),
        (lambda root: (root.parent / "source/cube.txt").write_text("drifted"), "source of cube"),
        (document(PARITY, lambda v: v.update(ports=[])), "parity: cube has no entry"),
        (
            document(PARITY, lambda v: v["ports"][0].update(files=["web/cone.txt"])),
            "web/cone.txt, which is said to port",
        ),
    ],
)
def test_each_thing_that_is_not_so_is_named(place: Place, edit: Edit, why: str) -> None:
    assert why in "\n".join(proved(place, edit).reasons)


@pytest.mark.guarantee("M32")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("migration/manifests/start.json", "it is the parent manifest"),
        ("web/cube.txt", "it is not generated"),
        ("migration/tasks/colors.md", "it is not generated"),
        ("migration/routes.json", "it is not generated"),
        ("tools/handoff.py", "it is not generated"),
        ("longwatch.toml", "it is not generated"),
    ],
)
def test_a_handoff_changes_only_what_is_generated(place: Place, path: str, why: str) -> None:
    assert f"{path}: {why}" in "\n".join(proved(place, paths=(*CHANGED, path)).reasons)


@pytest.mark.guarantee("M32")
def test_generators_leave_what_was_verified_as_it_is() -> None:
    done = (Done(job="shapes.cube", card="1", receipt="r", commit="c", paths=("web/cube.txt",)),)
    step = Handoff(id="s", job="shapes.handoff", task="shapes", number=1, baseline="b", card="2", done=done)
    assert list(overwritten(step, (QUEUE, MANIFEST))) == []
    (reason,) = overwritten(step, (QUEUE, "web/cube.txt"))
    assert reason.startswith("web/cube.txt: it was verified as shapes.cube's")
