"""Honest workers in repositories of several kinds, through the real command line: what is good must be accepted."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.support import arena, campaign, repositories
from tests.support.arena import Arena

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
"""Whole watches run in these tests."""

OWNED = campaign.OWNED
VARIED: Mapping[str, tuple[str, ...]] = {
    "fix": (OWNED, "priority: 9"),
    "binary": (OWNED,),
    "changed_behaviour": (OWNED, "allow: [change-tests]", "priority: -1"),
    "commits_too": (OWNED,),
    "delete": ("owned: [shop/old.py]", "tests: optional"),
    "executable": (OWNED, "tests: optional"),
    "link_inside": (OWNED,),
    "more_tests_in_a_file": (OWNED,),
    "nothing_to_do": (OWNED,),
    "protected_by_name": ("owned: [shop/**, tests/**, Makefile]",),
    "refactoring": (OWNED, "tests: optional"),
    "rename": (OWNED, "tests: optional"),
    "shown_variable": (OWNED,),
    "unicode_names": (OWNED,),
}
"""Jobs with the lines of their cards. The one with the highest priority is first."""


@pytest.mark.guarantee("K17", "K32", "M18", "M22", "M25", "M26", "M28", "M29")
def test_honest_work_of_any_kind_is_accepted_and_committed_as_it_was_verified(tmp_path: Path) -> None:
    failing = "\n\ndef test_highest_of_none():\n    assert prices.highest([]) is None\n"
    tests = str(arena.PYTEST["tests/test_prices.py"]).partition("\n\ndef test_highest_of_nothing")[0]
    files = {
        **arena.PYTEST,
        "tests/test_prices.py": tests + failing,
        "shop/old.py": "x = 1\n",
        "shop/naming.py": "name = 'shop'\n",
        "shop/tool.py": "#!/usr/bin/env python3\n",
    }
    variables = {"SHOWN": "for the worker", "HIDDEN": "from the worker"}
    place = arena.make(tmp_path, files, "varied", variables=variables)
    place.configure(worker={"max_attempts": 1, "environment": ["SHOWN"]})
    place.checks({"name": "tests", "argv": ["pytest", "-q"]})
    for name, lines in VARIED.items():
        place.card(name, name, *lines)
    place.commit()
    ran = place.call("run")
    assert ran.code == 0, ran.out
    for job in VARIED:
        committed = [] if job == "nothing_to_do" else ["job.committed"]
        kinds = [kind for kind, _ in place.told(job) if kind.startswith(("attempt.", "job."))]
        assert kinds == ["attempt.claimed", "job.verified", *committed, "job.done"], job
    _committed_as_verified(place)


def _committed_as_verified(place: Arena) -> None:
    jobs = ("fix", *(name for name in VARIED if name not in {"fix", "nothing_to_do", "changed_behaviour"}))
    assert place.subjects()[2:] == [f"Do {name}" for name in (*jobs, "changed_behaviour")]
    assert place.call("verify").code == 0
    tree = repositories.git(place.root, "-c", "core.quotePath=off", "ls-files", "--stage")
    modes = {line.split("\t")[1]: line.split()[0] for line in tree.splitlines()}
    assert modes["shop/tool.py"] == "100755"
    assert modes["shop/costs.py"] == "120000"
    assert {"shop/größe des menüs.txt", "shop/日本語.txt", "shop/named.py"} <= modes.keys()
    assert not {"shop/old.py", "shop/naming.py"} & modes.keys()
    assert (place.root / "shop/logo.bin").read_bytes() == bytes(range(256))
    assert repositories.git(place.root, "status", "--porcelain") == ""


def _one_honest_job(root: Path, files: Mapping[str, str | bytes], owned: str) -> Arena:
    place = arena.make(root, files)
    place.card("greeting", "honest", owned)
    place.commit()
    ran = place.call("run")
    assert ran.code == 0, ran.out + ran.err
    return place


def _accepted(place: Arena, tests: Iterable[str]) -> None:
    assert place.subjects()[2:] == ["Do greeting"]
    assert place.call("verify").code == 0
    receipts = "".join(path.read_text() for path in (place.root / ".longwatch" / "receipts").iterdir())
    assert receipts
    assert place.call("status").code == 0
    assert not [name for name in tests if name not in _signed(place)]


def _signed(place: Arena) -> str:
    """Everything that the receipts say, decoded."""
    import base64  # noqa: PLC0415 - used here only
    import json  # noqa: PLC0415 - the same

    envelopes = [json.loads(path.read_bytes()) for path in (place.root / ".longwatch" / "receipts").iterdir()]
    return "".join(base64.b64decode(envelope["payload"]).decode() for envelope in envelopes)


@pytest.mark.guarantee("M2", "M19", "M23", "M26")
def test_a_unittest_project_with_its_own_script(tmp_path: Path) -> None:
    place = arena.make(tmp_path, arena.UNITTEST)
    place.checks({"name": "tests", "argv": ["python3", "run_tests.py"], "census": "unittest"})
    place.card("greeting", "honest", "owned: [shop/**, tests/**]")
    place.commit()
    ran = place.call("run")
    assert ran.code == 0, ran.out + ran.err
    _accepted(place, ("TestGreeting.test_value", "TestPrices.test_total"))


@pytest.mark.guarantee("M2", "M19", "M23", "M26")
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_an_npm_project_as_init_finds_it(tmp_path: Path) -> None:
    place = _one_honest_job(tmp_path, arena.NPM, "owned: [lib/**, test/**]")
    _accepted(place, ("greeting", "total"))


@pytest.mark.guarantee("M2", "M19", "M23", "M26")
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_make_project_as_init_finds_it(tmp_path: Path) -> None:
    place = _one_honest_job(tmp_path, arena.MAKE, "owned: [bin/**, tests/cases/**]")
    _accepted(place, ("greeting", "total"))


INLINE = {
    "python": ["python3", "-c", "print('1 passed in 0.01s')"],
    "module": ["python3", "-m", "shop.fake"],
    "joined": ["python3", "-cpass"],
    "node": ["node", "-e", "1"],
    "node eval": ["node", "--eval=1"],
    "require": ["node", "--require", "./evil.js", "--test"],
    "env": ["env", "X=1", "pytest"],
    "shell": ["sh", "-c", "pytest"],
    "bash": ["bash", "-lc", "pytest"],
    "response file": ["pytest", "@arguments.txt"],
    "plugin": ["pytest", "-p", "shop.evil"],
    "outside": ["python3", "../elsewhere.py"],
    "absolute": ["python3", "/etc/passwd"],
    "unknown": ["true"],
    "git": ["git", "commit", "--allow-empty", "-m", "x"],
    "make variable": ["make", "SHELL=/bin/true", "test"],
    "npx": ["npx", "cowsay"],
    "missing script": ["npm", "run", "nothing"],
}


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    """A watch whose worker must never begin."""
    place = arena.make(tmp_path_factory.mktemp("inline"), arena.PYTEST)
    place.card("greeting", "honest", OWNED)
    place.commit()
    return place


@pytest.mark.guarantee("M14", "M23")
@pytest.mark.parametrize("argv", INLINE.values(), ids=INLINE)
def test_inline_code_in_the_settings_is_an_error_before_any_work(idle: Arena, argv: list[str]) -> None:
    idle.checks({"name": "sly", "argv": argv})
    ran = idle.call("run")
    assert ran.code == 2, ran.out
    assert "checks.sly" in ran.err
    assert [word for word in argv if word in ran.err], ran.err
    assert not list((idle.root / ".longwatch").glob("attempts/*"))


@pytest.mark.guarantee("M14", "M23")
@pytest.mark.parametrize("name", ["python", "env", "shell"])
def test_inline_code_in_a_card_is_an_error_before_any_work(idle: Arena, name: str) -> None:
    words = ", ".join(f'"{word}"' for word in INLINE[name])
    idle.checks({"name": "tests", "argv": ["pytest", "-q"]})
    idle.card("greeting", "honest", OWNED, "checks:", "  - name: sly", f"    argv: [{words}]")
    ran = idle.call("run")
    assert ran.code == 2, ran.out
    assert "tasks/greeting.md" in ran.err
    assert "checks.sly" in ran.err
    assert not list((idle.root / ".longwatch").glob("attempts/*"))
