"""What `doctor` says of a learn watch before an hour is spent."""

import pytest
from curricula import PUBLIC

from longwatch.kernel.finding import Standing
from longwatch.learn import preflight
from longwatch.learn.settings import Audit, LearnSettings

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
