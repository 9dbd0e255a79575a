"""What a worker declares is held against inventory, catalog, source and policy, all of it at once."""

import json
from collections.abc import Callable

import msgspec
import pytest
from tests.support import migration
from tests.support.migration import KINDS, answer

from longwatch.migrate.attempt.claims import Claim, claimed
from longwatch.migrate.attempt.declaration import Known, faults
from longwatch.migrate.attempt.result import CASES_SCHEMA, RESULT_SCHEMA, Result, read_result
from longwatch.migrate.declared import Declared
from longwatch.migrate.patterns import protected_patterns
from longwatch.migrate.queue import accounting
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.repository.git import Change
from longwatch.migrate.repository.harvest import Harvest
from longwatch.migrate.settings import Check, Repository
from longwatch.migrate.steps import Refusal

NONCE = "n" * 32
PROFILE = migration.profile()
Edit = Callable[[dict], object]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    place = tmp_path_factory.mktemp("declared")
    root = migration.lay_out(place / "port", place / "source")
    source = Folder(place / "source")
    account, problems = accounting.read(PROFILE.queue, Folder(root))
    assert problems == ()
    checks = tuple(Check(name=kind, kind=kind, argv=argv) for kind, argv in migration.CHECKS.items())
    return Known(
        profile=PROFILE,
        account=account,
        checks=checks,
        units=("cube",),
        has_source=lambda path: source.sha256(path) is not None,
    )


def said(known: Known, edit: Edit = lambda _: None) -> str:
    value = answer("cube")
    edit(value)
    return "\n".join(faults(msgspec.convert(value, Declared), known))


@pytest.mark.guarantee("M13")
def test_an_honest_declaration_has_no_fault(known: Known) -> None:
    assert said(known) == ""
    anywhere = msgspec.structs.replace(known, units=())
    assert said(anywhere) == ""


def case(**changed: object) -> Edit:
    return lambda value: value["cases"][0].update(changed)


def without(kind: str) -> Edit:
    return lambda value: value.update(cases=[one for one in value["cases"] if one["kind"] != kind])


@pytest.mark.guarantee("M13", "M20", "M21")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda v: v.update(units=[]), "units: none is declared"),
        (lambda v: v.update(units=["cube", "cube"]), "units: 'cube' stands 2 times"),
        (lambda v: v.update(units=["cube", "cone"]), "units: 'cone' is no unit of the inventory"),
        (lambda v: v.update(units=["cube", "ball"]), "units: 'ball' is not this job's"),
        (lambda v: v.update(units=["ball"]), "units: 'cube' is this job's and is not declared"),
        (lambda v: v.update(units=["Cube"]), "'Cube' is no unit"),
        (lambda v: v.update(routes=["/add/cone"]), "routes: '/add/cone' is no route of the catalog"),
        (lambda v: v.update(routes=["/add/cube", "/add/cube"]), "routes: '/add/cube' stands 2 times"),
        (
            lambda v: v.update(routes=["/add/cube", "/add/ball"]),
            "'/add/ball' leads to none of the declared units",
        ),
        (lambda v: v.update(routes=[]), "'cube' has a route in the catalog, and none is declared"),
        (lambda v: v.update(references=[]), "references: none is declared"),
        (lambda v: v.update(references=["cone.txt"]), "'cone.txt' is no file below the source root"),
        (lambda v: v.update(references=["../port/oracle/harness.py"]), "references: '../port"),
        (lambda v: v.update(references=["/etc/passwd"]), "references: '/etc/passwd'"),
        (lambda v: v.update(references=["cube.txt", "cube.txt"]), "references: 'cube.txt' stands 2 times"),
        (lambda v: v.update(references=["cube.txt/x"]), "is no file below the source root"),
        (lambda v: v.update(references=["\ud800"]), "references:"),
        (lambda v: v.update(references=["."]), "references:"),
        (case(id="a/b"), "case 'a/b': its id"),
        (case(id=".."), "case '..': its id"),
        (case(id="CUBE-NEGATIVE"), "'cube-negative' stands 2 times"),
        (case(kind="positiv"), "'positiv' is no kind of case; did you mean `positive`?"),
        (case(runtime="FIREFOX"), "'FIREFOX' is no runtime"),
        (case(runtime="chromium_webengine"), "is no runtime"),
        (case(check="nothing"), "'nothing' is no check of this job"),
        (case(check="negative"), "check 'negative' is of kind 'negative', not 'positive'"),
        (case(check="chromium"), "check 'chromium' is of kind 'chromium', not 'positive'"),
        (case(units=[]), "case 'cube-positive': it names no unit"),
        (case(units=["ball"]), "its unit 'ball' is not among the declared units"),
        (case(units=["cube", "cube"]), "the unit 'cube' stands 2 times"),
        (case(units=["ball"]), "cases: unit 'cube' has no case of kind 'positive'"),
        (lambda v: v.update(cases=[]), "none comes from the required runtime 'CHROMIUM_WEBENGINE'"),
        (
            lambda v: [one.update(runtime="BLENDER_NATIVE") for one in v["cases"]],
            "none comes from the required runtime 'CHROMIUM_WEBENGINE'",
        ),
        *((without(kind), f"none of the required kind '{kind}'") for kind in KINDS),
        (lambda v: v.update(artifacts=[]), "none of the required kind 'compiled' is declared"),
        (lambda v: v["artifacts"][0].update(kind="wasm"), "'wasm' of 'dist/app.bin' is no kind"),
        (lambda v: v["artifacts"][0].update(path="../app.bin"), "artifacts: '../app.bin'"),
        (lambda v: v["artifacts"][0].update(path="/tmp/app.bin"), "artifacts: '/tmp/app.bin'"),
        (lambda v: v["artifacts"][0].update(path=".git/app.bin"), "reaches into the git folder"),
        (lambda v: v["artifacts"].append(v["artifacts"][0]), "'dist/app.bin' stands 2 times"),
    ],
)
def test_each_fault_is_named(known: Known, edit: Edit, why: str) -> None:
    assert why in said(known, edit)


@pytest.mark.guarantee("M13")
def test_all_faults_are_told_at_once(known: Known) -> None:
    told = said(
        known, lambda v: v.update(units=["cone"], routes=["/x"], references=["y"], cases=[], artifacts=[])
    )
    assert all(
        part in told for part in ("'cone'", "'/x'", "'y'", "determinism", "CHROMIUM_WEBENGINE", "compiled")
    )


def claim(known: Known, edit: Edit, changed: str = "web/cube.txt") -> Claim:
    value = answer("cube", nonce=NONCE)
    edit(value)
    taken = Harvest(
        tree="t", changes=(Change(path=changed, kind="A", mode="100644", blob="b" * 40),), refused=()
    )
    protected = protected_patterns(Repository(branch="main", protected=("/migration/",)))
    raw = json.dumps(value).encode()
    return claimed(raw, NONCE, taken, owned=("web/cube.txt",), protected=protected, known=known)


@pytest.mark.guarantee("M13", "M18")
def test_declaration_and_change_are_judged_together(known: Known) -> None:
    good = claim(known, lambda _: None)
    assert good.refused == ()
    assert good.declared is not None
    assert good.declared.units == ("cube",)
    bad = claim(known, lambda v: v.update(units=["cone"]), changed="migration/inventory.json")
    told = "\n".join(bad.refused)
    assert bad.kind is Refusal.CHANGE
    assert "'cone' is no unit" in told
    assert "migration/inventory.json is protected" in told
    assert "web/cube.txt: it is declared as changed" in told
    only = claim(known, lambda v: v.update(units=["cone"]))
    assert only.kind is Refusal.CLAIM
    assert claim(known, lambda v: v.update(status="blocked", reason="no source")).refused == (
        "the worker says it is blocked: no source",
    )


@pytest.mark.guarantee("M13")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda v: v.pop("cases"), "'cases' is a required property"),
        (lambda v: v.pop("units"), "'units' is a required property"),
        (lambda v: v.update(coverage="all"), "'coverage' was unexpected"),
        (lambda v: v["cases"][0].update(passed=True), "'passed' was unexpected"),
        (lambda v: v["cases"][0].pop("runtime"), "'runtime' is a required property"),
        (lambda v: v["cases"][0].update(units="cube"), "cases.0.units"),
        (lambda v: v["artifacts"][0].update(sha256="0"), "'sha256' was unexpected"),
        (lambda v: v.update(references=[1]), "references.0"),
    ],
)
def test_the_schema_is_closed(edit: Edit, why: str) -> None:
    value = answer("cube", nonce=NONCE)
    edit(value)
    found = read_result(json.dumps(value).encode(), NONCE, cases=True)
    assert isinstance(found, tuple)
    assert why in "\n".join(found)


def test_a_plain_answer_is_none_where_cases_are_asked_for_and_the_other_way_round() -> None:
    plain = {"nonce": NONCE, "status": "done", "summary": "s", "changed": ["a"], "reason": ""}
    assert isinstance(read_result(json.dumps(plain).encode(), NONCE), Result)
    assert isinstance(read_result(json.dumps(plain).encode(), NONCE, cases=True), tuple)
    full = json.dumps(answer("cube", nonce=NONCE)).encode()
    assert isinstance(read_result(full, NONCE, cases=True), Result)
    assert isinstance(read_result(full, NONCE), tuple)
    assert b'"cases"' in CASES_SCHEMA
    assert b'"cases"' not in RESULT_SCHEMA
