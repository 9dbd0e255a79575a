"""Audits: references first, each task once, and only what is whole and recomputed counts (L22 to L25)."""

import signal
import subprocess
import sys

import exams
import msgspec
import pytest
from curricula import PUBLIC
from exams import ByHeart, adapter_in, benchmark, place_in, step_of, work_in
from tests.support import tiny_watch

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, NotReadyError
from longwatch.kernel.line import Stopped, Succeeded
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, examining
from longwatch.learn.acceptance import FlipRate
from longwatch.learn.auditing import perform, running
from longwatch.learn.auditing.records import Record, record_of, score_of
from longwatch.learn.auditing.running import audit
from longwatch.learn.looks import Audited, LanguageAudit
from longwatch.learn.settings import Audit as AuditSettings
from longwatch.learn.settings import LearnSettings, Student
from longwatch.learn.student.load import load
from longwatch.learn.tasks import Grade, Verdict

COUNT = 10


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path / "watch")


@pytest.fixture
def asked():
    return benchmark(COUNT)


def names(asked, *numbers):
    return {asked.tasks[number].id for number in numbers}


@pytest.fixture
def champion(place):
    return adapter_in(place)


@pytest.fixture
def student(asked, champion, monkeypatch):
    """Base passes 0, 1 and 2; the champion 1, 2, 3, 4 and 5."""
    right = {"base": names(asked, 0, 1, 2), champion: names(asked, 1, 2, 3, 4, 5)}
    return ByHeart(asked.tasks, right).install(monkeypatch)


def look(place, asked, champion, work=None):
    return audit(work or work_in(place, champion), step_of(champion), place, asked)


@pytest.mark.guarantee("L22", "L24")
def test_base_and_champion_are_asked_once_and_put_side_by_side(place, asked, champion, student):
    found = look(place, asked, champion)
    assert (found.base_passed, found.champion_passed, found.total) == (3, 5, COUNT)
    assert set(found.gained) == names(asked, 3, 4, 5)
    assert set(found.lost) == names(asked, 0)
    assert found.p == pytest.approx(0.625)
    assert found.flips == FlipRate(flipped=0, repeated=3)
    assert not found.void
    assert not found.reused
    every = [task.id for task in asked.tasks]
    assert sorted(task for name, task in student.asked if name == champion) == sorted(every)
    assert sorted(task for name, task in student.asked if name == "base") == sorted(2 * every), "A/A"
    assert {batch for _, batch, _ in student.batches} == {4}


@pytest.mark.guarantee("L22")
def test_unchanged_weights_reuse_their_records_and_nothing_is_loaded(place, asked, champion, student):
    first = look(place, asked, champion)
    count = len(student.asked)
    again = look(place, asked, champion)
    assert len(student.asked) == count
    assert again == msgspec.structs.replace(first, reused=True)


@pytest.mark.guarantee("L15", "L22")
@pytest.mark.parametrize("changed", ["batch", "base", "tokenizer", "threads", "prompt"])
def test_whatever_else_decides_an_answer_has_it_asked_anew(place, asked, student, monkeypatch, changed):
    look(place, asked, "base")
    student.asked.clear()
    settings = place.settings
    if changed == "batch":
        settings = msgspec.structs.replace(
            settings, student=msgspec.structs.replace(settings.student, batch=8)
        )
    if changed in {"base", "tokenizer"}:
        name = {"base": "config.json", "tokenizer": "tokenizer.json"}[changed]
        (place.watch.root / "model" / name).write_text("{ }")
    if changed == "threads":
        monkeypatch.setenv("OMP_NUM_THREADS", "13")
    if changed == "prompt":
        tasks = tuple(msgspec.structs.replace(one, prompt=f"{one.prompt} Now.") for one in asked.tasks)
        asked = msgspec.structs.replace(asked, tasks=tasks)
    other = exams.Place(place.watch, settings)
    assert not look(other, asked, "base").reused
    assert {task for _, task in student.asked} == {task.id for task in asked.tasks}


@pytest.mark.guarantee("L22", "L24")
@pytest.mark.parametrize("changed", ["source", "tests"])
def test_what_decides_no_answer_makes_a_new_record_of_the_same_answers(
    place, asked, champion, student, changed
):
    look(place, asked, champion)
    count = len(student.asked)
    if changed == "source":
        other = msgspec.structs.replace(asked, source="d" * 64)
    else:
        tasks = tuple(msgspec.structs.replace(one, level=one.level + 1) for one in asked.tasks)
        other = msgspec.structs.replace(asked, tasks=tasks)
    found = look(place, other, champion)
    assert not found.reused
    assert (found.base_passed, found.champion_passed) == (3, 5)
    assert len(student.asked) == count


@pytest.mark.guarantee("L22")
@pytest.mark.parametrize("after", [0, 3, 4, 9])
def test_killed_it_goes_on_after_the_last_whole_batch(place, asked, monkeypatch, after):
    """Ten tasks at batch 4 are parts of 3, 3 and 4."""
    program = [sys.executable, "-W", "ignore", exams.__file__, str(place.watch.root), str(after)]
    died = subprocess.run(program, check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    student = ByHeart(asked.tasks, {"base": {task.id for task in asked.tasks[::2]}}).install(monkeypatch)
    found = look(place, asked, "base")
    done = max(size for size in (0, 3, 6, 10) if size <= after)
    first = [task for _, _, part in student.batches[: 3 - (0, 3, 6, 10).index(done)] for task in part]
    assert first == [task.id for task in asked.tasks[done:]]
    assert (found.base_passed, found.champion_passed, found.total) == (5, 5, COUNT)
    (path,) = [one for one in place.audits.glob("*.json") if "proof" not in one.name]
    record = msgspec.json.decode(path.read_bytes(), type=Record)
    assert [one.answer.task for one in record.exam.graded] == [task.id for task in asked.tasks]


@pytest.mark.guarantee("L14", "L22")
def test_a_stop_keeps_whole_batches_and_reports_nothing(place, asked, champion, student):
    work = work_in(place, champion)
    work.should_stop = lambda: len(student.asked) >= 5
    with pytest.raises(examining.StoppedError):
        look(place, asked, champion, work)
    found = look(place, asked, champion)
    assert (found.base_passed, found.champion_passed, found.total) == (3, 5, COUNT)
    counts = [sum(one == ("base", task.id) for one in student.asked) for task in asked.tasks]
    assert counts == [2, 2, 2, 3, 3, 2, 2, 2, 2, 2], "only the cut part was asked again, beside the A/A run"


@pytest.mark.guarantee("L23")
def test_a_reference_that_does_not_pass_voids_the_language_and_nobody_is_asked(
    place, asked, champion, student
):
    tasks = (msgspec.structs.replace(asked.tasks[0], reference="def f(x): return None"), *asked.tasks[1:])
    broken = msgspec.structs.replace(asked, tasks=tasks)
    found = look(place, broken, champion)
    assert asked.tasks[0].id in found.void
    assert (found.total, found.base_passed, found.champion_passed, student.asked) == (0, 0, 0, [])
    assert not list(place.audits.glob("*"))
    assert not look(place, asked, champion).void, "a toolchain that is mended is tried again"


@pytest.mark.guarantee("L23")
def test_a_proof_is_kept_until_the_toolchain_changes(place, asked, champion, student, monkeypatch):
    proofs = []
    proved = running.proved
    monkeypatch.setattr(running, "proved", lambda *what, **how: proofs.append(1) or proved(*what, **how))
    look(place, asked, champion)
    look(place, asked, champion)
    assert len(proofs) == 1
    monkeypatch.setattr(running, "identity", lambda *_: "another toolchain")
    monkeypatch.setattr(examining, "identity", lambda *_: "another toolchain")
    assert not look(place, asked, champion).reused
    assert len(proofs) == 2


@pytest.mark.guarantee("L23")
def test_a_toolchain_that_passes_everything_is_void_too(place, asked, champion, student, monkeypatch):
    def generous(items, **_):
        return iter([Grade(task=task.id, verdict=Verdict.PASS) for _, task in items])

    monkeypatch.setattr("longwatch.learn.grading.screening.grade_all", generous)
    monkeypatch.setattr(
        "longwatch.learn.grading.screening.grade",
        lambda _, task, **__: Grade(task=task.id, verdict=Verdict.PASS),
    )
    assert look(place, asked, champion).void
    assert student.asked == []


def record_in(place, student):
    paths = [one for one in place.audits.glob("*.json") if "proof" not in one.name]
    for path in paths:
        record = msgspec.json.decode(path.read_bytes(), type=Record)
        if record.subject.student == student:
            return path, record
    raise AssertionError(student)


def graded(record, change):
    """The record with other answers, and a score that fits them."""
    return record_of(record.subject, msgspec.structs.replace(record.exam, graded=change(record.exam.graded)))


def passing(one):
    return msgspec.structs.replace(one, grade=msgspec.structs.replace(one.grade, verdict=Verdict.PASS))


TAMPERED = {
    "a better score": lambda one: msgspec.structs.replace(
        one, score=msgspec.structs.replace(one.score, passed=9)
    ),
    "a verdict turned": lambda one: msgspec.structs.replace(
        one, exam=msgspec.structs.replace(one.exam, graded=tuple(map(passing, one.exam.graded)))
    ),
    "a smoke run": lambda one: graded(one, lambda answers: answers[:4]),
    "nothing at all": lambda one: graded(one, lambda _: ()),
    "one twice": lambda one: graded(one, lambda answers: (*answers[:-1], answers[0])),
    "another order": lambda one: graded(one, lambda answers: answers[::-1]),
    "another attempt": lambda one: graded(
        one,
        lambda answers: (
            msgspec.structs.replace(answers[0], answer=msgspec.structs.replace(answers[0].answer, sample=1)),
            *answers[1:],
        ),
    ),
    "another code than was answered": lambda one: graded(
        one, lambda answers: (msgspec.structs.replace(answers[0], code="x"), *answers[1:])
    ),
    "a grade of another task": lambda one: graded(
        one,
        lambda answers: (
            msgspec.structs.replace(answers[0], grade=answers[1].grade),
            *answers[1:],
        ),
    ),
    "an answer that was not judged": lambda one: graded(
        one,
        lambda answers: (
            msgspec.structs.replace(
                answers[0], grade=Grade(task=answers[0].grade.task, verdict=Verdict.INFRA)
            ),
            *answers[1:],
        ),
    ),
    "another student": lambda one: msgspec.structs.replace(
        one, subject=msgspec.structs.replace(one.subject, student="base")
    ),
    "another source": lambda one: msgspec.structs.replace(
        one, subject=msgspec.structs.replace(one.subject, source="0" * 64)
    ),
    "another grader": lambda one: msgspec.structs.replace(
        one, subject=msgspec.structs.replace(one.subject, grader="0" * 64)
    ),
    "another batch": lambda one: msgspec.structs.replace(
        one,
        exam=msgspec.structs.replace(one.exam, binding=msgspec.structs.replace(one.exam.binding, batch=64)),
    ),
}


@pytest.mark.guarantee("L24")
@pytest.mark.parametrize("how", TAMPERED)
def test_a_record_that_is_not_what_it_should_be_does_not_count(place, asked, champion, student, how):
    first = look(place, asked, champion)
    path, record = record_in(place, champion)
    changed = TAMPERED[how](record)
    assert changed != record
    files.replace(path, msgspec.json.encode(changed))
    work, count = work_in(place, champion), len(student.asked)
    again = look(place, asked, champion, work)
    assert again == first, "made anew, from the answers that are kept"
    assert len(student.asked) == count
    assert [one.kind for one in work._notes] == ["audit.discarded"]
    assert record_in(place, champion)[1] == record


@pytest.mark.guarantee("L24")
@pytest.mark.parametrize("content", [b"", b"{}", b'{"subject": 1}', b"\xff"])
def test_a_damaged_record_does_not_count(place, asked, champion, student, content):
    first = look(place, asked, champion)
    path, record = record_in(place, champion)
    files.replace(path, content)
    work = work_in(place, champion)
    assert look(place, asked, champion, work) == first
    assert [one.kind for one in work._notes] == ["audit.discarded"]
    assert record_in(place, champion)[1] == record


@pytest.mark.guarantee("L24")
def test_an_exchanged_adapter_is_an_integrity_failure_also_where_its_record_is_there(
    place, asked, champion, student
):
    look(place, asked, champion)
    other = adapter_in(place, 2.0)
    weights = (place.adapters / other / adapters.WEIGHTS).read_bytes()
    (place.adapters / champion / adapters.WEIGHTS).write_bytes(weights)
    with pytest.raises(IntegrityError, match="damaged or exchanged"):
        look(place, asked, champion)


def troubled(monkeypatch, hidden):
    """Grading fails of itself for these tasks."""
    real = examining.grade_all

    def grade_all(items, **how):
        for one, (_, task) in zip(real(items, **how), items, strict=True):
            yield Grade(task=task.id, verdict=Verdict.INFRA) if task.id in hidden else one

    monkeypatch.setattr(examining, "grade_all", grade_all)
    return lambda: monkeypatch.setattr(examining, "grade_all", real)


@pytest.mark.guarantee("L10", "L23")
def test_too_much_of_our_own_trouble_voids_the_audit_and_it_is_graded_again_without_asking(
    place, asked, champion, student, monkeypatch
):
    mend = troubled(monkeypatch, names(asked, 3))
    found = look(place, asked, champion)
    assert "1 of 10 answers were not judged" in found.void
    assert (found.total, found.base_passed) == (0, 0)
    mend()
    count = len(student.asked)
    again = look(place, asked, champion)
    assert (again.void, again.base_passed, again.champion_passed) == ("", 3, 5)
    assert len(student.asked) == count


@pytest.mark.guarantee("L10", "L24")
def test_a_little_of_our_own_trouble_is_left_out_and_not_reused(place, champion, monkeypatch):
    asked = benchmark(60)
    right = {"base": names(asked, 0, 1, 2), champion: names(asked, 1, 2, 3, 4)}
    ByHeart(asked.tasks, right).install(monkeypatch)
    mend = troubled(monkeypatch, names(asked, 3))
    found = look(place, asked, champion)
    assert (found.total, found.base_passed, found.champion_passed) == (59, 3, 3)
    mend()
    again = look(place, asked, champion)
    assert (again.total, again.base_passed, again.champion_passed, again.reused) == (60, 3, 4, False)


@pytest.mark.guarantee("L15")
def test_a_halved_batch_is_not_scored_as_the_whole_one(place, asked, champion, student, monkeypatch):
    def crowded(*given, **named):
        return msgspec.structs.replace(student(*given, **named), batch=2, halved=1)

    monkeypatch.setattr("longwatch.learn.student.generate.generate", crowded)
    with pytest.raises(NotReadyError, match="batch to 2"):
        look(place, asked, champion)


@pytest.mark.guarantee("L22", "L23", "L24")
def test_the_numbers_are_those_of_the_textbook():
    one = LanguageAudit(
        language="python", total=164, base_passed=20, champion_passed=23, flips=FlipRate(1, 20)
    )
    assert (one.base.lower, one.base.upper) == pytest.approx((0.0804, 0.1808), abs=1e-4)  # Wilson, 95 %
    void = LanguageAudit(language="go", void="no go here")
    other = LanguageAudit(language="rust", total=100, base_passed=50, champion_passed=40)
    found = Audited(benchmark="x", languages=(one, void, other))
    assert found.scored == (one, other)
    assert found.base_macro == pytest.approx((20 / 164 + 0.5) / 2)
    assert found.champion_macro == pytest.approx((23 / 164 + 0.4) / 2)
    assert Audited(benchmark="x", languages=(void,)).base_macro == 0
    assert "1 of 20 passed answers failed when asked again" in one.sentence
    assert "void, no go here" in void.sentence


def test_the_score_of_nothing_is_nothing():
    assert (score_of([]).passed, score_of([]).answer_s) == (0, 0.0)


@pytest.mark.skipif(not PUBLIC.exists(), reason="the public data are not here")
@pytest.mark.guarantee("L22", "L23", "L24")
def test_the_whole_pinned_benchmark_is_audited_in_one_step(place, champion, monkeypatch):
    settings = AuditSettings(humaneval=str(PUBLIC / "humaneval/HumanEval.jsonl.gz"))
    place = exams.Place(place.watch, msgspec.structs.replace(place.settings, audit=settings))
    (whole,) = running.chosen(settings, place.watch.root)
    right = {"base": names(whole, 0, 1), champion: names(whole, *range(0, 164, 2))}
    student = ByHeart(whole.tasks, right).install(monkeypatch)
    outcome = perform(work_in(place, champion), step_of(champion), place)
    assert isinstance(outcome, Succeeded)
    found = msgspec.json.decode(outcome.evidence, type=Audited)
    (python,) = found.languages
    assert (found.benchmark, python.total, python.base_passed, python.champion_passed) == (
        "HumanEval",
        164,
        2,
        82,
    )
    assert max(len(part) for _, _, part in student.batches) == 4
    work = work_in(place, champion)
    work.should_stop = lambda: True
    other = adapter_in(place, 3.0)
    assert isinstance(perform(work, step_of(other), place), Stopped)


@pytest.mark.guarantee("L15", "L22", "L24")
def test_a_real_student_is_audited_with_an_adapter_and_its_record_is_reused(
    tmp_path, tmp_path_factory, monkeypatch
):
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - takes seconds

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    folder = tiny_watch.stubborn(tmp_path_factory)
    settings = LearnSettings(kind="learn", student=Student(model=str(folder), device="cpu", batch=4))
    place = exams.Place(Watch(tmp_path / "watch"), settings)
    base = load(settings.student).model
    tuned = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    tuned.save_pretrained(place.adapters / "new")
    champion = adapters.digest_of(place.adapters / "new")
    (place.adapters / "new").rename(place.adapters / champion)
    asked = benchmark(9)
    found = look(place, asked, champion)
    assert (found.void, found.total, found.reused) == ("", 9, False)
    assert found.flips.repeated == found.base_passed
    assert found.answer_s > 0
    said = [record_in(place, name)[1].exam for name in ("base", champion)]
    assert said[0].binding == said[1].binding
    assert [one.answer.text for one in said[0].graded] != [one.answer.text for one in said[1].graded]
    examining.forget_student()
    monkeypatch.setattr("longwatch.learn.student.load.load", None)  # nothing is loaded any more
    assert look(place, asked, champion) == msgspec.structs.replace(found, reused=True)
