"""Profiles are data: their laws as a table, and that a repository can add to one and never take away."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support import migration

from longwatch.kernel.errors import ConfigError
from longwatch.migrate import profiles, settings
from longwatch.migrate.profiles import Extension, QueueSettings
from longwatch.migrate.profiles.law import CaseKind, Relation, broken

BLENDER = profiles.shipped("blender-web")
NINE = (
    *("source_build", "typecheck", "lint", "chromium"),
    *("positive", "negative", "undo_redo", "save_reopen", "determinism"),
)


def law(kind: str) -> CaseKind:
    found = BLENDER.case_kind(kind)
    assert found is not None
    return found


@pytest.mark.guarantee("M20", "M21")
def test_the_profiles_that_ship_say_what_the_specification_says() -> None:
    assert profiles.shipped("plain").required_kinds == ("test",)
    assert BLENDER.required_kinds == NINE
    assert [kind.name for kind in BLENDER.case_kinds] == list(migration.KINDS)
    assert BLENDER.runtimes == ("BLENDER_NATIVE", "CHROMIUM_WEBENGINE")
    assert BLENDER.required_runtimes == ("CHROMIUM_WEBENGINE",)
    assert BLENDER.required_artifacts == ("compiled",)


@pytest.mark.guarantee("M21")
@pytest.mark.parametrize(
    ("kind", "observed", "told"),
    [
        ("positive", {"before": "a", "after": "b"}, ""),
        ("positive", {"expected": "a", "actual": "a"}, ""),
        ("positive", {"before": "a", "after": "b", "expected": "c", "actual": "c"}, ""),
        ("positive", {"before": "a", "after": "a"}, "before != after does not hold"),
        ("positive", {"expected": "a", "actual": "b"}, "expected == actual does not hold"),
        ("positive", {"before": "a", "after": "b", "expected": "c", "actual": "d"}, "expected == actual"),
        ("positive", {"before": "a", "after": "a", "expected": "c", "actual": "c"}, "before != after"),
        ("positive", {"before": "a", "actual": "b"}, "observations are missing"),
        ("positive", {}, "observations are missing"),
        ("positive", {"before": "a", "after": "b", "undo": "a"}, "'undo' is none of a positive case"),
        ("negative", {"before": "a", "after": "a"}, ""),
        ("negative", {"before": "a", "after": "b"}, "before == after does not hold"),
        ("undo_redo", {"before": "a", "after": "b", "undo": "a", "redo": "b"}, ""),
        ("undo_redo", {"before": "a", "after": "a", "undo": "a", "redo": "a"}, "before != after"),
        ("undo_redo", {"before": "a", "after": "b", "undo": "b", "redo": "b"}, "undo == before"),
        ("undo_redo", {"before": "a", "after": "b", "undo": "a", "redo": "a"}, "redo == after"),
        ("undo_redo", {"before": "a", "after": "b", "undo": "a"}, "observations are missing"),
        ("save_reopen", {"saved": "a", "reopened": "a"}, ""),
        ("save_reopen", {"saved": "a", "reopened": "b"}, "saved == reopened"),
        ("determinism", {"first": "a", "second": "a"}, ""),
        ("determinism", {"first": "a", "second": "b"}, "first == second"),
        ("determinism", {"first": "a"}, "observations are missing"),
    ],
)
def test_the_five_laws(kind: str, observed: Mapping[str, str], told: str) -> None:
    said = "; ".join(broken(law(kind), observed))
    assert told in said if told else said == ""


@pytest.mark.parametrize("text", ["before = after", "a == a", "a < b", "A == b", "a == b == c", "", "a==b"])
def test_what_is_no_law_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no law"):
        Relation.read(text)


SAME = CaseKind(name="hover", laws=(("before == after",),))
ADDED = Extension(
    name="blender-web",
    required_kinds=("hover",),
    case_kinds=(SAME,),
    runtimes=("WEBGPU",),
    required_runtimes=("WEBGPU",),
    unit_cases=("hover",),
    artifact_kinds=("map",),
    required_artifacts=("map",),
    forbidden_words=("curl",),
    protected=("/harness/",),
)


@pytest.mark.guarantee("M20", "M21")
def test_a_repository_adds_to_a_profile() -> None:
    queue = QueueSettings(pointer="QUEUE.md", source_root="src", handoff=(("python3", "hand.py"),))
    assert list(profiles.problems(ADDED, queue)) == []
    found = profiles.effective(ADDED, queue)
    for field in ("required_kinds", "case_kinds", "runtimes", "forbidden_words", "protected", "unit_cases"):
        assert getattr(found, field) == (*getattr(BLENDER, field), *getattr(ADDED, field))
    assert (found.queue.pointer, found.queue.inventory) == ("QUEUE.md", "migration/inventory.json")


def told(extension: Extension, **queue: object) -> str:
    given = {"source_root": "/src", "handoff": (("python3", "hand.py"),), **queue}
    found = profiles.problems(extension, QueueSettings(**given))  # type: ignore[arg-type]
    return "\n".join(f"{one.where}: {one.mend}" for one in found)


@pytest.mark.guarantee("M20", "M21")
@pytest.mark.parametrize(
    ("extension", "why"),
    [
        ({"name": "blender-wbe"}, "did you mean `blender-web`?"),
        (
            {"case_kinds": (CaseKind(name="negative", laws=(("before != after",),)),)},
            "a law cannot be replaced",
        ),
        ({"case_kinds": (SAME, SAME)}, "is defined already"),
        ({"case_kinds": (CaseKind(name="hover", laws=()),)}, "nothing would be proved"),
        ({"case_kinds": (CaseKind(name="hover", laws=((),)),)}, "nothing would be proved"),
        ({"case_kinds": (CaseKind(name="hover", laws=(("a < b",),)),)}, "is no law"),
        ({"case_kinds": (CaseKind(name="a/b", laws=(("a == b",),)),)}, "profile.case_kinds[0].name"),
        ({"required_runtimes": ("FIREFOX",)}, 'profile.required_runtimes = "FIREFOX": is not known'),
        ({"unit_cases": ("hover",)}, 'profile.unit_cases = "hover": is not known'),
        ({"required_artifacts": ("map",)}, 'profile.required_artifacts = "map": is not known'),
        ({"protected": ("../x",)}, "profile.protected"),
        ({"forbidden_words": (" ",)}, "must have no empty word"),
        ({"runtimes": ("a b",)}, "profile.runtimes"),
    ],
)
def test_what_a_repository_cannot_say(extension: dict[str, object], why: str) -> None:
    assert why in told(Extension(**{"name": "blender-web", **extension}))  # type: ignore[arg-type]


@pytest.mark.guarantee("M2")
@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ({"handoff": ()}, "queue.handoff = []: must name the repository's generators"),
        ({"handoff": ((),)}, "must name the repository's generators"),
        ({"manifest": "manifest.json"}, "must hold {task}"),
        ({"backlog": "backlog.json"}, "must hold {task}"),
        ({"pointer": "../QUEUE.md"}, "queue.pointer"),
        ({"inventory": "/etc/inventory"}, "queue.inventory"),
        ({"source_root": ""}, "queue.source_root: is missing"),
        ({"source_root": "../blender"}, "queue.source_root"),
        ({"generated": ("!x",)}, "queue.generated"),
    ],
)
def test_a_queue_that_cannot_be(queue: dict[str, object], why: str) -> None:
    extension = Extension(name="blender-web")
    if queue.get("inventory"):
        assert "queue.inventory" not in told(extension)
    assert why in told(extension, **queue)


def test_cases_need_a_queue_with_units() -> None:
    extension = Extension(case_kinds=(SAME,))
    found = "\n".join(one.where for one in profiles.problems(extension, QueueSettings()))
    assert "queue.pointer" in found
    orphan = "\n".join(one.mend for one in profiles.problems(Extension(), QueueSettings(inventory="a.json")))
    assert "needs queue.pointer" in orphan


SETTINGS = migration.settings_text(Path("/source"))


def loaded(folder: Path, text: str) -> settings.MigrateSettings:
    (folder / "longwatch.toml").write_text(text)
    return settings.load(folder)


@pytest.mark.guarantee("M20")
def test_the_policy_in_force_is_the_union(tmp_path: Path) -> None:
    extra = SETTINGS.replace('name = "blender-web"', 'name = "blender-web"\nforbidden_words = ["curl"]', 1)
    found = loaded(tmp_path, extra).policy_in_force()
    assert found.required_kinds == NINE
    assert {"firefox", "curl"} <= set(found.forbidden_words)


@pytest.mark.guarantee("M20", "M23")
@pytest.mark.parametrize("kind", NINE)
def test_no_required_kind_can_be_left_out(tmp_path: Path, kind: str) -> None:
    without = SETTINGS.replace(f'kind = "{kind}"', 'kind = "other"')
    with pytest.raises(ConfigError, match=f'no check has the required kind: add one with kind = "{kind}"'):
        loaded(tmp_path, without)
    rest = [f'"{one}"' for one in NINE if one != kind]
    fewer = f"{SETTINGS}\n[policy]\nrequired_kinds = [{', '.join(rest)}]\n"
    with pytest.raises(ConfigError, match=f'must hold "{kind}": the profile blender-web requires it'):
        loaded(tmp_path, fewer)


@pytest.mark.guarantee("M14", "M20")
def test_a_forbidden_program_cannot_be_allowed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds the forbidden word 'firefox'"):
        loaded(tmp_path, f'{SETTINGS}\n[policy]\nexecutables = ["/usr/bin/Firefox"]\n')
