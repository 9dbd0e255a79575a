import msgspec
import pytest
from curricula import generated, task

from longwatch.kernel.errors import ConfigError, IntegrityError
from longwatch.learn import registry
from longwatch.learn.tasks import Case, Cases


def test_what_was_written_is_read(tmp_path):
    tasks = generated(20)
    path = tmp_path / "train.jsonl"
    bound = registry.write(path, tasks)
    assert registry.load(path, bound) == tuple(tasks)
    assert registry.write(path, tasks) == bound


def test_texts_outside_ascii_and_line_separators_stay_one_line(tmp_path):
    odd = task("a", prompt="é \u2028 \x85 \r\n 😀", tests=Cases(cases=(Case(("\u2029",), {"ß": None}),)))
    bound = registry.write(tmp_path / "a.jsonl", [odd, task("b")])
    assert registry.load(tmp_path / "a.jsonl", bound) == (odd, task("b"))


@pytest.mark.guarantee("L1")
def test_a_changed_byte_is_seen_before_anything_is_parsed(tmp_path):
    path = tmp_path / "train.jsonl"
    bound = registry.write(path, [task("a"), task("b")])
    path.write_bytes(path.read_bytes().replace(b"Return a", b"Return b"))
    with pytest.raises(IntegrityError, match="bound was"):
        registry.load(path, bound)


def test_a_missing_registry_is_named(tmp_path):
    with pytest.raises(IntegrityError, match=r"gone\.jsonl is gone"):
        registry.load(tmp_path / "gone.jsonl", registry.write(tmp_path / "a.jsonl", []))


def test_an_id_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(IntegrityError, match="'a' is there twice"):
        registry.write(tmp_path / "a.jsonl", [task("a"), task("b"), task("a")])
    assert not (tmp_path / "a.jsonl").exists()


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a/b", "a b", "é", "x" * 201, "a\n", "-dash"])
def test_ids_that_cannot_be_file_names_are_refused(tmp_path, name):
    with pytest.raises(IntegrityError, match="cannot be a file's name"):
        registry.write(tmp_path / "a.jsonl", [task("ok"), task(name)])


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"null",
        b'"task"',
        b"\xff\xfe",
        msgspec.json.encode(task("a")).replace(b'"python"', b'"cobol"'),
        msgspec.json.encode(task("a")).replace(b'"level":1', b'"level":"1"'),
        msgspec.json.encode(task("a")).replace(b'"entry_point":"f",', b""),
        msgspec.json.encode(task("a")).replace(b'"type":"cases"', b'"type":"guess"'),
    ],
)
def test_a_line_that_is_no_task_is_named_by_its_number(line):
    with pytest.raises(ConfigError, match="tasks, line 3 is no task"):
        registry.decode(b"\n".join((msgspec.json.encode(task("a")), b"", line)), "tasks")
