"""Wrong input of a learn watch at the command line: `run` ends at once with what, where and the mend, and `doctor` knew it."""

import json
import shutil

import msgspec
import pytest
from tests.support import tiny_watch

from longwatch.kernel import files
from longwatch.learn import registry
from longwatch.learn.tasks import Split

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

COUNTS = {Split.TRAIN: 18, Split.DEV: 1, Split.CONFIRM: 20, Split.SEALED: 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A watch whose student looks like one; nothing here comes so far that it is loaded."""
    base = tmp_path_factory.mktemp("input")
    model = base / "student"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "llama"}')
    (model / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    (model / "model.safetensors").touch()
    tiny_watch.make(base / "watch", model, COUNTS)
    return base


@pytest.fixture
def root(tmp_path, made):
    root = tiny_watch.copy(made / "watch", tmp_path / "watch").root
    model = shutil.copytree(made / "student", tmp_path / "student")
    tiny_watch.configure(root, student={"model": str(model)})
    return root


def refused(root, *said, code=2, **variables):
    """`run` says it at once, and no step begins."""
    ran = tiny_watch.call(root, "run", "--max-cycles", "1", **variables)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr.startswith("longwatch: ")
    for word in said:
        assert word in ran.stderr
    assert list((root / ".longwatch" / "steps").iterdir()) == []


@pytest.mark.guarantee("K15", "K38")
def test_a_watch_with_nothing_wrong_is_fine(root):
    told = tiny_watch.call(root, "doctor", "--json")
    findings = {one["name"]: one for one in json.loads(told.stdout)["findings"]}
    assert findings["student"]["standing"] == "fine"
    assert findings["tasks"]["text"] == "tasks.jsonl, 40 problems"


@pytest.mark.guarantee("K15", "K38")
def test_doctor_knows_all_of_it_beforehand(root, tmp_path):
    shutil.rmtree(tmp_path / "student")
    (root / "tasks.jsonl").unlink()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git"))
    told = tiny_watch.call(root, "doctor", "--json", PATH=str(programs))
    assert told.returncode == 1
    wrong = {one["name"]: one for one in json.loads(told.stdout)["findings"] if one["standing"] == "wrong"}
    assert {"grader", "student", "tasks"} <= set(wrong)
    assert str(tmp_path / "student") in wrong["student"]["text"]
    assert "no file" in wrong["tasks"]["text"]
    refused(
        root, *(f"{name}: {one['text']} ({one['mend']})" for name, one in wrong.items()), PATH=str(programs)
    )


@pytest.mark.guarantee("K15", "K38", "L33")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (shutil.rmtree, "no such folder: correct the path"),
        (lambda model: (model / "config.json").unlink(), "config.json is missing or damaged"),
        (lambda model: (model / "config.json").write_text("{"), "config.json is missing or damaged"),
        (lambda model: (model / "model.safetensors").unlink(), "no weights in safetensors"),
        (
            lambda model: (model / "model.safetensors").rename(model / "pytorch_model.bin"),
            "can run code when they are read: convert it",
        ),
        (lambda model: (model / "tokenizer_config.json").unlink(), "tokenizer_config.json is missing"),
        (lambda model: (model / "tokenizer_config.json").write_text("{}"), "no chat template"),
    ],
)
def test_a_student_that_cannot_be_used(root, spoil, said):
    spoil(root.parent / "student")
    refused(root, said, str(root.parent / "student"), "correct [student] in longwatch.toml")


@pytest.mark.guarantee("K15", "K38")
def test_a_student_that_is_nowhere(root):
    tiny_watch.configure(root, student={"model": "someone/no-such-model"})
    refused(root, "'someone/no-such-model'", "Nothing was downloaded", "name a folder")


@pytest.mark.guarantee("K15", "K38")
def test_an_accelerator_that_is_not_there(root):
    # None is there for a program to which none is shown.
    tiny_watch.configure(root, student={"device": "cuda"})
    refused(root, "[student] device is 'cuda'", "use 'auto'", CUDA_VISIBLE_DEVICES="")


@pytest.mark.guarantee("K15", "K38", "L4", "L8")
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path, _: path.unlink(), "there is no file"),
        (lambda path, _: path.write_text("{}\nnonsense"), "line 1 is no task"),
        (lambda path, lines: path.write_bytes(b"\xff\xfe" + b"".join(lines)), "line 1 is no task"),
        (
            lambda path, lines: path.write_bytes(b"".join([*lines, lines[3]])),
            "is there twice: remove or rename one",
        ),
        (lambda path, lines: path.write_bytes(b"".join([*lines, lines[3][:-9]])), "line 41 is no task"),
        (
            lambda path, lines: path.write_bytes(
                b"".join(lines).replace(b'"split":"dev"', b'"split":"audit"')
            ),
            "benchmark",
        ),
    ],
)
def test_a_file_of_tasks_that_is_none(root, spoil, said):
    path = root / "tasks.jsonl"
    spoil(path, path.read_bytes().splitlines(keepends=True))
    refused(root, said, path.name, "correct [curriculum] in longwatch.toml")


@pytest.mark.guarantee("K15", "K38")
def test_values_that_make_no_sense_are_named_all_at_once(root):
    tiny_watch.configure(
        root,
        student={"batch": 3},
        experiment={"hours": 0.0, "rounds": 0},
        training={"rank": 9, "learning_rate": 1.0, "samples": 0},
        curriculum={"train_tasks": -1},
        acceptance={"q": 1.5},
    )
    names = (
        "experiment.hours",
        "experiment.rounds",
        "training.rank",
        "training.learning_rate",
        "training.samples",
    )
    said = (
        "student.batch = 3: must be a power of two from 1 to 64",
        "curriculum.train_tasks",
        "acceptance.q",
    )
    refused(root, str(root / "longwatch.toml"), *names, *said)


@pytest.mark.guarantee("K15", "K38")
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"experiment": {"hours": float("nan")}}, "experiment.hours = NaN: must be a finite number"),
        ({"training": {"teacher": "somebody"}}, "training.teacher"),
        ({"curriculum": {"languages": ["cobol"]}}, "curriculum.languages"),
        ({"studnet": {"batch": 4}}, "studnet"),
    ],
)
def test_a_value_that_is_none(root, table, said):
    tiny_watch.configure(root, **table)
    refused(root, str(root / "longwatch.toml"), said)


@pytest.mark.guarantee("L2", "L6", "L8", "K15")
def test_tasks_whose_references_fail_are_left_out_and_counted(root):
    wrong = [
        msgspec.structs.replace(task, reference="def other():\n    pass\n")
        for task in tiny_watch.tasks(COUNTS)
    ]
    files.replace(root / "tasks.jsonl", registry.encode(wrong))
    ran = tiny_watch.call(root, "run")
    assert "Traceback" not in ran.stderr
    assert "0 problems to train on, 16 are needed (left out: 40 reference fails)" in ran.stdout
    assert ran.returncode == 0
