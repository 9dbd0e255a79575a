"""The example with Blender as its oracle, as far as it can be looked at without Blender: its queue and its attempts."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longwatch.migrate import skeleton
from longwatch.migrate.attempt import declaration
from longwatch.migrate.attempt.result import read_result
from longwatch.migrate.init import shipped
from longwatch.migrate.profiles import Extension, QueueSettings, effective
from longwatch.migrate.queue import authority
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.settings import Check

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEMPLATE = EXAMPLES / "blender-web"
PROFILE = effective(
    Extension(name="blender-web"),
    QueueSettings(source_root="source", handoff=(("python3", "tools/handoff.py"),)),
)
CHECKS = tuple(Check(name=kind, kind=kind, argv=("npm", "run", "cases")) for kind in PROFILE.required_kinds)


@pytest.fixture
def attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import blender_attempts  # type: ignore[import-not-found]  # noqa: PLC0415 - the path is known from here on

    blender_attempts.record(tmp_path)
    yield tmp_path
    del sys.modules["blender_attempts"]


@pytest.mark.guarantee("M1", "M3")
def test_the_queue_of_the_example_authorises_its_first_task() -> None:
    queue = authority.read(PROFILE, Folder(TEMPLATE))
    assert [card.id for card in queue.cards] == ["primitives.torus", "primitives.handoff"]
    routed = {unit for route in queue.account.catalog.routes for unit in route.units}
    assert routed == queue.account.units
    kinds = {
        path.stem: {case["kind"] for case in json.loads(path.read_text())}
        for path in (TEMPLATE / "oracle/cases").iterdir()
    }
    wanted = {kind.name for kind in PROFILE.case_kinds}
    assert kinds == dict.fromkeys(routed, wanted)


def test_the_generator_of_the_example_is_the_one_that_ships_with_a_plan() -> None:
    texts = {"card": "", "generator": shipped("handoff.py.txt")}
    as_shipped = skeleton.skeleton(PROFILE.queue, texts)["tools/handoff.py"]
    assert without_plan((TEMPLATE / "tools/handoff.py").read_text()) == without_plan(as_shipped)


def without_plan(text: str) -> str:
    head, _, rest = text.partition("PLAN = {\n")
    return head + rest.partition("\n}\n")[2]


@pytest.mark.guarantee("M13")
def test_every_recorded_attempt_declares_what_the_profile_asks_for(attempts: Path) -> None:
    account = authority.read(PROFILE, Folder(TEMPLATE)).account
    known = declaration.Known(
        profile=PROFILE, account=account, checks=CHECKS, units=(), has_source=lambda _: True
    )
    answers = sorted(attempts.glob("*/*/result.json"))
    assert len(answers) == 7
    for path in answers:
        result = read_result(path.read_bytes(), "@NONCE@", cases=True)
        assert not isinstance(result, tuple), result
        assert result.declared is not None
        assert list(declaration.faults(result.declared, known)) == []
