import ast
import gzip
import json
from collections import Counter

import msgspec
import pytest
import references
from curricula import BOTH, PUBLIC, generated, task

from longwatch.kernel.errors import ConfigError, IntegrityError, NotReadyError, RefusedError
from longwatch.learn import registry, splits
from longwatch.learn.grading import grade_all
from longwatch.learn.grading.screening import stub
from longwatch.learn.grading.scripts import missing
from longwatch.learn.settings import Curriculum
from longwatch.learn.sources import humaneval, licence, mbpp, mbxp, pinned
from longwatch.learn.sources.choice import chosen
from longwatch.learn.sources.taskfile import TaskFile
from longwatch.learn.tasks import Cases, Language, Program, Split, Verdict

pytestmark = pytest.mark.skipif(not PUBLIC.exists(), reason="the public data are not here")

PINS = [pinned.HUMANEVAL, pinned.MBPP, pinned.MBXP_PYTHON, pinned.MBXP_JAVASCRIPT]


def all_rows(source):
    return list(source.rows(0, 5000))


def test_humaneval_has_its_164_tasks_for_audit():
    tasks = humaneval.load(PUBLIC)
    assert len(tasks) == 164
    assert {one.split for one in tasks} == {Split.AUDIT}
    assert tasks == humaneval.load(PUBLIC / "humaneval/HumanEval.jsonl.gz")
    assert all(f"def {one.entry_point}(" in one.reference and ast.parse(one.reference) for one in tasks)
    registry.check_ids(tasks)


@pytest.mark.guarantee("L22", "L23")
def test_what_a_prompt_gives_beside_its_function_is_there_when_an_answer_is_graded():
    """The answer of a chat model: the function alone, without the imports and helpers of the prompt."""
    tasks = [one for one in humaneval.load(PUBLIC) if one.preamble]
    assert len(tasks) == 26
    alone = [one.reference.partition(one.preamble)[2] for one in tasks]
    assert all("import" not in answer.partition("def ")[0] for answer in alone)
    grades = list(grade_all(list(zip(alone, tasks, strict=True))))
    assert [one for one in grades if one.verdict is not Verdict.PASS] == []
    bare = [msgspec.structs.replace(one, preamble="") for one in tasks]
    grades = list(grade_all(list(zip(alone, bare, strict=True))))
    assert sum(one.verdict is Verdict.FAIL for one in grades) >= 20


@pytest.mark.guarantee("L1", "L4")
def test_mbpp_gives_only_the_allowed_ids():
    rows = all_rows(mbpp.Mbpp(PUBLIC))
    assert len(rows) == mbpp.Mbpp(PUBLIC).length == 974
    taught = {row.number + 1 for row in rows if row.tasks}
    assert taught == {*range(1, 11), *range(511, 975)}
    assert Counter(one.why for row in rows for one in row.left_out) == {mbpp.HELD_BACK: 500}
    tasks = [one for row in rows for one in row.tasks]
    splits.check(tasks)
    registry.check_ids(tasks)
    assert {one.split for one in tasks} == {Split.TRAIN, Split.DEV, Split.CONFIRM, Split.SEALED}


def test_mbpp_evaluation_is_the_rest():
    tasks = mbpp.evaluation(PUBLIC)
    assert len(tasks) == 500
    assert {one.split for one in tasks} == {Split.AUDIT}


def test_mbpp_tests_are_assertions_that_call_the_entry_point():
    for row in all_rows(mbpp.Mbpp(PUBLIC)):
        for one in row.tasks:
            assert isinstance(one.tests, Program)
            assert f"{one.entry_point}(" in one.tests.code
            assert f"`{one.entry_point}(" in one.prompt
            assert "\r" not in one.reference


@pytest.mark.guarantee("L4")
def test_a_problem_of_mbxp_shows_its_python_solution_to_the_benchmarks_whatever_is_asked_in():
    rows = [row for row in all_rows(mbxp.Mbxp(PUBLIC, (Language.RUBY,))) if row.tasks]
    assert {one.language for row in rows for one in row.tasks} == {Language.RUBY}
    assert {one.problem for row in rows for one in row.kin} >= {row.tasks[0].problem for row in rows[:50]}
    assert all(one.language is Language.PYTHON and one.reference for row in rows for one in row.kin)
    assert not any(row.kin for row in all_rows(mbxp.Mbxp(PUBLIC, BOTH)))


@pytest.mark.guarantee("L1", "L4")
def test_mbxp_gives_both_languages_of_the_allowed_ids():
    rows = all_rows(mbxp.Mbxp(PUBLIC, BOTH))
    assert len(rows) == 974
    tasks = [one for row in rows for one in row.tasks]
    assert Counter(one.language for one in tasks) == {Language.PYTHON: 474, Language.JAVASCRIPT: 440}
    assert {int(one.problem.removeprefix("mbpp.")) for one in tasks} <= {*range(1, 11), *range(511, 975)}
    assert Counter((one.why, one.task.rpartition(".")[2]) for row in rows for one in row.left_out) == {
        (mbpp.HELD_BACK, "python"): 500,
        (mbpp.HELD_BACK, "javascript"): 498,
        ("no reference", "javascript"): 13,
        ("its tests are not plain data", "javascript"): 15,
    }
    splits.check([*tasks, *(one for row in all_rows(mbpp.Mbpp(PUBLIC)) for one in row.tasks)])
    registry.check_ids(tasks)


@pytest.mark.guarantee("L1", "L4")
def test_mbxp_has_six_languages_and_a_problem_is_on_one_side_in_all_of_them():
    languages = tuple(mbxp.FILES)
    tasks = [one for row in all_rows(mbxp.Mbxp(PUBLIC, languages)) for one in row.tasks]
    assert Counter(one.language for one in tasks) == {
        Language.PYTHON: 474,
        Language.PHP: 461,
        Language.JAVASCRIPT: 440,
        Language.JAVA: 417,
        Language.RUBY: 382,
        Language.CPP: 373,
    }
    assert {int(one.problem.removeprefix("mbpp.")) for one in tasks} <= {*range(1, 11), *range(511, 975)}
    splits.check(tasks)
    registry.check_ids(tasks)
    assert all("`" in one.prompt and "*" not in one.prompt.split("`")[1].split("(")[0] for one in tasks)


@pytest.mark.guarantee("L2", "L10")
@pytest.mark.parametrize("language", [Language.JAVA, Language.CPP, Language.RUBY, Language.PHP])
def test_mbxp_references_of_the_other_languages_mostly_pass_and_what_does_nothing_fails(language):
    if missing(language):
        pytest.skip(f"{', '.join(missing(language))} not here")
    tasks = [one for row in all_rows(mbxp.Mbxp(PUBLIC, (language,))) for one in row.tasks][::90]
    passed = [one.verdict for one in grade_all([(one.reference, one) for one in tasks])].count(Verdict.PASS)
    assert passed >= 0.7 * len(tasks)
    # A function of C++ that returns nothing returns something, and a stub's zero may be right: validation leaves those out.
    nothing = [
        one.verdict for one in grade_all((answer, one) for one in tasks[:2] for answer in ("", stub(one)))
    ]
    assert nothing.count(Verdict.FAIL) >= 3


def test_a_language_that_a_source_does_not_have_is_refused(tmp_path):
    for source in ("mbxp", "generated"):
        with pytest.raises(ConfigError, match="not in rust"):
            chosen(Curriculum(source=source, languages=(Language.RUST,)), tmp_path, PUBLIC)


def test_mbxp_javascript_tests_are_plain_data_and_its_references_mostly_pass():
    tasks = [one for row in all_rows(mbxp.Mbxp(PUBLIC, (Language.JAVASCRIPT,))) for one in row.tasks]
    assert all(isinstance(one.tests, Cases) and len(one.tests.cases) >= 1 for one in tasks)
    plain = [one for one in tasks if "require(" not in one.reference]
    wrong = {found[0] for found in references.wrong(plain[:150], Language.JAVASCRIPT)}
    assert 0 < len(wrong) < 40, wrong  # some call their own parameters by other names: validation finds them


def test_languages_that_were_not_asked_for_are_not_read(tmp_path):
    copy(pinned.MBXP_PYTHON, tmp_path)
    assert mbxp.Mbxp(tmp_path, (Language.PYTHON,)).rows(0, 1)
    with pytest.raises(NotReadyError, match=r"mbjsp_release_v1\.2"):
        mbxp.Mbxp(tmp_path, BOTH)


def copy(pin, folder, *, unpacked=False, change=None):
    data = bytearray((PUBLIC / pin.path).read_bytes())
    if unpacked and pin.path.endswith(".gz"):
        data = bytearray(gzip.decompress(data))
    if change is not None:
        data[change] ^= 1
    path = folder / pin.path.removesuffix(".gz") if unpacked else folder / pin.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.path)
@pytest.mark.parametrize("unpacked", [False, True])
@pytest.mark.parametrize("change", [4, 1000, -1])
def test_a_copy_with_one_other_bit_is_an_integrity_failure(tmp_path, pin, unpacked, change):
    path = copy(pin, tmp_path, unpacked=unpacked, change=change)
    with pytest.raises(IntegrityError, match="published is"):
        pinned.read(pin, tmp_path)
    with pytest.raises(IntegrityError, match=path.name):
        pinned.read_at(pin, path)


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.path)
def test_packed_and_unpacked_copies_are_the_same(tmp_path, pin):
    copy(pin, tmp_path, unpacked=True)
    assert pinned.read(pin, tmp_path) == pinned.read(pin, PUBLIC)
    assert (PUBLIC / pin.path).stat().st_size == pin.size_bytes
    assert len(pinned.read(pin, tmp_path)) == pin.unpacked_bytes


def test_a_copy_may_lie_in_the_folder_itself(tmp_path):
    (tmp_path / "mbpp.jsonl").write_bytes((PUBLIC / pinned.MBPP.path).read_bytes())
    assert mbpp.Mbpp(tmp_path).length == 974


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.path)
def test_a_missing_copy_is_named_with_where_to_get_it(tmp_path, pin):
    with pytest.raises(NotReadyError, match=f"{pin.repository}@{pin.revision[:8]}"):
        pinned.read(pin, tmp_path)


def multipl_e():
    return sorted((PUBLIC / "multipl-e").glob("*.jsonl"))


@pytest.mark.guarantee("L1")
def test_every_record_of_multipl_e_is_refused_as_curriculum():
    files = multipl_e()
    assert len(files) == 22
    for path in files:
        for line in path.read_bytes().splitlines():
            with pytest.raises(RefusedError, match="licence forbids"):
                licence.check(line, path.name)


@pytest.mark.guarantee("L1")
def test_multipl_e_is_refused_under_another_name_and_among_our_own_tasks(tmp_path):
    record = (PUBLIC / "multipl-e/humaneval-js-reworded.jsonl").read_bytes().splitlines()[0]
    path = tmp_path / "harmless.jsonl"
    path.write_bytes(registry.encode(generated(5)) + record + b"\n")
    with pytest.raises(RefusedError, match=r"harmless\.jsonl, line \d+ is a record of MultiPL-E"):
        TaskFile(path)


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("language", ["js", "py"])
def test_multipl_e_is_refused_when_it_was_turned_into_our_own_format(tmp_path, language):
    path = tmp_path / "tasks.jsonl"
    records = (PUBLIC / f"multipl-e/humaneval-{language}-reworded.jsonl").read_bytes().splitlines()
    for number, record in enumerate(map(json.loads, records)):
        made = task(f"t{number}", prompt=record["prompt"], tests=Program(code=record["tests"]))
        path.write_bytes(registry.encode([made]))
        with pytest.raises(RefusedError):
            TaskFile(path)


def test_our_own_tasks_and_other_sets_are_not_taken_for_multipl_e():
    rows = [*all_rows(mbpp.Mbpp(PUBLIC)), *all_rows(mbxp.Mbxp(PUBLIC, BOTH))]
    tasks = [*generated(200), *(one for row in rows for one in row.tasks)]
    for one in tasks:
        licence.check(msgspec.json.encode(one), one.id)


@pytest.mark.guarantee("L1")
def test_a_file_of_tasks_gives_a_row_for_each_problem(tmp_path):
    tasks = generated(12)
    path = tmp_path / "tasks.jsonl"
    bound = registry.write(path, tasks)
    source = TaskFile(path)
    assert source.digest == bound
    assert source.length == len({one.problem for one in tasks})
    assert [one for row in source.rows(0, 99) for one in row.tasks] == tasks
    assert [row.number for row in source.rows(3, 6)] == [3, 4, 5]
    assert list(source.rows(99, 120)) == []


@pytest.mark.guarantee("L5")
def test_every_source_says_that_no_persons_files_are_read(tmp_path):
    registry.write(tmp_path / "tasks.jsonl", generated(2))
    for source in (TaskFile(tmp_path / "tasks.jsonl"), mbpp.Mbpp(PUBLIC), mbxp.Mbxp(PUBLIC, BOTH)):
        assert "no person's prompts, files or conversations are read" in source.provenance


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no file .*nothing\.jsonl"):
        TaskFile(tmp_path / "nothing.jsonl")


@pytest.mark.guarantee("L4")
def test_benchmark_tasks_never_are_curriculum(tmp_path):
    registry.write(tmp_path / "tasks.jsonl", humaneval.load(PUBLIC)[:3])
    with pytest.raises(ConfigError, match="never enters the curriculum"):
        TaskFile(tmp_path / "tasks.jsonl")


@pytest.mark.guarantee("L4")
def test_a_file_with_a_problem_on_two_sides_is_refused(tmp_path):
    path = tmp_path / "tasks.jsonl"
    registry.write(path, [task("a", problem="p"), task("b", Split.DEV, problem="p")])
    with pytest.raises(IntegrityError, match="'p' is on two sides"):
        TaskFile(path)


def test_the_configuration_chooses(tmp_path):
    registry.write(tmp_path / "mine.jsonl", generated(3))
    names = {
        name: chosen(Curriculum(source=name), tmp_path, PUBLIC).name
        for name in ("generated", "mbpp", "mbxp", "mine.jsonl")
    }
    assert names == {"generated": "generated", "mbpp": "mbpp", "mbxp": "mbxp", "mine.jsonl": "file"}


@pytest.mark.guarantee("L1", "L4")
@pytest.mark.parametrize("name", ["MultiPL-E", "multipl-e", "humaneval", "HumanEval"])
def test_some_names_never_are_a_curriculum(tmp_path, name):
    with pytest.raises(RefusedError, match="never trains"):
        chosen(Curriculum(source=name), tmp_path, PUBLIC)


def test_mbpp_has_no_other_language(tmp_path):
    with pytest.raises(ConfigError, match="write `mbxp`"):
        chosen(Curriculum(source="mbpp", languages=BOTH), tmp_path, PUBLIC)
