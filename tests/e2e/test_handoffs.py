"""A queue in pointer form, worked off by the real program: from the first task to its proved end."""

import json
from pathlib import Path

import pytest
from tests.support.migration import open_migration
from tests.support.repositories import git

pytestmark = pytest.mark.e2e


@pytest.mark.guarantee("M1", "M2", "M3", "M4", "M5", "M13", "M20", "M21", "M26", "M32", "M36")
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
    assert {unit["id"]: unit["status"] for unit in units} == dict.fromkeys(("cube", "ball", "red"), "verified")
    assert place.call("verify").returncode == 0
    assert place.call("doctor").returncode == 0, place.call("doctor").stdout
    assert git(place.root, "status", "--porcelain") == ""
