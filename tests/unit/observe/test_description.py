"""The page's description against what it really answers: what is described is answered, and nothing beside it."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient
from tests.support import watches
from tests.support.students import learn

from longwatch.kernel.watch import Watch
from longwatch.observe import finding
from longwatch.observe.web.description import document
from longwatch.observe.web.routes import application


def migrate(root: Path) -> Watch:
    watch = watches.migrate(root)
    watches.verified(watch)
    (watch.hidden / "attempts").mkdir(exist_ok=True)
    (watch.hidden / "attempts" / "a.log").write_text("said")
    return watch


def closed(described: dict[str, Any]) -> dict[str, Any]:
    """The same description, in which an object has no key but those that are named."""
    strict = deepcopy(described)
    for schema in strict["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return strict


def schema_of(described: dict[str, Any], path: str, verb: str, code: str) -> dict[str, Any]:
    content = described["paths"][path][verb]["responses"][code]["content"]
    return {**content["application/json"]["schema"], "components": described["components"]}


@pytest.mark.guarantee("K40")
@pytest.mark.parametrize("make", [migrate, learn])
def test_every_answer_is_what_the_description_says_and_nothing_beside_it(make: Any, tmp_path: Path) -> None:
    watch = make(tmp_path / "watch")
    page = TestClient(application([tmp_path]))
    described = closed(document())
    query = {"logs": "", "log": "?name=attempts/a.log", "events": "?limit=500"}
    asked = 0
    for path, verbs in described["paths"].items():
        if path.endswith("/stream"):
            continue
        named = path.replace("{watch}", finding.name_of(watch.root)).replace("{name}", "greeting")
        if "post" in verbs:
            answer = page.post(named, json={"verb": "pause"})
        else:
            answer = page.get(named + query.get(path.rpartition("/")[2], ""))
        # A student has no patches, and nothing printed into a log here.
        code = "200" if answer.status_code == 200 else "4XX"
        assert (code == "200") or (make is learn and path.rpartition("/")[2] in {"{name}", "log"}), (
            answer.text
        )
        Draft202012Validator(schema_of(described, path, next(iter(verbs)), code)).validate(answer.json())
        asked += 1
    assert asked == len(described["paths"]) - 1


@pytest.mark.guarantee("K40")
def test_a_watch_that_is_not_there_and_a_wish_that_is_refused_are_told_apart(tmp_path: Path) -> None:
    watch = migrate(tmp_path / "watch")
    page = TestClient(application([tmp_path]))
    at = f"/api/watches/{finding.name_of(watch.root)}"
    unknown, refused = page.get("/api/watches/unknown"), page.get(f"{at}/patches/unknown")
    assert (unknown.status_code, refused.status_code) == (404, 409)
    for answer in (unknown, refused):
        Draft202012Validator(schema_of(closed(document()), "/api/watches", "get", "4XX")).validate(
            answer.json()
        )


def test_the_check_can_fail(tmp_path: Path) -> None:
    watch = migrate(tmp_path / "watch")
    answer = TestClient(application([tmp_path])).get(f"/api/watches/{finding.name_of(watch.root)}").json()
    check = Draft202012Validator(schema_of(closed(document()), "/api/watches/{watch}", "get", "200"))
    assert check.is_valid(answer)
    assert not check.is_valid({**answer, "more": 1})
    assert not check.is_valid({**answer, "health": {**answer["health"], "level": "splendid"}})
    assert not check.is_valid({**answer, "status": {**answer["status"], "events": "many"}})
