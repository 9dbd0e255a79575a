"""An audit in several languages: each for itself, and one that cannot be judged here is void (L22, L23)."""

import exams
import msgspec
import pytest
from exams import ByHeart, adapter_in, benchmark, place_in, step_of, work_in

from longwatch.learn.auditing import perform, running
from longwatch.learn.auditing.benchmarks import Benchmark
from longwatch.learn.grading import scripts
from longwatch.learn.grading.known import known
from longwatch.learn.looks import Audited
from longwatch.learn.tasks import Language

COUNT = 4


def names(asked, *numbers):
    return {asked.tasks[number].id for number in numbers}


def in_one_file(language, count=3):
    """A benchmark of tasks that are one program with their answer."""
    right = known(language)[0]
    tasks = tuple(
        msgspec.structs.replace(right.task, id=f"{language}-{number}", reference=right.answer)
        for number in range(count)
    )
    return Benchmark(name="MultiPL-E", language=language, source=exams.SOURCE, tasks=tasks)


@pytest.mark.guarantee("L10", "L22", "L23")
def test_languages_stand_side_by_side_and_one_that_is_not_installed_is_void(tmp_path, monkeypatch):
    place = place_in(tmp_path / "watch")
    asked, champion = benchmark(COUNT), adapter_in(place)
    bash, go = in_one_file(Language.BASH), in_one_file(Language.GO)
    monkeypatch.setattr(running, "chosen", lambda *_: (asked, bash, go))
    monkeypatch.setattr(
        scripts, "missing", lambda one, _where: ("/usr/bin/go",) if one is Language.GO else ()
    )
    right = {"base": names(asked, 0), champion: {*names(asked, 0, 1), "bash-0", "bash-2"}}
    student = ByHeart((*asked.tasks, *bash.tasks, *go.tasks), right).install(monkeypatch)
    outcome = perform(work_in(place, champion), step_of(champion), place)
    found = msgspec.json.decode(outcome.evidence, type=Audited)
    python, shell, void = found.languages
    assert found.benchmark == "tiny and MultiPL-E"
    assert (python.base_passed, python.champion_passed, python.total, python.one_process) == (
        1,
        2,
        COUNT,
        False,
    )
    assert (shell.base_passed, shell.champion_passed, shell.total, shell.one_process) == (0, 2, 3, True)
    assert shell.gained == ("bash-0", "bash-2")
    assert "tests in the process of the answer" in shell.sentence
    assert "tests in the process" not in python.sentence
    assert void.void == "/usr/bin/go not here: apt-get install golang-go"
    assert not any(task.startswith("go") for _, task in student.asked)
    assert found.scored == (python, shell)
    assert found.champion_macro == pytest.approx((2 / COUNT + 2 / 3) / 2)
