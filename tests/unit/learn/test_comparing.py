"""Champion and challenger on fresh problems: what is asked, what counts, which rule decides. Everything but the student is real."""

import msgspec
import pytest
from exams import ByHeart, place_in

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import TransientError
from longwatch.kernel.program import Work
from longwatch.learn import comparing, registry, windows
from longwatch.learn.acceptance import CONFIRMATION_TASKS, Confirmation, StrictConfirmation, StrictRuling
from longwatch.learn.settings import Acceptance
from longwatch.learn.steps import BASE, Challenger, Confirm, Confirmed, Window
from longwatch.learn.student.tiny import tiny_tasks
from longwatch.learn.tasks import Split, Verdict

FRESH = tiny_tasks(30, seed=1, split=Split.CONFIRM)
MORE = (*FRESH[20:], *tiny_tasks(50, seed=1, split=Split.CONFIRM)[30:])
"""Of another window: its first problems were there before."""
NEW = "a" * 64
STRICT = StrictConfirmation(dev_tasks=40, tries=3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def place(tmp_path):
    made = place_in(tmp_path / "watch", batch=16)
    settings = msgspec.structs.replace(made.settings, acceptance=Acceptance(block=10))
    return comparing.Place(made.watch, settings).within(1)


def window(place, number, tasks) -> Window:
    folder = place.windows / str(number)
    folder.mkdir(parents=True)
    manifest = windows.Manifest(
        number=number,
        source="tiny",
        revision="1",
        source_digest="0" * 64,
        provenance="made for a test",
        audits="0" * 64,
        start_row=0,
        end_row=1,
        exhausted=False,
        registries={Split.CONFIRM: registry.write(folder / "confirm.jsonl", tasks)},
        problems={Split.CONFIRM: len(tasks)},
        languages={},
        families={},
        left_out={},
    )
    data = msgspec.json.encode(manifest)
    (folder / windows.MANIFEST).write_bytes(data)
    return Window(
        number=number,
        manifest=of_bytes(data),
        nonce="n",
        next_row=1,
        train=0,
        dev=0,
        confirm=len(tasks),
        sealed=0,
    )


def step(of: Window, *, rule=None, block=0) -> Confirm:
    challenger = Challenger(adapter=NEW, round=1, dev_before=1, dev_after=2, dev_total=40)
    begun = rule or Confirmation(alpha=0.02)
    return Confirm(
        id=f"confirm.1.{block}",
        number=1,
        window=of,
        champion=BASE,
        challenger=challenger,
        confirmation=begun,
        block=block,
    )


def confirm(place, one: Confirm) -> Confirmed:
    folder = place.watch.step(one.id)
    folder.mkdir(parents=True, exist_ok=True)
    outcome = comparing.confirmation(Work(folder, one), one, place)
    return msgspec.json.decode(outcome.evidence, type=Confirmed)


def student(monkeypatch, *, base=(), new=()) -> ByHeart:
    return ByHeart((*FRESH, *MORE), {BASE: set(base), NEW: set(new)}).install(monkeypatch)


def ids(tasks):
    return [task.id for task in tasks]


@pytest.mark.guarantee("L20")
@pytest.mark.parametrize(("lost", "accepts"), [(0, True), (1, False)])
def test_the_strict_rule_asks_twenty_matched_tasks_and_any_lost_one_refuses(
    place, monkeypatch, lost, accepts
):
    one = student(monkeypatch, base=ids(FRESH[:6]), new=ids(FRESH[lost:]))
    found = confirm(place, step(window(place, 1, FRESH), rule=STRICT))
    assert isinstance(found.ruling, StrictRuling)
    assert found.ruling.accepts == accepts
    assert found.ruling.lost == tuple(ids(FRESH[:lost]))
    assert found.ruling.confirmation == STRICT
    assert (found.problems, found.last_block) == (CONFIRMATION_TASKS, True)
    asked = {task for name, task in one.asked if name == NEW}
    assert asked == set(ids(FRESH[:CONFIRMATION_TASKS]))


@pytest.mark.guarantee("L16", "L17", "L18")
def test_evidence_and_guards_go_on_from_window_to_window(place, monkeypatch):
    student(monkeypatch, base=ids(FRESH[:4]), new=ids((*FRESH[2:6], *MORE[12:14])))
    first = window(place, 1, FRESH)
    found = confirm(place, step(first))
    assert found.ruling.confirmation.problems == 10
    begun = found.ruling.confirmation
    for block in (1, 2):
        begun = confirm(place, step(first, rule=begun, block=block)).ruling.confirmation
    assert begun.problems == 30
    second = confirm(place, step(window(place, 2, MORE[10:]), rule=begun))
    assert second.ruling.confirmation.problems == 40
    assert second.ruling.guards[0].problems == 40, "guards judge everything that was seen"
    assert second.ruling.lost.answers == 2
    assert second.ruling.lost.of == 4
    assert second.ruling.confirmation.net == pytest.approx(2)


@pytest.mark.guarantee("L16", "L17")
def test_a_problem_that_comes_again_counts_once(place, monkeypatch):
    student(monkeypatch, new=ids(MORE))
    first = window(place, 1, FRESH)
    begun = Confirmation(alpha=1e-9)
    for block in (0, 1, 2):
        begun = confirm(place, step(first, rule=begun, block=block)).ruling.confirmation
    again = window(place, 2, MORE)
    repeated = confirm(place, step(again, rule=begun, block=0))
    assert repeated.problems == 0
    assert repeated.ruling.confirmation == begun
    assert confirm(place, step(again, rule=begun, block=1)).problems == 10


@pytest.mark.guarantee("L17", "L26")
def test_a_block_that_is_done_again_is_folded_in_once(place, monkeypatch):
    student(monkeypatch, base=ids(FRESH[:3]), new=ids(FRESH[1:6]))
    one = step(window(place, 1, FRESH))
    assert confirm(place, one) == confirm(place, one)
    assert len(list((place.experiment(1) / "pairs").iterdir())) == 1


@pytest.mark.guarantee("L10")
def test_a_void_block_counts_nothing_waits_and_is_graded_again(place, monkeypatch):
    one = student(monkeypatch, new=ids(FRESH))
    real = comparing.examine

    def troubled(work, place, who, tasks, label):
        exam = real(work, place, who, tasks, label)
        first = exam.graded[0]
        hidden = msgspec.structs.replace(
            first, grade=msgspec.structs.replace(first.grade, verdict=Verdict.INFRA)
        )
        return msgspec.structs.replace(exam, graded=(hidden, *exam.graded[1:]))

    asked = step(window(place, 1, FRESH))
    with monkeypatch.context() as trouble:
        trouble.setattr(comparing, "examine", troubled)
        with pytest.raises(TransientError, match="Block 0 is void: 10%"):
            confirm(place, asked)
    assert not (place.experiment(1) / "pairs").exists()
    answered = len(one.asked)
    found = confirm(place, asked)
    assert found.problems == 10
    assert [name for name, _ in one.asked[answered:]].count(NEW) == 0, "nobody is asked again"
