"""A queue in pointer form, worked off by the real program: from the first task to its proved end."""

import json
from pathlib import Path

import pytest
from tests.support.migration import Migration, answer, open_migration
from tests.support.repositories import git
from tests.support.shop import new_file

from longwatch.kernel.journal import Event
from longwatch.kernel.store import Store

pytestmark = pytest.mark.e2e


@pytest.mark.guarantee("M1", "M2", "M3", "M4", "M5", "M13", "M20", "M21", "M26", "M32", "M36", "K36")
def test_a_queue_is_worked_off_by_accepted_handoffs_to_its_end(tmp_path: Path) -> None:
    place = open_migration(tmp_path)
    finished = place.call("run")
    assert finished.returncode == 0, (finished, place.said())
    assert place.done() == ["shapes.cube", "shapes.ball", "shapes.handoff", "colors", "colors.handoff"]
    handed = [text for kind, text in place.events() if kind == "task.handed_off"]
    assert handed == [
        "shapes.handoff: accepted; next is colors.",
        "colors.handoff: accepted; next is the end of the queue.",
    ]
    assert "every unit of the inventory is verified" in place.status().reason
    units = json.loads((place.root / "migration/inventory.json").read_text())["units"]
    assert {unit["id"]: unit["status"] for unit in units} == dict.fromkeys(
        ("cube", "ball", "red"), "verified"
    )
    assert place.call("verify").returncode == 0
    assert git(place.root, "status", "--porcelain") == ""
    findings = {one["name"]: one["text"] for one in place.json("doctor")["findings"]}  # type: ignore[attr-defined]
    assert findings["queue"] == "migration/QUEUE.md: at its end"
    assert findings["inventory"].startswith("3 units: 3 verified, 0 unverified, 0 drifted, 0 invalid")
    assert findings["receipts"].startswith("those of all 5 done jobs hold")
    assert findings["generator"].startswith("python3 tools/handoff.py: ")
    traced(place)
    refused_by_name(place)
    ends_only_on_receipts_that_stand(place)


def ends_only_on_receipts_that_stand(place: Migration) -> None:
    """The first task is over, and nobody looks at its receipts again; the end of the queue does."""
    receipt = next(event.data["receipt"] for event in read_events(place) if event.kind == "job.committed")
    path = place.watch.receipts / f"{receipt}.json"
    whole = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(whole[:-1])
    assert place.call("run").returncode == 2
    assert f"shapes.cube: its receipt {str(receipt)[:12]} is damaged" in place.status().reason
    path.write_bytes(whole)
    assert place.call("resume", "--accept").returncode == 0
    assert place.call("run").returncode == 0
    # The end is an end: a reviewed commit that moves the queue back does not begin a task again.
    first = git(place.root, "rev-list", "--max-parents=0", "HEAD")
    (place.root / "migration/QUEUE.md").write_text(
        git(place.root, "show", f"{first}:migration/QUEUE.md") + "\n"
    )
    place.commit()
    place.call("resume", "--accept", "--refresh-baseline")
    assert place.call("run").returncode == 2
    assert "moved from colors to shapes without an accepted handoff" in place.status().reason


def read_events(place: Migration) -> tuple[Event, ...]:
    store = Store.read(place.watch.database)
    try:
        return tuple(store.events())
    finally:
        store.close()


def traced(place: Migration) -> None:
    """Where the time of each attempt went, a handoff's too."""
    seen = place.json("timings")
    traces = {one["attempt"]: [phase["phase"] for phase in one["phases"]] for one in seen["traces"]}  # type: ignore[attr-defined]
    assert {"prepare", "worker", "harvest", "checkout", "check:chromium", "sign", "git"} <= set(
        traces["shapes.cube.1"]
    )
    assert {"prepare", "handoff", "harvest", "checkout", "check:handoff", "sign", "git"} <= set(
        traces["shapes.handoff.1"]
    )
    purposes = {one["phase"] for one in seen["purposes"]}  # type: ignore[attr-defined]
    assert {"model work", "generators", "validation", "hashing", "git", "queue"} <= purposes


def refused_by_name(place: Migration) -> None:
    """The queue is at its end and is damaged; put back, it is what it was."""
    before = place.tree()
    for path, old, new, why in (
        (
            "migration/routes.json",
            '"/add/cube"',
            '"/add',
            "migration/routes.json: line 4, column 19: is no JSON",
        ),
        (
            "migration/parity.json",
            "web/red.txt",
            "../red.txt",
            'ports[2].files = "../red.txt": ',
        ),
        ("migration/manifests/colors.json", "null", '"more"', "does not authorise the end of the queue"),
    ):
        text = (place.root / path).read_text()
        (place.root / path).write_text(text.replace(old, new))
        assert place.call("run").returncode == 2
        assert why in place.status().reason
        assert path in place.status().reason
        (place.root / path).write_text(text)
        assert place.call("resume", "--accept").returncode == 0
    assert place.call("run").returncode == 0, place.said()
    assert place.tree() == before
    assert git(place.root, "status", "--porcelain") == ""


def refused(place: Migration) -> str:
    return "\n".join(text for kind, text in place.events() if kind.startswith("attempt.refused"))


WITHOUT_SUCCESSOR = """
value = json.loads(pathlib.Path(facts["manifest"]).read_text())
write(facts["manifest"], {**value, "nextTask": None})
queue = pathlib.Path("migration/QUEUE.md")
queue.write_text(queue.read_text().replace("migration/tasks/colors.md", "none").replace("colors", "none"))
"""
"""The plan ends too early: one unit is left."""


def extend(place: Migration, job: str, number: int, patch: str) -> None:
    recorded = place.attempts / job / str(number) / "change.patch"
    recorded.write_text(recorded.read_text() + patch)


@pytest.mark.guarantee("M13", "M16", "M18", "M21", "M24", "M32", "M36")
def test_what_is_forged_edited_or_wrong_is_refused_and_the_queue_stops_where_planning_is_required(
    tmp_path: Path,
) -> None:
    place = open_migration(tmp_path, handoff=WITHOUT_SUCCESSOR)
    place.configure(worker={"max_attempts": 5})
    # Wrong in one letter; the receipts say so, whatever the worker declares.
    place.recorded("shapes.cube", "cube", 1, text="A CUBF\n")
    # A receipt that was written beforehand.
    forged = json.dumps({"nonce": "0" * 32, "case": "cube-positive"})
    place.recorded("shapes.cube", "cube", 2, changed=["web/cube.txt", "cube-positive.case.json"])
    extend(place, "shapes.cube", 2, new_file("cube-positive.case.json", [forged]))
    # The inventory is edited to say that the unit is done.
    place.recorded("shapes.cube", "cube", 3, changed=["web/cube.txt", "migration/evidence/cube.json"])
    extend(place, "shapes.cube", 3, new_file("migration/evidence/cube.json", ["{}"]))
    # A case is declared that the harness does not show.
    cases = [*answer("cube")["cases"], {**answer("cube")["cases"][0], "id": "cube-colour"}]  # type: ignore[misc,index]
    place.recorded("shapes.cube", "cube", 4, cases=cases)
    place.recorded("shapes.cube", "cube", 5)
    finished = place.call("run")
    told = refused(place)
    assert "the law of positive cases is broken: expected == actual does not hold" in told
    assert "cube-positive.case.json lies outside the owned paths" in told
    assert "migration/evidence/cube.json is protected" in told
    assert "case cube-colour: it was declared, and check positive left no receipt of it" in told
    assert place.done() == ["shapes.cube", "shapes.ball", "shapes.handoff"]
    assert finished.returncode == 2, (finished, place.said())
    assert place.status().reason == "planning_required: 1 unverified: red"
    assert place.call("verify").returncode == 0
    evidence = next((place.root / ".longwatch/evidence").iterdir())
    evidence.write_bytes(b"something else")
    assert place.call("verify").returncode != 0


@pytest.mark.guarantee("M1", "M5", "M33")
def test_a_queue_that_is_edited_or_moved_by_hand_blocks(tmp_path: Path) -> None:
    place = open_migration(tmp_path)
    assert place.call("run", "--once").returncode == 0
    assert place.done() == ["shapes.cube"]
    place.rewrite("migration/manifests/start.json", status="open")
    assert place.call("run").returncode == 2
    assert 'migration/manifests/start.json: status = "open": is not "done"' in place.status().reason
    place.rewrite("migration/manifests/start.json", status="done")
    assert place.call("resume", "--accept").returncode == 0
    assert place.call("run").returncode == 2
    assert "The queue differs from what is committed: migration/manifests/start.json" in place.status().reason
    # Moved on by hand, past a task that nobody accepted; a reviewed commit makes it no better.
    place.rewrite("migration/manifests/start.json", nextTask="colors")
    pointer = (place.root / "migration/QUEUE.md").read_text().replace("shapes", "colors")
    (place.root / "migration/QUEUE.md").write_text(pointer)
    place.commit()
    assert place.call("resume", "--accept", "--refresh-baseline").returncode == 0
    assert place.call("run").returncode == 2
    assert "moved from shapes to colors without an accepted handoff" in place.status().reason
    assert "without an accepted handoff" in place.call("doctor").stdout
    assert place.done() == ["shapes.cube"]
