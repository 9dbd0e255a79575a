"""What an experiment is bound to: every change is named, and what was archived is what comes back (L29)."""

import io
import zipfile

import msgspec
import pytest
from learning import Walk, audited, bound, confirmed, prepared, pruned, settings, trained

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.kernel.journal import Note
from longwatch.learn import sealed
from longwatch.learn.generations import archive, present
from longwatch.learn.generations.entering import parts_of
from longwatch.learn.generations.present import PACKAGE, config, sources
from longwatch.learn.generations.values import SHOWN, Generation, Part, changes, sentence
from longwatch.learn.settings import Audit, LearnSettings, Recipe
from longwatch.learn.state import Stage
from longwatch.learn.steps import Audit as AuditStep
from longwatch.learn.steps import Bind, Confirm, Prepare, Train

CONFIG = b'kind = "learn"\n'


def generation(**parts) -> Generation:
    here = {
        "sources": dict(sources(PACKAGE)),
        "config": config(LearnSettings(kind="learn")),
        "model": {"base": "b" * 64, "tokenizer": "c" * 64},
        "data": {"audit.humaneval": "d" * 64},
        "runtimes": {"/usr/bin/python3": "e" * 64},
        "environment": {"python": "3.11.7", "torch": "2.13.0", "driver": ""},
    }
    return Generation(**{**here, **parts})


# -- what differs


@pytest.mark.guarantee("L29")
@pytest.mark.parametrize(
    ("part", "other", "told"),
    [
        ("config", {"training.rank": "16"}, ("training.rank 8 -> 16", "put it back in longwatch.toml")),
        ("model", {"base": "f" * 64}, (f"base {'b' * 12} -> {'f' * 12}", "adapters fit one base only")),
        (
            "data",
            {"audit.humaneval": "missing"},
            (f"audit.humaneval {'d' * 12} -> missing", "restore the file"),
        ),
        ("runtimes", {"/usr/bin/python3": "f" * 64}, ("/usr/bin/python3", "install that version again")),
        ("environment", {"torch": "2.14.0"}, ("torch 2.13.0 -> 2.14.0", "pip install torch==2.13.0")),
        ("environment", {"python": "3.12.1"}, ("python 3.11.7 -> 3.12.1", "use Python 3.11.7")),
        (
            "sources",
            {"learn/line.py": "f" * 64},
            ("learn/line.py", "install that version of longwatch again"),
        ),
    ],
)
def test_every_change_has_its_name_old_new_and_mend(part, other, told):
    before = generation()
    after = generation(**{part: {**getattr(before, part), **other}})
    (found,) = changes(before, after)
    assert (found.part, found.name) == (part, next(iter(other)))
    assert found.new == next(iter(other.values()))
    assert all(words in sentence([found]) for words in told)
    assert before.digest != after.digest
    assert changes(before, before) == ()


@pytest.mark.guarantee("L29")
def test_of_many_changes_all_are_counted_and_each_mend_is_said_once():
    after = generation(sources=dict.fromkeys(sources(PACKAGE), "0" * 64), environment={})
    found = changes(generation(), after)
    said = sentence(found)
    assert f"and {len(sources(PACKAGE)) - SHOWN} more" in said
    assert said.count("install that version of longwatch again") == 1
    assert "torch 2.13.0 -> nothing" in said


@pytest.mark.guarantee("L29")
def test_a_benchmark_that_is_new_or_not_wanted_any_more_changes_nothing_that_was_measured():
    assert changes(generation(data={}), generation()) == ()
    assert changes(generation(), generation(data={})) == ()


@pytest.mark.guarantee("L29", "L24")
def test_a_benchmark_that_is_named_is_bound_by_what_stands_there(tmp_path):
    def found(**named):
        return dict(present._data(Audit(**named), tmp_path))

    assert found() == {}
    assert found(humaneval="file") == {"audit.humaneval": "missing"}
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/js.jsonl").write_bytes(b"x")
    before = found(humaneval="file", multipl_e="folder")
    assert before["audit.humaneval"] == of_bytes(b"x")
    (tmp_path / "folder/js.jsonl").write_bytes(b"y")
    after = found(humaneval="file", multipl_e="folder")
    assert before["audit.multipl_e"] != after["audit.multipl_e"]


@pytest.mark.guarantee("L29")
def test_what_trains_or_measures_is_bound_and_what_only_says_when_or_what_next_is_free():
    bound_now = config(LearnSettings(kind="learn"))
    for free in (
        settings(audit=Audit(humaneval="file", every=3)),
        LearnSettings(kind="learn", experiment=msgspec.structs.replace(settings().experiment, hours=7.0)),
        LearnSettings(kind="learn", student=msgspec.structs.replace(settings().student, model="elsewhere")),
        LearnSettings(kind="learn", curriculum=msgspec.structs.replace(settings().curriculum, levels=(3,))),
    ):
        assert config(free) == bound_now
    for other in (
        LearnSettings(kind="learn", training=Recipe(rank=16)),
        LearnSettings(kind="learn", student=msgspec.structs.replace(settings().student, batch=8)),
        settings(margin_slice=0.1),
        LearnSettings(kind="learn", experiment=msgspec.structs.replace(settings().experiment, rounds=9)),
    ):
        assert config(other) != bound_now


@pytest.mark.guarantee("L29")
def test_all_that_a_steps_program_can_load_is_among_the_sources():
    found = sources(PACKAGE)
    loadable = {
        "learn/program.py",
        "learn/grading/answer.js",
        "kernel/process.py",
        "sandbox/bubblewrap.py",
        "__init__.py",
    }
    assert loadable <= found.keys()
    assert not any("__pycache__" in path or path.startswith(("cli/", "migrate/")) for path in found)


@pytest.mark.guarantee("L29")
def test_training_may_miss_nothing_and_what_comes_after_only_what_is_measured_on():
    assert set(parts_of(Stage.TRAIN)) == set(Part)
    for stage in (Stage.CONFIRM, Stage.ANCHOR, Stage.ADOPT):
        assert set(parts_of(stage)) == {Part.MODEL, Part.RUNTIMES, Part.ENVIRONMENT}
    assert Part.DATA in parts_of(Stage.AUDIT)


# -- the archive


@pytest.fixture
def kept(tmp_path):
    here = generation()
    archive.put(tmp_path / "generations", here, CONFIG)
    return archive.get(tmp_path / "generations", here.digest)


@pytest.mark.guarantee("L29")
def test_what_is_unpacked_is_the_package_as_it_was(kept, tmp_path):
    home = archive.unpack(kept, tmp_path / "home")
    assert sources(home / "longwatch") == sources(PACKAGE)
    assert kept.settings() == LearnSettings(kind="learn")
    (home / "longwatch/learn/more.py").touch()
    assert sources.__wrapped__(archive.unpack(kept, home) / "longwatch") == sources(PACKAGE), "nothing stays"


@pytest.mark.guarantee("L29")
def test_it_is_small_and_a_repeat_changes_nothing(kept):
    size = sum(path.stat().st_size for path in kept.folder.iterdir())
    assert size < 2_000_000
    before = {path: path.stat().st_mtime_ns for path in kept.folder.iterdir()}
    archive.put(kept.folder.parent, kept.generation, CONFIG + b"# another comment\n")
    assert {path: path.stat().st_mtime_ns for path in kept.folder.iterdir()} == before


@pytest.mark.guarantee("L29")
@pytest.mark.parametrize(
    "name", [archive.GENERATION, archive.SOURCES, "longwatch.toml", "COMPLETE", "manifest.json"]
)
@pytest.mark.parametrize("spoil", ["flip", "cut", "remove"])
def test_an_archive_that_was_damaged_is_never_used(kept, name, spoil):
    path = kept.folder / name
    data = bytearray(path.read_bytes())
    path.unlink()
    if spoil != "remove":
        data[len(data) // 2] ^= spoil == "flip"
        path.write_bytes(data[: len(data) - (spoil == "cut")])
    with pytest.raises(IntegrityError, match=kept.folder.name):
        archive.get(kept.folder.parent, kept.folder.name)


@pytest.mark.guarantee("L29", "K34")
def test_a_zip_that_somebody_made_puts_no_file_anywhere_and_no_other_code(kept, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for path in kept.generation.sources:
            packed.writestr(path, b"print('mine')")
        packed.writestr("../../escaped.py", b"x")
    forged = msgspec.structs.replace(kept, sources=buffer.getvalue())
    with pytest.raises(IntegrityError, match="not what was bound"):
        archive.unpack(forged, tmp_path / "home")
    assert not (tmp_path / "home").exists()
    assert not list(tmp_path.rglob("escaped.py"))


@pytest.mark.guarantee("L29")
def test_settings_that_are_not_those_of_the_generation_are_refused(kept):
    contents = sealed.read(kept.folder, 10**9)
    forged = kept.folder.with_name("forged")
    sealed.publish(forged, {**contents, "longwatch.toml": CONFIG + b"[training]\nrank = 16\n"})
    with pytest.raises(IntegrityError, match="not those of the generation"):
        msgspec.structs.replace(kept, folder=forged).settings()


@pytest.mark.guarantee("L29")
def test_sources_that_change_while_they_are_archived_are_refused(tmp_path):
    other = generation(sources={**sources(PACKAGE), "learn/line.py": "0" * 64})
    with pytest.raises(IntegrityError, match="changed while this program ran"):
        archive.put(tmp_path / "generations", other, CONFIG)
    assert list((tmp_path / "generations").iterdir()) == []


# -- in the line


@pytest.mark.guarantee("L29", "L33")
def test_an_experiment_is_bound_after_its_window_and_before_its_training_and_every_later_step_says_to_what():
    walk = Walk(binds=False).do(prepared)
    assert isinstance(walk.step, Bind)
    assert walk.step.previous == ""
    walk.do(bound)
    assert isinstance(walk.step, Train)
    assert walk.step.generation == walk.state.experiment.generation == "9" * 64
    assert walk.said("generation.bound") == [f"Experiment 1 is bound to source generation {'9' * 12}."]
    walk.do_ahead(prepared).do(trained)
    assert isinstance(walk.step, Confirm)
    walk.do(confirmed, kind="slight", last_block=True)
    assert isinstance(walk.step, Prepare)
    assert walk.step.generation == "9" * 64, "fresh problems for it are prepared as it was bound, too"


@pytest.mark.guarantee("L29")
def test_the_next_experiment_is_bound_anew_and_what_changed_is_told():
    walk = Walk(settings(audit=Audit(humaneval="file")), binds=False).do(prepared).do(bound)
    walk.do(trained, nominates=False)
    assert isinstance(walk.step, AuditStep)
    assert walk.step.generation == "9" * 64, "it is audited as it was made"
    walk.do(audited).do(prepared).do(pruned)
    assert isinstance(walk.step, Bind)
    assert walk.step.previous == walk.state.history[-1].generation == "9" * 64
    walk.do(
        lambda step: msgspec.structs.replace(bound(step), generation="8" * 64, changes=1, changed="config: x")
    )
    assert (
        walk.said("generation.bound")[-1]
        == f"Experiment 2 is bound to source generation {'8' * 12}: config: x."
    )
    assert isinstance(walk.notes[-1], Note)
    assert walk.notes[-1].data == {"generation": "8" * 64, "before": "9" * 64, "changes": 1}
