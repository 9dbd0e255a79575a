"""Exams: kept by all that they depend on, cut into batches that no kill changes, and asked twice for the A/A flip rate."""

from importlib.metadata import version

import msgspec
import pytest
from exams import ByHeart, adapter_in, benchmark, place_in, work_in
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.errors import IntegrityError
from longwatch.learn import examining
from longwatch.learn.acceptance import FlipRate
from longwatch.learn.comparing import pairs_of
from longwatch.learn.examining import Examinee, examine, flip_rate, parts
from longwatch.learn.steps import BASE
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import base_digest, bind
from longwatch.learn.tasks import Grade, Verdict

TASKS = benchmark(10).tasks
EVERY = {task.id for task in TASKS}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path / "watch")


def who(batch=4, **more):
    return Examinee(name=BASE, adapter=None, sampling=Sampling(), batch=batch, **more)


def take(place, examinee=None, tasks=TASKS):
    return examine(work_in(place), place, examinee or who(), tasks, "exam")


@given(count=st.integers(0, 300), batch=st.sampled_from([1, 2, 4, 8, 16, 32, 64]))
def test_parts_hold_every_task_once_in_order_and_are_even(count, batch):
    tasks = list(range(count))
    found = parts(tasks, batch)
    assert [one for part in found for one in part] == tasks
    assert len(found) == -(-count // batch)
    assert not found or max(map(len, found)) - min(map(len, found)) <= 1
    assert all(0 < len(part) <= batch for part in found)


@pytest.mark.guarantee("L15")
def test_what_is_asked_together_hangs_on_the_tasks_alone(place, monkeypatch):
    """Also after a stop in the middle: nobody gets other company because of it."""
    student = ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    work = work_in(place)
    work.should_stop = lambda: len(student.asked) >= 5
    with pytest.raises(examining.StoppedError):
        examine(work, place, who(), TASKS, "exam")
    take(place)
    assert len(student.batches) == 4, "the cut one twice"
    assert {tuple(part) for _, _, part in student.batches} == {
        tuple(task.id for task in part) for part in parts(TASKS, 4)
    }


@pytest.mark.guarantee("L14")
def test_a_pause_ends_generation_within_a_step(place, monkeypatch):
    student, work = ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch), work_in(place)
    beyond = []

    def hear(name, request):
        work.ask_to_stop()
        beyond.append(request)

    monkeypatch.setattr(student, "answer", hear)
    with pytest.raises(examining.StoppedError):
        examine(work, place, who(), TASKS, "exam")
    assert not beyond


@pytest.mark.guarantee("L9", "L15")
def test_samples_are_kept_apart_from_single_answers_and_from_other_seeds(place, monkeypatch):
    student = ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    for examinee in (
        who(),
        who(samples=2),
        msgspec.structs.replace(who(), sampling=Sampling(temperature=0.5)),
        msgspec.structs.replace(who(), sampling=Sampling(temperature=0.5, seed=1)),
    ):
        student.asked.clear()
        exam = take(place, examinee)
        assert len(student.asked) == len(exam.graded) == 10 * examinee.samples
        take(place, examinee)
        assert len(student.asked) == 10 * examinee.samples


@pytest.mark.guarantee("L10")
def test_what_our_own_trouble_hid_is_graded_again_and_not_asked_again(place, monkeypatch):
    student = ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    real = examining.grade_all
    monkeypatch.setattr(
        examining,
        "grade_all",
        lambda items, **_: iter([Grade(task=task.id, verdict=Verdict.INFRA) for _, task in items]),
    )
    assert take(place).passed == 0
    monkeypatch.setattr(examining, "grade_all", real)
    assert take(place).passed == 10
    assert len(student.asked) == 10


@pytest.mark.guarantee("L15")
def test_scores_of_two_bindings_are_never_compared(place, monkeypatch):
    ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    one, same, other = take(place), take(place), take(place, who(batch=8))
    assert len(pairs_of(TASKS, one, same)) == 10
    with pytest.raises(IntegrityError, match="batch: 4, 8"):
        pairs_of(TASKS, one, other)


@pytest.mark.guarantee("L26")
def test_nobody_is_loaded_under_another_adapters_name(place, tmp_path):
    name = adapter_in(place)
    examinee = Examinee(name="0" * 64, adapter=place.adapters / name, sampling=Sampling(), batch=4)
    with pytest.raises(IntegrityError, match="does not hold adapter 0000"):
        take(place, examinee)


class Nervous(ByHeart):
    """Passes a task of `shy` only in the company that it knows."""

    shy = frozenset()

    def __call__(self, name, requests, *given, **named):
        self.company = tuple(request.task for request in requests)
        return super().__call__(name, requests, *given, **named)

    def passes(self, name, task):
        known = {tuple(one.id for one in part) for part in parts(TASKS, 4)}
        return super().passes(name, task) and (task not in self.shy or self.company in known)


@pytest.mark.guarantee("L15", "L18")
def test_the_flip_rate_counts_passed_answers_that_fail_in_other_company(place, monkeypatch):
    student = Nervous(TASKS, {BASE: {task.id for task in TASKS[:7]}}).install(monkeypatch)
    student.shy = {TASKS[1].id, TASKS[4].id, TASKS[9].id}
    found = flip_rate(work_in(place), place, who(), TASKS, "base")
    assert found == FlipRate(flipped=2, repeated=7)
    assert {batch for _, batch, _ in student.batches} == {4}, "at the batch size that is measured"
    again = student.batches[3:]
    assert [task for _, _, part in again for task in part] == [
        task.id for task in (*TASKS[::2], *TASKS[1::2])
    ]
    count = len(student.asked)
    for home in (place, place.within(7)):
        repeat = flip_rate(work_in(home), home, who(), TASKS[:3], "base")
        assert repeat == found, "once for a student and binding, in whatever experiment"
    assert len(student.asked) == count


@pytest.mark.guarantee("L15")
@pytest.mark.parametrize("batch", [1, 32])
def test_also_alone_or_all_together_it_is_really_asked_again(place, monkeypatch, batch):
    student = ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    assert flip_rate(work_in(place), place, who(batch), TASKS, "base") == FlipRate(0, 10)
    assert len(student.asked) == 20


@pytest.mark.guarantee("L10", "L15")
def test_our_own_trouble_is_no_flip(place, monkeypatch):
    ByHeart(TASKS, {BASE: EVERY}).install(monkeypatch)
    take(place)
    monkeypatch.setattr(
        examining,
        "grade_all",
        lambda items, **_: iter([Grade(task=task.id, verdict=Verdict.INFRA) for _, task in items]),
    )
    assert flip_rate(work_in(place), place, who(), TASKS, "base") == FlipRate(0, 0)


@pytest.mark.guarantee("L15", "L26", "L29")
def test_a_base_model_is_known_by_all_its_files_wherever_it_lies(tmp_path):
    one, other = (place_in(tmp_path / name).settings.student for name in ("one", "other"))
    known = base_digest(one)
    assert base_digest(other) == base_digest(one) == known
    (tmp_path / "one/model/weights.bin").write_bytes(b"1")
    changed = base_digest(one)
    (tmp_path / "one/model/tokenizer.json").write_text("[]")
    assert len({known, changed, base_digest(one)}) == 3


@pytest.mark.guarantee("L15")
def test_the_environment_is_said_with_versions_device_and_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    student = place_in(tmp_path).settings.student
    said = bind(student, batch=4, sampling=Sampling()).environment
    assert all(f"{name} {version(name)}" in said for name in ("torch", "transformers", "peft"))
    assert said.endswith(", 3 threads")
