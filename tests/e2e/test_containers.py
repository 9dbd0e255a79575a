"""A whole migrate watch in containers: worker and checks run in an image, and the receipt says in which."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import arena, engines

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def engine() -> Iterator[engines.Ready]:
    with engines.podman() as ready:
        yield ready


def watch(folder: Path, engine: engines.Ready, **sandbox: object) -> arena.Arena:
    place = arena.make(folder, arena.UNITTEST, variables=engine.environment)
    place.checks({"name": "tests", "argv": ["python3", "run_tests.py"], "census": "unittest"})
    place.configure(sandbox={"kind": engine.name, "image": engine.image, **sandbox})
    place.card("greeting", "honest", "owned: [shop/**, tests/**]")
    place.commit()
    return place


def receipts(place: arena.Arena) -> str:
    folder = place.root / ".longwatch" / "receipts"
    payloads = (json.loads(path.read_bytes())["payload"] for path in folder.iterdir())
    return "".join(base64.b64decode(payload).decode() for payload in payloads)


@pytest.mark.guarantee("M2", "M15", "M19", "M23", "K31")
def test_a_job_is_done_verified_and_bound_to_the_image(engine: engines.Ready, tmp_path: Path) -> None:
    place = watch(tmp_path, engine)
    ran = place.call("run")
    assert ran.code == 0, ran.out + ran.err
    assert place.subjects()[-1] == "Do greeting"
    assert f'"name":"image: {engine.image}"' in receipts(place)
    assert place.call("verify").code == 0


@pytest.mark.guarantee("M15", "K30", "K38")
def test_nothing_begins_with_an_image_that_is_not_here(engine: engines.Ready, tmp_path: Path) -> None:
    place = watch(tmp_path, engine, image="nobody/has:this")
    ran = place.call("run", "--no-wait")
    assert ran.code != 0
    assert "podman pull nobody/has:this" in ran.out + ran.err
    assert place.subjects()[-1] == "The watch"


@pytest.mark.guarantee("M15", "K30")
def test_no_image_is_told_before_anything_else(engine: engines.Ready, tmp_path: Path) -> None:
    place = watch(tmp_path, engine, image="")
    ran = place.call("run")
    assert ran.code == 2
    assert "sandbox.image" in ran.out + ran.err
