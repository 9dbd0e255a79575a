"""What an experiment teaches, replays, asks and nominates: the pure parts, and the order in which they come."""

import itertools
import random
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.teaching import example, pairs, task

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.acceptance import FlipRate
from longwatch.learn.experiment import evaluating, replay
from longwatch.learn.experiment.batches import MOST_DRY, Ended, Standing, batch, ending
from longwatch.learn.experiment.collecting import together, verified
from longwatch.learn.experiment.examples import MOST_WAYS, Author, chosen, ranked, rows
from longwatch.learn.experiment.nominating import Tried, hopeless, net, nominate, to_beat
from longwatch.learn.settings import Acceptance, Rule
from longwatch.learn.steps import RoundResult
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import ScoreBinding
from longwatch.learn.tasks import Verdict
from longwatch.learn.teachers.provenance import Teacher, references

BOUND = ScoreBinding(
    base=of_bytes(b"b"),
    tokenizer=of_bytes(b"t"),
    asking=of_bytes(b"a"),
    torch="2",
    transformers="5",
    peft="0",
    device="cpu",
    dtype="float32",
    threads=1,
    batch=4,
    sampling=Sampling(),
)
EVIDENCE, STRICT = Acceptance(), Acceptance(rule=Rule.STRICT)


def exam(*answers):
    """An exam from (task, code, verdict), sampled in this order."""
    return SimpleNamespace(
        graded=[
            SimpleNamespace(
                answer=SimpleNamespace(task=name, seed=100 + place),
                code=code,
                grade=SimpleNamespace(verdict=verdict),
                passed=verdict is Verdict.PASS,
            )
            for place, (name, code, verdict) in enumerate(answers)
        ],
        passed=sum(verdict is Verdict.PASS for _, _, verdict in answers),
    )


@pytest.mark.guarantee("L9")
def test_own_answers_in_the_learnable_band_are_taught_first_and_what_is_known_last():
    known = example("known", passed=4)
    taught = example("taught", Author.TEACHER, passed=0)
    band = example("band", passed=2)
    assert ranked([known, taught, band]) == (band, taught, known)
    assert chosen([known, taught, band], 2) == (band, taught)


@pytest.mark.guarantee("L9")
def test_a_second_way_of_writing_never_displaces_a_first_one():
    ways = [example("a", answer=f"way {number}") for number in range(4)]
    other = example("b")
    assert ranked([*ways, other]) == (ways[0], other, ways[1])
    assert chosen([*ways, other], 2) == (ways[0], other)


examples_of = st.builds(
    lambda task, teacher, passed, way: example(
        f"t{task}", Author.TEACHER if teacher else Author.STUDENT, passed=passed, answer=f"way {way}"
    ),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 3),
)


@pytest.mark.guarantee("L9")
@given(st.lists(examples_of, unique=True, max_size=30), st.integers(1, 20))
def test_what_is_taught_is_a_bounded_part_of_what_was_collected_and_no_task_crowds_out_others(found, most):
    taught = chosen(found, most)
    assert len(taught) <= most
    assert set(taught) <= set(found)
    assert all(sum(one.task == task for one in taught) <= MOST_WAYS for task in {one.task for one in taught})
    assert taught == chosen(found, most), "the same each time"
    left_out = [one for one in ranked(found) if one not in taught]
    bands = [one.in_band and one.author is Author.STUDENT for one in taught]
    if any(one.in_band and one.author is Author.STUDENT for one in left_out):
        assert all(bands), "nothing else is taught while an own answer in the band is left out"


@pytest.mark.guarantee("L9")
def test_equal_code_is_one_example_and_remembers_where_it_came_from():
    found = exam(
        ("a", "def f(x):\n    return x + 1\n", Verdict.FAIL),
        ("a", "def f(x):\n    return x\n", Verdict.PASS),
        ("a", "def f(y):\n    # the same\n    return y", Verdict.PASS),
        ("a", "def f(x):\n    y = x\n    return y", Verdict.PASS),
        ("a", "f = broken", Verdict.INFRA),
    )
    first, second = verified(task("a"), found)
    assert first.answer == "```python\ndef f(x):\n    return x\n```"
    assert (first.task, first.author, first.seed) == ("a", Author.STUDENT, 101)
    assert (first.passed, first.graded) == (3, 4), "our own trouble is no failure"
    assert second.seed == 103
    assert first.in_band


@pytest.mark.guarantee("L9")
def test_the_teacher_helps_only_where_the_student_never_passed():
    found = exam(("a", "def f(x): return x", Verdict.PASS), ("b", "def f(x): return 7", Verdict.FAIL))
    tasks = [task("a"), task("b"), task("c", reference="")]
    own = {one.id: examples for one in tasks if (examples := tuple(verified(one, found)))}
    mine, taught = together(tasks, own, references(tuple(tasks)))
    assert (mine.task, mine.author, mine.provenance) == ("a", Author.STUDENT, None)
    assert (taught.task, taught.author, taught.passed) == ("b", Author.TEACHER, 0)
    assert taught.provenance.teacher is Teacher.REFERENCE
    assert [one.task for one in together(tasks, own, ())] == ["a"]


@pytest.mark.guarantee("L9")
def test_an_answer_that_is_nested_too_deeply_is_told_from_others_all_the_same():
    deep = "def f(x):\n    return " + "-" * 3000 + "x"
    long = "def f(x):\n    return " + " + ".join(["x"] * 3000)
    found = exam(("a", deep, Verdict.PASS), ("a", long, Verdict.PASS), ("a", long, Verdict.PASS))
    assert len(list(verified(task("a"), found))) == 2


@pytest.mark.guarantee("L8")
@given(st.integers(0, 60), st.integers(1, 25), st.integers(1, 6))
def test_no_task_is_asked_in_two_rounds_and_none_is_left_out_before_the_end(count, size, rounds):
    tasks = [task(f"t{number}") for number in range(count)]
    asked = [batch(tasks, size, number) for number in range(1, rounds + 1)]
    assert list(itertools.chain(*asked)) == tasks[: rounds * size]
    assert all(len(part) <= size for part in asked)


@pytest.mark.guarantee("L8")
@pytest.mark.parametrize(
    ("standing", "left", "why"),
    [
        (Standing(), 1, None),
        (Standing(), 0, Ended.CURRICULUM),
        (Standing(rounds=4), 0, Ended.CURRICULUM),
        (Standing(rounds=5), 1, Ended.ROUNDS),
        (Standing(rounds=4, dry=MOST_DRY - 1), 1, None),
        (Standing(rounds=4, dry=MOST_DRY), 1, Ended.DRY),
    ],
)
def test_rounds_end_when_all_are_done_no_task_is_left_or_three_gave_nothing_new(standing, left, why):
    following = [task("next")] * left
    assert ending(standing, rounds=5, following=following) is why
    assert Ended.CURRICULUM.value == "curriculum_exhausted"


def tried(number, text):
    result = RoundResult(
        round=number,
        collected=1,
        passed=1,
        examples=1,
        steps=1,
        loss_first=1.0,
        loss_last=0.5,
        dev_passed=0,
        dev_total=len(text),
        adapter=f"{number}" * 64,
    )
    return Tried(result=result, examples=(), pairs=pairs(text))


@pytest.mark.guarantee("L13")
@pytest.mark.parametrize(
    ("texts", "rule", "base", "chosen_round"),
    [
        ((), EVIDENCE, 0, None),
        (("000",), EVIDENCE, 0, None),
        (("+-0",), EVIDENCE, 0, None),
        (("++-",), EVIDENCE, 0, 1),
        (("+00", "++0", "++0"), EVIDENCE, 0, 2),
        (("?+0",), EVIDENCE, 0, 1),
        (("++-", "+=0"), STRICT, 0, 2),
        (("++0=",), STRICT, 3, None),
        (("++0=",), STRICT, 2, 1),
    ],
)
def test_the_round_that_gained_most_is_nominated_or_none(texts, rule, base, chosen_round):
    found = nominate([tried(number, text) for number, text in enumerate(texts, 1)], base, rule)
    assert (None if found.tried is None else found.tried.result.round) == chosen_round
    assert bool(found.reason) is (chosen_round is None)


@pytest.mark.guarantee("L13", "L20")
@given(
    st.lists(st.text("+-=0", min_size=6, max_size=6), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 6),
    st.sampled_from([EVIDENCE, STRICT]),
)
def test_stopping_early_never_changes_who_is_nominated(texts, cut, base, rule):
    """Each round is cut where it is hopeless, as `evaluate` does; the whole ones nominate the same."""
    # The champion is the same for all: whether it passes a task stands in the first round's sign.
    champion = [sign in "-=" for sign in texts[0]]
    texts = [
        "".join(
            {True: "=" if sign in "+=" else "-", False: "+" if sign in "+=" else "0"}[before]
            for sign, before in zip(text, champion, strict=True)
        )
        for text in texts
    ]
    whole = [tried(number, text) for number, text in enumerate(texts, 1)]
    seen = []
    for number, text in enumerate(texts, 1):
        beat = to_beat(seen, base - sum(champion), rule)
        rest_failed = champion[cut:].count(False)
        stops = hopeless(pairs(text[:cut]), rest_failed, beat)
        seen.append(tried(number, text[:cut] if stops else text))
    one, other = nominate(whole, base, rule), nominate(seen, base, rule)
    assert (one.tried and one.tried.result.round) == (other.tried and other.tried.result.round)


class Asked:
    """In place of the student: what each is asked, and canned answers."""

    def __init__(self, passes):
        self.passes, self.labels = passes, []

    def __call__(self, work, place, who, tasks, label):
        self.labels.append((who.name, len(tasks)))
        verdicts = [Verdict.PASS if one.id in self.passes[who.name] else Verdict.FAIL for one in tasks]
        return SimpleNamespace(
            binding=BOUND,
            passed=verdicts.count(Verdict.PASS),
            graded=[
                SimpleNamespace(answer=SimpleNamespace(task=one.id), grade=SimpleNamespace(verdict=verdict))
                for one, verdict in zip(tasks, verdicts, strict=True)
            ],
        )


@pytest.fixture
def asked(monkeypatch):
    dev = tuple(task(f"t{number}") for number in range(10))
    student = SimpleNamespace(batch=4)
    course = SimpleNamespace(
        work=None,
        dev=dev,
        champion=None,
        step=SimpleNamespace(champion="champion"),
        place=SimpleNamespace(settings=SimpleNamespace(student=student)),
        sampling=lambda: None,
    )
    half = {one.id for one in dev[5:]}
    answers = Asked({"champion": half, "base": {"t9"}, "good": {one.id for one in dev}, "bad": set()})
    monkeypatch.setattr(evaluating, "examine", answers)
    monkeypatch.setattr(
        evaluating, "flip_rate", lambda _work, _place, who, tasks, _label: FlipRate(len(who.name), len(tasks))
    )
    return course, answers


@pytest.mark.guarantee("L13", "L35")
def test_base_and_champion_are_asked_the_same_parts_and_a_hopeless_challenger_not_all_of_them(asked):
    course, answers = asked
    marks = evaluating.mark(course)
    assert (marks.champion, marks.base, marks.total) == (5, 1, 10)
    assert marks.flips == FlipRate(len("champion"), 10)
    answers.labels.clear()
    good = evaluating.evaluate(course, marks, "good", None, 0)
    assert net(good) == 5
    assert answers.labels == [("good", 3), ("good", 3), ("good", 4)]
    answers.labels.clear()
    bad = evaluating.evaluate(course, marks, "bad", None, 0)
    assert answers.labels == [("bad", 3), ("bad", 3)], "the last part holds nothing that it could gain"
    assert len(bad) == 6


@pytest.mark.guarantee("L7", "L11")
def test_the_replay_is_what_was_bound_or_an_integrity_error(tmp_path):
    taught = (example("a", seed=7), example("b", Author.TEACHER, passed=0))
    name = replay.write(tmp_path, taught)
    assert replay.write(tmp_path, taught) == name, "a repeat is harmless"
    assert replay.load(tmp_path, name) == taught
    assert replay.load(tmp_path, replay.NONE) == ()
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(path.read_bytes().replace(b"answer to a", b"answer to A"))
    with pytest.raises(IntegrityError, match="restore"):
        replay.load(tmp_path, name)
    with pytest.raises(IntegrityError):
        replay.write(tmp_path, taught)
    path.unlink()
    with pytest.raises(IntegrityError, match="gone"):
        replay.load(tmp_path, name)


@pytest.mark.guarantee("L11")
def test_what_an_adapter_learned_joins_the_replay_once():
    first, second = example("a"), example("b")
    joined = replay.joined((first,), (first, second))
    assert joined == (first, second)
    again = msgspec.structs.replace(first, seed=9)
    assert len(replay.joined(joined, (again,))) == 2


@pytest.mark.guarantee("L11")
def test_the_draw_is_the_same_for_a_seed_and_forgets_no_example_for_ever():
    every = tuple(example(f"t{number}") for number in range(40))
    drawn = replay.drawn(every, 10, "1 1")
    shuffled = list(every)
    random.Random(0).shuffle(shuffled)
    assert drawn == replay.drawn(shuffled, 10, "1 1"), "the order of the file does not matter"
    assert len(drawn) == 10
    assert replay.drawn(every, 10, "1 2") != drawn
    assert replay.drawn(every, 0, "1 1") == ()
    assert set(replay.drawn(every, 99, "1 1")) == set(every)
    seen = {one for number in range(40) for one in replay.drawn(every, 10, f"1 {number}")}
    assert seen == set(every)


def test_the_same_row_is_trained_on_once():
    assert len(rows((example("a", seed=1), example("a", seed=2)))) == 1
