"""What a teacher says is graded as the student's answers are, and its failure does not end an experiment (L9)."""

import msgspec
import pytest
from tests.support import chat_server
from tests.support.chat_server import KEY, ChatServer, answering, refusing
from tests.support.exams import ByHeart, place_in, work_in

from longwatch.kernel.errors import AuthError, BudgetError, ConfigError, IntegrityError
from longwatch.kernel.redact import Redactor
from longwatch.learn.place import Place
from longwatch.learn.settings import Recipe
from longwatch.learn.student.tiny import tiny_tasks
from longwatch.learn.tasks import Split
from longwatch.learn.teachers.helping import helped
from longwatch.learn.teachers.provenance import Teacher
from longwatch.learn.teachers.settings import Teaching

TASKS = tiny_tasks(4, seed=1, split=Split.TRAIN)


def place_with(tmp_path, teacher, **table):
    place = place_in(tmp_path)
    settings = msgspec.structs.replace(
        place.settings, training=Recipe(teacher=teacher), teacher=Teaching(model="large", **table)
    )
    return Place(place.watch, settings)


def work_with(place):
    work = work_in(place)
    work.redactor = Redactor((KEY,))
    return work


def notes(work):
    return {note.kind: note.text for note in work._notes}


def said(prompt):
    """Right, wrong, a way out before the tests, and right among words."""
    place = [task.prompt for task in TASKS].index(prompt)
    return (
        f"```python\n{TASKS[0].reference}```",
        "```python\ndef f(x):\n    return 'wrong'\n```",
        "```python\nimport os\nos._exit(0)\n```",
        f"Well.\n```python\n{TASKS[3].reference}```\nAs you see.",
    )[place]


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("TEACHER_KEY", KEY)


@pytest.mark.guarantee("L9", "L10", "K24")
def test_only_what_passes_the_same_tests_is_taught_and_it_says_where_it_came_from(tmp_path, key):
    with ChatServer(answering(said)) as server:
        table = {"base_url": server.base_url, "key": "TEACHER_KEY", "usd_per_million_answered": 50_000.0}
        place = place_with(tmp_path, Teacher.ENDPOINT, **table)
        work = work_with(place)
        found = helped(work, place, 1, TASKS, "round 1")
        assert [one.task for one in found.solutions] == [TASKS[0].id, TASKS[3].id]
        assert (found.tasks, found.solved, found.answers, found.failure) == (4, 2, 4, "")
        where = found.solutions[1].provenance
        assert (where.teacher, where.model, where.origin) == (Teacher.ENDPOINT, "large-1", server.url)
        assert (where.request, where.asked_tokens, where.answered_tokens) == ("chat-7", 10, 20)
        assert where.seed is not None
        assert where.usd == 1.0
        assert where.at.endswith("Z")
        assert "solved 2 of the 4 tasks" in notes(work)["teacher.asked"]
        assert helped(work_with(place), place, 1, TASKS, "round 1").solutions == found.solutions
        assert len(server.bodies) == 4
    assert chat_server.holds(tmp_path, KEY) == []


@pytest.mark.guarantee("L9")
@pytest.mark.parametrize(
    ("behave", "table", "failure", "text"),
    [
        (refusing(401, "who are you?"), {}, AuthError, "who are you?"),
        (refusing(404), {}, ConfigError, "base_url"),
        (answering("x"), {"tokens": 5}, BudgetError, "budget is spent"),
        (answering("x"), {"key": "NO_SUCH_VARIABLE"}, AuthError, "NO_SUCH_VARIABLE"),
    ],
)
def test_an_experiment_goes_on_without_a_teacher_that_fails_unless_it_is_required(
    tmp_path, behave, table, failure, text
):
    with ChatServer(behave) as server:
        place = place_with(tmp_path, Teacher.ENDPOINT, base_url=server.base_url, **table)
        work = work_with(place)
        found = helped(work, place, 1, TASKS, "round 1")
        assert found.solutions == ()
        assert text in found.failure
        assert f"round 1 goes on without the teacher: {found.failure}" == notes(work)["teacher.failed"]
        required = msgspec.structs.replace(
            place.settings, teacher=msgspec.structs.replace(place.settings.teacher, required=True)
        )
        with pytest.raises(failure, match=text.replace("?", ".")):
            helped(work_with(place), Place(place.watch, required), 2, TASKS, "round 1")


@pytest.mark.guarantee("L9", "K26")
def test_a_damaged_ledger_stops_the_watch_whatever_the_settings_say(tmp_path):
    place = place_with(tmp_path, Teacher.ENDPOINT, base_url="http://127.0.0.1:9/v1")
    (place.teacher / "answers").mkdir(parents=True)
    with pytest.raises(IntegrityError, match=r"ledger\.json is gone"):
        helped(work_with(place), place, 1, TASKS, "round 1")


@pytest.mark.guarantee("L9")
def test_nobody_is_asked_where_nothing_is_left_to_solve_or_nobody_teaches(tmp_path):
    place = place_with(tmp_path, Teacher.ENDPOINT, base_url="http://127.0.0.1:9/v1")
    assert helped(work_with(place), place, 1, (), "round 1").solutions == ()
    alone = Place(place.watch, msgspec.structs.replace(place.settings, training=Recipe(teacher=Teacher.NONE)))
    assert helped(work_with(place), alone, 1, TASKS, "round 1").tasks == 4
    assert not place.teacher.exists()


@pytest.mark.guarantee("L9", "L10")
def test_a_larger_model_is_asked_and_graded_as_the_student_is(tmp_path, monkeypatch):
    large = tmp_path / "large"
    large.mkdir()
    (large / "config.json").write_text('{"larger": true}')
    place = place_with(tmp_path / "watch", Teacher.MODEL)
    teaching = msgspec.structs.replace(place.settings.teacher, model=str(large), samples=2, batch=4)
    place = Place(place.watch, msgspec.structs.replace(place.settings, teacher=teaching))
    student = ByHeart(TASKS, {"base": {TASKS[1].id, TASKS[2].id}}).install(monkeypatch)
    work = work_with(place)
    found = helped(work, place, 1, TASKS, "round 1")
    assert [one.task for one in found.solutions] == [TASKS[1].id, TASKS[2].id], "the same twice is one way"
    assert (found.answers, len(student.asked)) == (8, 8)
    where = found.solutions[0].provenance
    assert (where.teacher, where.model, where.answered_tokens) == (Teacher.MODEL, str(large), 9)
    helped(work_with(place), place, 1, TASKS, "round 1")
    assert len(student.asked) == 8, "what was answered is kept"


@pytest.mark.guarantee("L9")
def test_a_larger_model_that_is_not_here_fails_as_a_teacher_only(tmp_path):
    place = place_with(tmp_path, Teacher.MODEL)
    teaching = msgspec.structs.replace(place.settings.teacher, model=str(tmp_path / "nowhere"))
    place = Place(place.watch, msgspec.structs.replace(place.settings, teacher=teaching))
    assert "no such folder" in helped(work_with(place), place, 1, TASKS, "round 1").failure
