import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from curricula import BOTH, Listed, generated, task, usable

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, NotReadyError, TransientError
from longwatch.learn import windows
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.decontamination import Index
from longwatch.learn.grading.screening import Finding, Screened, screen
from longwatch.learn.sources.source import LeftOut, Row
from longwatch.learn.tasks import Case, Cases, Language, Split
from longwatch.learn.windows import NOT_NEEDED, Order

WANTED = {Split.TRAIN: 40, Split.DEV: 10, Split.CONFIRM: 30, Split.SEALED: 5}
CLEAN = Index([])


def order(number=1, start_row=0, problems=None, **changed):
    return Order(number=number, start_row=start_row, problems=problems or WANTED, **changed)


def prepare(folder, asked=None, source=None, validate=usable, audits=CLEAN, **more):
    source = source or Generated(1, BOTH, levels=(1, 2))
    return windows.prepare(folder, asked or order(), source, validate=validate, audits=audits, **more)


def listing(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.guarantee("L3")
def test_a_window_holds_what_was_asked_and_says_so(tmp_path):
    manifest, bound = prepare(tmp_path / "w")
    loaded, sides = windows.load(tmp_path / "w", bound)
    assert loaded == manifest
    problems = {split: len({one.problem for one in tasks}) for split, tasks in sides.items()}
    assert problems == WANTED == manifest.problems
    tasks = [one for some in sides.values() for one in some]
    assert manifest.languages == Counter(one.language.value for one in tasks)
    assert manifest.families == Counter(one.family for one in tasks)
    assert sum(manifest.left_out.values()) + len(tasks) >= 2 * (manifest.end_row - manifest.start_row) * 0.9
    assert (manifest.source, manifest.start_row, manifest.exhausted, manifest.shortage) == (
        "generated",
        0,
        False,
        "",
    )
    assert sorted(listing(tmp_path / "w")) == [
        "confirm.jsonl", "dev.jsonl", "manifest.json", "order.json", "sealed.jsonl", "train.jsonl",
    ]  # fmt: skip


@pytest.mark.guarantee("L3")
def test_the_next_window_goes_on_where_this_one_ended_and_shares_no_problem(tmp_path):
    first, bound = prepare(tmp_path / "1")
    second, other = prepare(tmp_path / "2", order(2, first.end_row))
    assert second.start_row == first.end_row < second.end_row
    before, after = (
        {one.problem for some in windows.load(tmp_path / name, which)[1].values() for one in some}
        for name, which in (("1", bound), ("2", other))
    )
    assert not before & after


@pytest.mark.guarantee("L3")
def test_a_finished_window_is_not_made_again(tmp_path):
    def never(_tasks):
        raise AssertionError("it was validated again")

    made = prepare(tmp_path / "w")
    before = listing(tmp_path / "w")
    assert prepare(tmp_path / "w", validate=never) == made
    assert listing(tmp_path / "w") == before


class Killed(BaseException):
    pass


@pytest.mark.guarantee("L3")
@pytest.mark.parametrize("dies_after", range(14))
def test_a_preparation_that_is_killed_before_any_write_goes_on_and_gives_the_same(
    tmp_path, monkeypatch, dies_after
):
    wanted = order(problems={Split.TRAIN: 60, Split.CONFIRM: 25})
    prepare(tmp_path / "whole", wanted)
    writes = 0

    def counted(real):
        def write(*arguments, **named):
            nonlocal writes
            writes += 1
            if writes > dies_after:
                raise Killed
            return real(*arguments, **named)

        return write

    with monkeypatch.context() as patch:
        for name in ("replace", "replace_json", "remove_recorded"):
            patch.setattr(files, name, counted(getattr(files, name)))
        try:
            prepare(tmp_path / "cut", wanted)
        except Killed:
            assert writes == dies_after + 1
    resumed, _ = prepare(tmp_path / "cut", wanted)
    assert msgspec.json.encode(resumed)
    kept = {name: data for name, data in listing(tmp_path / "cut").items() if not name.startswith("rows-")}
    assert kept == listing(tmp_path / "whole")


@pytest.mark.guarantee("L3")
def test_what_was_validated_before_the_kill_is_not_validated_again(tmp_path):
    seen: list[str] = []

    def dies(tasks):
        if len(seen) > 60:
            raise Killed
        seen.extend(one.id for one in tasks)
        return usable(tasks)

    def counts(tasks):
        seen.extend(one.id for one in tasks)
        return usable(tasks)

    wanted = order(problems={Split.TRAIN: 80, Split.CONFIRM: 60})
    with pytest.raises(Killed):
        prepare(tmp_path / "w", wanted, validate=dies)
    prepare(tmp_path / "w", wanted, validate=counts)
    assert max(Counter(seen).values()) == 1


@pytest.mark.guarantee("L2")
def test_what_does_not_hold_is_left_out_and_counted_by_reason(tmp_path):
    findings = [*Finding]

    def mixed(tasks):
        for place, one in enumerate(tasks):
            kind = findings[place % len(findings)] if place % 3 == 0 else Finding.USABLE
            yield Screened(task=one.id, finding=Finding.USABLE if kind is Finding.INFRA else kind)

    manifest, bound = prepare(tmp_path / "w", validate=mixed)
    bad = {kind.value for kind in Finding} - {"usable", "infra"}
    assert bad <= manifest.left_out.keys()
    assert manifest.problems == WANTED
    kept = {one.id for some in windows.load(tmp_path / "w", bound)[1].values() for one in some}
    assert len(kept) == sum(manifest.languages.values())


@pytest.mark.guarantee("L2")
def test_our_own_trouble_leaves_nothing_out_but_is_tried_again(tmp_path):
    def broken(tasks):
        return [Screened(task=one.id, finding=Finding.INFRA, why="bwrap is missing") for one in tasks]

    with pytest.raises(TransientError, match="bwrap is missing"):
        prepare(tmp_path / "w", validate=broken)
    manifest, _ = prepare(tmp_path / "w")
    assert "infra" not in manifest.left_out


@pytest.mark.guarantee("L2")
def test_a_task_about_which_nothing_is_said_is_never_taken(tmp_path):
    with pytest.raises(TransientError, match="could not be validated"):
        prepare(tmp_path / "w", validate=lambda tasks: list(usable(tasks))[1:])


@pytest.mark.guarantee("L4")
def test_near_duplicates_of_a_benchmark_are_removed_in_all_languages_and_counted(tmp_path):
    tasks = generated(60)
    twin = next(one for one in tasks if one.split is Split.TRAIN and one.language is Language.PYTHON)
    audit = msgspec.structs.replace(twin, id="audit", split=Split.AUDIT, prompt="Other words.")
    manifest, bound = prepare(tmp_path / "w", source=Generated(1, BOTH), audits=Index([audit]))
    kept = {one.problem for some in windows.load(tmp_path / "w", bound)[1].values() for one in some}
    assert twin.problem not in kept
    assert manifest.left_out["near duplicate of a benchmark: solution"] >= 2


@pytest.mark.guarantee("L4")
def test_what_is_near_a_benchmark_in_python_is_left_out_where_only_others_are_asked_in(tmp_path):
    asked = (Language.RUBY, Language.TYPESCRIPT)
    row = next(row for row in Generated(1, asked).rows(0, 60) if row.tasks[0].split is Split.TRAIN)
    audit = msgspec.structs.replace(row.kin[0], id="audit", split=Split.AUDIT, prompt="Other words.")
    manifest, bound = prepare(tmp_path / "w", source=Generated(1, asked), audits=Index([audit]))
    tasks = [one for some in windows.load(tmp_path / "w", bound)[1].values() for one in some]
    assert {one.language for one in tasks} == set(asked)
    assert row.tasks[0].problem not in {one.problem for one in tasks}
    assert manifest.left_out["near duplicate of a benchmark: solution"] >= 2


@pytest.mark.guarantee("L3")
def test_a_source_that_ends_is_said_to_be_exhausted_and_the_window_too_small(tmp_path):
    rows = [Row(number=n, tasks=(task(f"t{n}", prompt=f"Task {n}."),)) for n in range(7)]
    rows.append(Row(number=7, left_out=(LeftOut("t7", "no reference"),)))
    manifest, _ = prepare(tmp_path / "w", source=Listed(rows))
    assert manifest.exhausted
    assert manifest.end_row == 8
    assert manifest.left_out == {"no reference": 1}
    assert manifest.shortage == "7 problems to train on, 16 are needed"
    after, _ = prepare(tmp_path / "next", order(2, manifest.end_row), source=Listed(rows))
    assert (after.exhausted, after.end_row, sum(after.problems.values())) == (True, 8, 0)


def test_a_window_never_reads_for_ever(tmp_path):
    def none(tasks):
        return [Screened(task=one.id, finding=Finding.FLAKY) for one in tasks]

    manifest, _ = prepare(tmp_path / "w", order(max_rows=120), validate=none)
    assert (manifest.end_row, manifest.exhausted) == (120, False)
    assert manifest.shortage


def test_sides_with_enough_are_not_validated(tmp_path):
    validated: list[str] = []

    def counts(tasks):
        validated.extend(one.problem for one in tasks)
        return usable(tasks)

    manifest, _ = prepare(tmp_path / "w", validate=counts)
    assert len(set(validated)) == sum(WANTED.values())
    assert manifest.left_out[NOT_NEEDED] > 0


@pytest.mark.guarantee("L3", "L26")
def test_what_was_half_prepared_before_the_settings_changed_is_prepared_again(tmp_path):
    def dies_later(tasks):
        if any((tmp_path / "w").glob("rows-*")):
            raise InterruptedError
        return usable(tasks)

    with pytest.raises(InterruptedError):
        prepare(tmp_path / "w", validate=dies_later)
    assert list((tmp_path / "w").glob("rows-*"))
    now = Generated(2, BOTH, levels=(1, 2))
    assert prepare(tmp_path / "w", source=now) == prepare(tmp_path / "fresh", source=now)


@pytest.mark.guarantee("L1", "L3")
@pytest.mark.parametrize(
    "changed",
    [
        {"asked": order(2)},
        {"asked": order(start_row=5)},
        {"asked": order(problems={Split.TRAIN: 1})},
        {"source": Generated(2, BOTH, levels=(1, 2))},
        {"source": Generated(1, levels=(1, 2))},
        {"audits": Index(generated(1)[:1])},
    ],
)
def test_a_folder_of_another_order_source_or_benchmark_is_refused(tmp_path, changed):
    prepare(tmp_path / "w")
    with pytest.raises(IntegrityError, match="another order, source or set of benchmarks"):
        prepare(tmp_path / "w", **changed)


@pytest.mark.guarantee("L3")
@pytest.mark.parametrize("name", ["manifest.json", "train.jsonl", "confirm.jsonl"])
def test_a_changed_byte_of_a_window_is_seen(tmp_path, name):
    _, bound = prepare(tmp_path / "w")
    path = tmp_path / "w" / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    with pytest.raises(IntegrityError, match="bound was"):
        windows.load(tmp_path / "w", bound)


def test_a_damaged_stretch_is_named(tmp_path):
    with pytest.raises(Killed):
        prepare(tmp_path / "w", progress=raises)
    (tmp_path / "w/rows-000000000.json").write_bytes(b'{"start":0')
    with pytest.raises(IntegrityError, match=r"rows-000000000\.json is damaged"):
        prepare(tmp_path / "w")


def raises(_row, _have):
    raise Killed


def test_a_window_that_is_not_prepared_cannot_be_loaded(tmp_path):
    _, bound = prepare(tmp_path / "w")
    with pytest.raises(NotReadyError, match="not prepared"):
        windows.load(tmp_path / "other", bound)


@pytest.mark.guarantee("L5")
def test_the_manifest_says_that_no_persons_files_are_read(tmp_path):
    manifest, _ = prepare(tmp_path / "w")
    assert "no person's prompts, files or conversations are read" in manifest.provenance


def test_progress_is_told(tmp_path):
    heard: list[tuple[int, int]] = []
    prepare(tmp_path / "w", progress=lambda row, have: heard.append((row, sum(have.values()))))
    assert heard == sorted(heard)
    assert heard[-1][1] == sum(WANTED.values())


PREPARES = """
import sys
from pathlib import Path
from curricula import BOTH, usable
from longwatch.learn import windows
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.decontamination import Index
from longwatch.learn.tasks import Split

windows.prepare(
    Path(sys.argv[1]),
    windows.Order(number=1, start_row=0, problems={Split.TRAIN: 400}),
    Generated(1, BOTH, levels=(1, 2)),
    validate=usable,
    audits=Index([]),
    progress=lambda row, have: print(row, flush=True),
)
"""


@pytest.mark.guarantee("L3")
def test_a_preparation_that_was_killed_for_real_goes_on_after_its_last_stretch(tmp_path):
    support = str(Path(__file__).parents[2] / "support")
    child = subprocess.Popen(
        [sys.executable, "-c", PREPARES, str(tmp_path / "cut")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": support},
        text=True,
    )
    with child:
        lines = [child.stdout.readline() for _ in range(3)]
        child.send_signal(signal.SIGKILL)
    assert lines[-1] == "150\n"
    assert not (tmp_path / "cut/manifest.json").exists()
    heard: list[int] = []
    wanted = order(problems={Split.TRAIN: 400})
    resumed = prepare(tmp_path / "cut", wanted, progress=lambda row, _: heard.append(row))
    assert heard[0] >= 200
    assert resumed == prepare(tmp_path / "whole", wanted)


@pytest.mark.guarantee("L2")
def test_tasks_are_screened_in_the_sandbox(tmp_path):
    bad = {
        "wrong": {"reference": "def f(a):\n    return a\n"},
        "none": {"reference": ""},
        "stub": {"tests": Cases(cases=(Case((1,), None),)), "reference": "def f(a):\n    return None\n"},
    }
    tasks = [task("good"), *(task(name, **changed) for name, changed in bad.items())]
    rows = [
        Row(number=n, tasks=(msgspec.structs.replace(one, prompt=f"Task {n}."),))
        for n, one in enumerate(tasks)
    ]
    manifest, bound = prepare(tmp_path / "w", source=Listed(rows), validate=lambda some: map(screen, some))
    assert [one.id for one in windows.load(tmp_path / "w", bound)[1][Split.TRAIN]] == ["good"]
    assert manifest.left_out == {"no reference": 1, "reference fails": 1, "stub passes": 1}
