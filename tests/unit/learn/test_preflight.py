"""What `doctor` says of a learn watch before an hour is spent."""

import re

import msgspec
import pytest
from curricula import PUBLIC

from longwatch.kernel.finding import Standing
from longwatch.learn import preflight
from longwatch.learn.grading import scripts
from longwatch.learn.settings import Audit, Curriculum, LearnSettings, Recipe
from longwatch.learn.tasks import Language
from longwatch.learn.teachers.provenance import Teacher
from longwatch.learn.teachers.settings import Teaching

HUMANEVAL = PUBLIC / "humaneval/HumanEval.jsonl.gz"


def of_audit(root, path):
    settings = LearnSettings(kind="learn", audit=Audit(humaneval=path))
    return [one for one in preflight.findings(settings, root) if one.name == "audit"]


def test_without_an_audit_nothing_is_said_of_it(tmp_path):
    assert of_audit(tmp_path, "") == []


@pytest.mark.guarantee("L1", "L24")
@pytest.mark.parametrize("content", [None, b"", b"another file"])
def test_a_benchmark_that_is_not_the_published_one_is_found_before_anything_runs(tmp_path, content):
    if content is not None:
        (tmp_path / "HumanEval.jsonl.gz").write_bytes(content)
    (found,) = of_audit(tmp_path, "HumanEval.jsonl.gz")
    assert found.standing is Standing.WRONG
    assert "longwatch fetch humaneval" in found.mend
    assert str(tmp_path / "HumanEval.jsonl.gz") in found.text


@pytest.mark.skipif(not HUMANEVAL.exists(), reason="HumanEval is not here")
@pytest.mark.parametrize("relative", [False, True])
def test_the_published_one_is_fine_also_by_a_path_in_the_watch(tmp_path, relative):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/HumanEval.jsonl.gz").write_bytes(HUMANEVAL.read_bytes())
    (found,) = of_audit(tmp_path, "data/HumanEval.jsonl.gz" if relative else str(HUMANEVAL))
    assert (found.standing, found.text) == (Standing.FINE, "HumanEval, 164 tasks, as published")


@pytest.mark.guarantee("L9", "K38", "K24")
def test_a_teacher_that_cannot_be_asked_is_said_and_keeps_the_watch_only_where_it_is_required(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("TEACHER_KEY", raising=False)

    def found(kind=Teacher.ENDPOINT, **table):
        teacher = Teaching(model="large", base_url="https://teacher.invalid:8443/v1", key="TEACHER_KEY")
        teacher = msgspec.structs.replace(teacher, **table)
        recipe = Recipe(teacher=kind)
        given = LearnSettings(kind="learn", training=recipe, teacher=teacher)
        (one,) = [one for one in preflight.findings(given, tmp_path) if one.name == "teacher"]
        return one

    assert (found().standing, "TEACHER_KEY" in found().text) == (Standing.NOTE, True)
    assert found(required=True).standing is Standing.WRONG
    monkeypatch.setenv("TEACHER_KEY", "hunter22")
    assert found(required=True).standing is Standing.FINE
    assert found().text == "endpoint, large at https://teacher.invalid:8443, which is not asked now"
    missing = found(Teacher.MODEL, model=str(tmp_path / "nowhere"))
    assert (missing.standing, "[teacher] model" in missing.text) == (Standing.NOTE, True)
    assert found(Teacher.REFERENCE).text == "reference"


@pytest.mark.guarantee("L9", "K17")
def test_only_who_asks_an_endpoint_sees_how_the_network_is_reached():
    asked = LearnSettings(
        kind="learn", training=Recipe(teacher=Teacher.ENDPOINT), teacher=Teaching(key="TEACHER_KEY")
    )
    assert {"TEACHER_KEY", "HTTPS_PROXY", "SSL_CERT_FILE"} <= set(asked.variables)
    assert LearnSettings(kind="learn").variables == ()
    assert asked.secrets == ("TEACHER_KEY",)


@pytest.mark.guarantee("L23")
def test_it_tells_which_languages_are_here_and_how_to_get_the_others(tmp_path, monkeypatch):
    def of_languages(*taught):
        settings = LearnSettings(kind="learn", curriculum=Curriculum(languages=taught))
        found = preflight.findings(settings, tmp_path)
        return [one for one in found if one.name.startswith(("languages", "runtime"))]

    lacking = {Language.GO: ("/usr/bin/go",), Language.R: ("/usr/bin/Rscript",)}
    monkeypatch.setattr(scripts, "missing", lambda language, _where: lacking.get(language, ()))
    here, absent = of_languages(Language.PYTHON)
    assert (here.standing, absent.standing) == (Standing.FINE, Standing.NOTE)
    assert re.match(r"Python 3\.\d+", here.text)
    assert absent.text.endswith(": Go, R")
    assert absent.mend == "apt-get install golang-go r-base-core"
    wrong, _, absent = of_languages(Language.PYTHON, Language.GO)
    assert (wrong.standing, wrong.mend) == (Standing.WRONG, "apt-get install golang-go")
    assert absent.text.endswith(": R")
