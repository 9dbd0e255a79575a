"""Case receipts: one that is whole counts; damaged in any small way it is refused by name."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import migration

from longwatch.kernel.errors import IntegrityError
from longwatch.migrate.checks import cases
from longwatch.migrate.checks.cases import Found
from longwatch.migrate.declared import Case

PROFILE = migration.profile()
NONCE = "r" * 32
Edit = Callable[[dict], object]
STATES = {"before": "", "after": "A CUBE\n", "expected": "A CUBE\n", "actual": "A CUBE\n"}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def leave(
    root: Path, edit: Edit = lambda _: None, *, name: str = "cube-positive.case.json", folder: str = ""
) -> Path:
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    for state, text in STATES.items():
        (place / f"{state}.txt").write_text(text)
    value = {
        "nonce": NONCE,
        "case": "cube-positive",
        "kind": "positive",
        "status": "passed",
        "runtime": "CHROMIUM_WEBENGINE",
        "units": ["cube"],
        "observations": {state: sha(text) for state, text in STATES.items()},
        "artifacts": [{"path": f"{state}.txt", "sha256": sha(text)} for state, text in STATES.items()],
    }
    edit(value)
    (place / name).write_text(json.dumps(value))
    return root


def said(found: Found, kind: str = "positive") -> str:
    return cases.reason(found, PROFILE, kind)


@pytest.mark.guarantee("M21")
def test_a_whole_receipt_counts_as_a_test_of_its_kind(tmp_path: Path) -> None:
    found = cases.read(leave(tmp_path), NONCE, PROFILE)
    assert said(found) == ""
    assert dict(cases.tests(found, "positive").outcomes) == {"cube-positive": "passed"}
    assert cases.tests(found, "negative").counts.ran == 0
    nested = cases.read(leave(tmp_path / "n", folder="deep/er"), NONCE, PROFILE)
    assert said(nested) == ""
    assert nested.seen[0].artifacts[0].path == "deep/er/before.txt"


OTHER = sha("other")


@pytest.mark.guarantee("M21", "M24")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (
            lambda v: v.update(nonce="0" * 32),
            "its nonce is not this run's: it was written beforehand or elsewhere",
        ),
        (lambda v: v.update(nonce=""), "its nonce is not this run's"),
        (lambda v: v.update(case="ball-positive"), "its name must be ball-positive.case.json"),
        (lambda v: v.update(case="../x"), "its case '../x'"),
        (lambda v: v.update(case="\ud800"), "its case"),
        (lambda v: v.update(kind="positiv"), "'positiv' is no kind of case"),
        (lambda v: v.update(status="skipped"), "is none of the choices"),
        (lambda v: v.update(status="PASSED"), "is none of the choices"),
        (lambda v: v.update(runtime="FIREFOX"), "'FIREFOX' is no runtime"),
        (lambda v: v.update(units=[]), "its units are empty: name what it shows"),
        (lambda v: v.update(units=["cube", "cube"]), "its unit 'cube' stands twice: keep one"),
        (lambda v: v["observations"].update(actual=OTHER), "expected == actual does not hold"),
        (
            lambda v: v["observations"].update(after=v["observations"]["before"]),
            "before != after does not hold",
        ),
        (lambda v: v["observations"].update(undo=OTHER), "'undo' is none of a positive case"),
        (lambda v: v["observations"].update(after="abc"), "must be a SHA-256"),
        (lambda v: v["observations"].update(after=v["observations"]["after"].upper()), "must be a SHA-256"),
        (lambda v: v["observations"].update(after=OTHER), "is the digest of none of its artifacts"),
        (lambda v: v.update(observations={}), "observations are missing"),
        (lambda v: v.update(observations={"before": 1}), "observations"),
        (lambda v: v.update(artifacts=[]), "is the digest of none of its artifacts"),
        (lambda v: v["artifacts"][0].update(sha256=OTHER), "its digest differs"),
        (lambda v: v["artifacts"][0].update(path="missing.txt"), "'missing.txt' is missing"),
        (lambda v: v["artifacts"][0].update(path="../before.txt"), "'../before.txt'"),
        (lambda v: v["artifacts"][0].update(path="/etc/hostname"), "'/etc/hostname'"),
        (lambda v: v["artifacts"].append(v["artifacts"][0]), "'before.txt' stands twice"),
        (lambda v: v.pop("nonce"), "nonce: is missing"),
        (lambda v: v.update(verified=True), "verified = true: is no known key"),
        (lambda v: v["artifacts"][0].update(size=1), "size = 1: is no known key"),
    ],
)
def test_a_damaged_receipt_is_refused_by_name(tmp_path: Path, edit: Edit, why: str) -> None:
    found = cases.read(leave(tmp_path, edit), NONCE, PROFILE)
    told = said(found)
    assert why in told
    assert "case receipt cube-positive.case.json" in told
    assert not cases.tests(found, "positive").counts.passed


@pytest.mark.guarantee("M21")
@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'{"case": 1, "case": 2}', b'"\xff"', b"[" * 90_000]
)
def test_what_is_no_receipt_is_named(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.case.json").write_bytes(raw)
    assert "x.case.json" in said(cases.read(tmp_path, NONCE, PROFILE))


@pytest.mark.guarantee("M21")
def test_links_pipes_and_floods_are_no_receipts(tmp_path: Path) -> None:
    outside = leave(tmp_path / "outside")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "cube-positive.case.json").symlink_to(outside / "cube-positive.case.json")
    os.mkfifo(inside / "pipe.case.json")
    (inside / "huge.case.json").write_bytes(b" " * (1024 * 1024 + 1))
    (inside / "a\nb.case.json").write_text("{}")
    os.close(os.open(bytes(inside) + b"/\xff.case.json", os.O_CREAT | os.O_WRONLY))
    found = cases.read(inside, NONCE, PROFILE)
    assert found.seen == ()
    assert len(found.unreadable) == 5
    json.dumps(found.unreadable).encode()
    for number in range(2100):
        (inside / f"{number}.case.json").write_text("{}")
    assert "more than 2000" in said(cases.read(inside, NONCE, PROFILE))


@pytest.mark.guarantee("M21")
def test_an_artifact_that_is_a_link_or_too_large_is_refused(tmp_path: Path) -> None:
    leave(tmp_path)
    (tmp_path / "after.txt").unlink()
    (tmp_path / "after.txt").symlink_to(tmp_path / "actual.txt")
    assert "'after.txt' cannot be read" in said(cases.read(tmp_path, NONCE, PROFILE))
    (tmp_path / "after.txt").unlink()
    with (tmp_path / "after.txt").open("wb") as file:
        file.truncate(cases.ARTIFACT_BYTES + 1)
    assert "'after.txt' cannot be read" in said(cases.read(tmp_path, NONCE, PROFILE))


@pytest.mark.guarantee("M21")
def test_two_receipts_of_one_case_count_for_nothing(tmp_path: Path) -> None:
    leave(tmp_path)
    leave(tmp_path, folder="again")
    found = cases.read(tmp_path, NONCE, PROFILE)
    assert "another receipt is of case 'cube-positive' too" in said(found)
    assert not cases.tests(found, "positive").counts.passed


@pytest.mark.guarantee("M21")
def test_a_failed_case_is_a_failed_test_and_no_fault(tmp_path: Path) -> None:
    found = cases.read(leave(tmp_path, lambda v: v.update(status="failed")), NONCE, PROFILE)
    assert said(found) == ""
    assert cases.tests(found, "positive").counts.failed == 1


@pytest.mark.guarantee("M21")
def test_faults_of_another_kind_are_told_by_its_own_check(tmp_path: Path) -> None:
    found = cases.read(leave(tmp_path, lambda v: v.update(runtime="FIREFOX")), NONCE, PROFILE)
    assert said(found, "negative") == ""
    assert "FIREFOX" in said(found, "positive")


@pytest.mark.guarantee("M21")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"id": "cube-other"}, "cube-other: it was declared, and check positive left no receipt of it"),
        ({"check": "negative"}, "check negative left no receipt of it"),
        ({"runtime": "BLENDER_NATIVE"}, "its runtime was declared as 'BLENDER_NATIVE'"),
        ({"units": ("cube", "ball")}, "its units was declared as ['ball', 'cube']"),
        ({"units": ("ball",)}, "its units was declared as ['ball']"),
        ({"kind": "negative"}, "its kind was declared as 'negative'"),
    ],
)
def test_what_was_declared_must_be_what_was_seen(tmp_path: Path, changed: dict, why: str) -> None:
    given = {
        "id": "cube-positive",
        "kind": "positive",
        "runtime": "CHROMIUM_WEBENGINE",
        "check": "positive",
        "units": ("cube",),
    }
    seen = cases.read(leave(tmp_path), NONCE, PROFILE).seen
    told = "; ".join(cases.unshown((Case(**{**given, **changed}),), {"positive": seen, "negative": ()}))
    assert why in told if why else told == ""


@pytest.mark.guarantee("M21", "M26")
def test_what_was_seen_is_kept_by_digest(tmp_path: Path) -> None:
    root, store = leave(tmp_path / "run"), tmp_path / "evidence"
    seen = cases.read(root, NONCE, PROFILE).seen
    kept = dict(cases.keep(root, seen, store))
    assert set(kept) == {"cube-positive.case.json", *(f"{state}.txt" for state in STATES)}
    assert {path.name for path in store.iterdir()} == set(kept.values())
    (root / "after.txt").write_text("something else")
    with pytest.raises(IntegrityError, match="changed after it was read"):
        dict(cases.keep(root, seen, tmp_path / "other"))
