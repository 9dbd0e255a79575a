"""The skeleton of a queue: it authorises nothing, says what is to fill in, overwrites nothing, and works when filled in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import migration
from tests.support.repositories import commit_all, new_repository, write

from longwatch.kernel.errors import ConfigError, RefusedError
from longwatch.kernel.watch import Watch
from longwatch.migrate import doctor, settings
from longwatch.migrate.checks.acceptance import prove
from longwatch.migrate.init import Initialised, WorkerChoice, initialise
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.steps import Candidate

START = "migration/manifests/start.json"
QUEUE = (
    "migration/tasks/first.md",
    START,
    "migration/backlog/first.json",
    "migration/QUEUE.md",
    "migration/inventory.json",
    "migration/routes.json",
    "migration/parity.json",
    "tools/handoff.py",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    repository = new_repository(tmp_path / "port")
    write(repository, "README", "A port.\n")
    commit_all(repository)
    return repository


def begin(root: Path) -> Initialised:
    return initialise(root, WorkerChoice(adapter="replay", argv=("attempts",)), profile="blender-web")


def place_of(root: Path) -> Place:
    return Place(Watch(root), settings.load(root))


def queue_findings(place: Place) -> str:
    found = doctor.examine(place.watch, place.settings, None)
    return "\n".join(f"{one.standing}: {one.text}" for one in found if one.name == "queue")


@pytest.mark.guarantee("M1", "M2", "M36")
def test_a_fresh_skeleton_authorises_nothing_and_says_what_is_to_fill_in(root: Path) -> None:
    done = begin(root)
    assert done.files == (".git/info/exclude", "prompt.md", *QUEUE, "longwatch.toml")
    assert not (root / "tasks").exists()
    assert any(START in hint for hint in done.hints)
    with pytest.raises(ConfigError):
        survey.read(place_of(root))
    told = queue_findings(place_of(root))
    assert "migration/inventory.json: units: is empty: list what is to be ported" in told
    points = json.loads((root / START).read_text())["acceptance"]
    for number, point in enumerate(points):
        assert f"{START}: acceptance[{number}]: is not met: {point['criterion']}" in told


def fill_in(root: Path, *, following: str | None = None) -> None:
    """Do what the points of the first manifest ask for."""
    (root / "migration/inventory.json").write_text(
        json.dumps(migration.documents()["migration/inventory.json"])
    )
    (root / "migration/routes.json").write_text(json.dumps(migration.documents()["migration/routes.json"]))
    jobs = [
        {"id": unit, "title": f"Port {unit}", "owned": [f"web/{unit}.txt"], "units": [unit]}
        for unit in migration.SOURCES
    ]
    (root / "migration/backlog/first.json").write_text(json.dumps({"task": "first", "jobs": jobs}))
    generator = (root / "tools/handoff.py").read_text()
    entry = f'"first": {{"next": {following!r}, "acceptance": ["It is ported."]}},'
    (root / "tools/handoff.py").write_text(generator.replace("PLAN = {", "PLAN = {" + entry))
    start = json.loads((root / START).read_text())
    start["status"] = "done"
    for point in start["acceptance"]:
        point["met"] = True
    (root / START).write_text(json.dumps(start))
    (root / "longwatch.toml").write_text(migration.settings_text(root.parent / "source"))
    for unit, text in migration.SOURCES.items():
        write(root.parent / "source", f"{unit}.txt", text)
        write(root, f"web/{unit}.txt", text.upper())


@pytest.mark.guarantee("M1", "M36")
def test_filled_in_it_is_a_queue_that_has_to_be_committed(root: Path) -> None:
    begin(root)
    fill_in(root)
    place = place_of(root)
    jobs = ["first.ball", "first.cube", "first.red", "first.handoff"]
    assert [card.id for card in survey.read(place).cards] == jobs
    told = queue_findings(place)
    assert "fine: first: 4 jobs with the handoff, 0 done; next is first.ball" in told
    assert "migration/tasks/first.md: not as committed" in told
    commit_all(root)
    assert "committed" not in queue_findings(place)


def handed_off(root: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the generator as a handoff does, in a copy."""
    after = root.parent / "after"
    shutil.copytree(root, after)
    jobs = [
        {"job": f"first.{u}", "receipt": "r", "commit": "c", "paths": [f"web/{u}.txt"], "units": [u]}
        for u in migration.SOURCES
    ]
    facts = write(
        root.parent,
        "facts.json",
        json.dumps({"task": "first", "manifest": "migration/manifests/first.json", "jobs": jobs}),
    )
    environment = {**os.environ, "LONGWATCH_HANDOFF": str(facts)}
    argv = [sys.executable, "tools/handoff.py"]
    return subprocess.run(
        argv, cwd=after, env=environment, check=False, capture_output=True, text=True
    ), after


@pytest.mark.guarantee("M32")
@pytest.mark.parametrize("following", [None, "second"])
def test_its_generator_hands_off_what_is_accepted(root: Path, following: str | None) -> None:
    begin(root)
    fill_in(root, following=following)
    card = (root / "migration/tasks/first.md").read_text()
    write(root, "migration/tasks/second.md", card.replace("id: first", "id: second"))
    write(root, "migration/backlog/second.json", '{"task": "second", "jobs": []}')
    ran, after = handed_off(root)
    assert ran.returncode == 0, ran
    place = place_of(root)
    queue = survey.read(place)
    evidence = tuple(f"migration/evidence/first.{unit}.json" for unit in migration.SOURCES)
    documents = ("QUEUE.md", "inventory.json", "parity.json", "manifests/first.json")
    candidate = Candidate(
        attempt="first.handoff.1",
        number=1,
        nonce="n",
        baseline="b",
        commit="c",
        tree="t",
        paths=(*(f"migration/{name}" for name in documents), *evidence),
        summary="",
        covered=tuple(migration.SOURCES),
    )
    found = prove(place, queue.cards[-1], candidate, queue, Folder(after))
    assert found.reasons == ()
    assert found.successor == (following or "")


@pytest.mark.guarantee("M32")
def test_its_generator_says_what_it_cannot_know(root: Path) -> None:
    begin(root)
    ran, after = handed_off(root)
    assert ran.returncode == 1
    assert "has no entry for 'first': write which task follows it" in ran.stderr
    assert (after / "migration/QUEUE.md").read_text() == (root / "migration/QUEUE.md").read_text()


@pytest.mark.guarantee("M2")
def test_what_is_there_is_left_as_it_is(root: Path) -> None:
    write(root, "migration/inventory.json", "mine")
    write(root, "tools/handoff.py", "mine")
    (root / "migration/parity.json").symlink_to("/nowhere/at/all")
    done = begin(root)
    taken = {"migration/inventory.json", "tools/handoff.py", "migration/parity.json"}
    assert set(done.files) >= set(QUEUE) - taken
    assert not taken & set(done.files)
    assert (root / "migration/inventory.json").read_text() == "mine"
    assert (root / "migration/parity.json").is_symlink()


@pytest.mark.guarantee("M2")
def test_where_a_pointer_is_the_first_task_is_not_made_up(root: Path) -> None:
    write(root, "migration/QUEUE.md", migration.POINTER)
    done = begin(root)
    assert set(done.files) & set(QUEUE) == set(QUEUE[4:])
    assert not (root / "migration/tasks").exists()


@pytest.mark.guarantee("K34")
@pytest.mark.parametrize("kind", ["link", "file", "fifo", "circle", "deep"])
def test_what_is_in_the_way_is_named_and_nothing_is_written(root: Path, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    if kind == "link":
        (root / "migration").symlink_to(outside)
    elif kind == "file":
        write(root, "migration", "a file")
    elif kind == "fifo":
        os.mkfifo(root / "migration")
    elif kind == "circle":
        (root / "migration").symlink_to("migration")
    else:
        write(root, "tools", "a file")
    before = sorted(path for path in root.rglob("*") if ".git/" not in f"{path}/")
    with pytest.raises(RefusedError, match=r"the queue's (migration|tools)/.* cannot be written: .*\. Move"):
        begin(root)
    assert sorted(path for path in root.rglob("*") if ".git/" not in f"{path}/") == before
    assert list(outside.iterdir()) == []
    assert not (root / ".git/info/exclude").exists()


def test_an_init_that_was_cut_short_can_be_repeated(root: Path) -> None:
    begin(root)
    (root / "longwatch.toml").unlink()
    (root / "migration/QUEUE.md").unlink()
    (root / "migration/inventory.json").unlink()
    done = begin(root)
    assert set(done.files) >= {"migration/QUEUE.md", "migration/inventory.json", "longwatch.toml"}
    assert START not in done.files
