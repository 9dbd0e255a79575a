"""The champion as a model of its own: the right weights in the right places, or nothing at all (L37)."""

import fcntl
import os
import shutil

import msgspec
import pytest
import torch
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.support import tiny_watch
from tests.support.exams import ByHeart
from transformers import AutoModelForCausalLM

from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError, IntegrityError, NotReadyError, RefusedError
from longwatch.kernel.program import Work
from longwatch.kernel.settings import Host
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters
from longwatch.learn.exporting import gguf, safetensors, story
from longwatch.learn.exporting.merging import INDEX, Merge
from longwatch.learn.exporting.safetensors import Number
from longwatch.learn.exporting.story import Format, Wanted, export, number_of
from longwatch.learn.place import Place
from longwatch.learn.settings import LearnSettings, Recipe, Student
from longwatch.learn.student import load
from longwatch.learn.student.binding import base_digest
from longwatch.learn.student.chat import prompt_ids
from longwatch.learn.student.tiny import tiny_tasks
from longwatch.learn.tasks import Split
from longwatch.learn.training.lora import Learner

TASKS = tiny_tasks(12, seed=1, split=Split.SEALED)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_watch.student(tmp_path_factory)


@pytest.fixture(scope="module")
def adapter(base, tmp_path_factory):
    """An adapter that changes every layer much more than rounding does."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    learner = Learner(model, Recipe(), None)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in learner.trained.items():
            if "lora_B" in name:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.1)
    folder = tmp_path_factory.mktemp("adapter")
    for name, data in learner.files().items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def merged(base, adapter):
    """PEFT's own merge, which knows nothing of ours."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    return PeftModel.from_pretrained(model, str(adapter)).merge_and_unload().eval()


@pytest.fixture(autouse=True)
def _single_precision(monkeypatch):
    monkeypatch.setattr(load, "choose_dtype", lambda device: torch.float32)


def quiet(done, total):
    assert done <= total


def asked(tokenizer):
    return torch.tensor([prompt_ids(tokenizer, TASKS[0].prompt)])


def difference(folder, merged):
    """How far the exported model's logits are from the merged one's; and its tokens are those of the base."""
    loaded = load.load(Student(model=str(folder), device="cpu"))
    with torch.inference_mode():
        ids = asked(loaded.tokenizer)
        there = loaded.model(ids).logits
        return float((there - merged(ids).logits).abs().max()), ids


@pytest.mark.guarantee("L37")
def test_merged_weights_are_those_that_another_program_merges(base, adapter, merged, tmp_path):
    before = sorted(path.name for path in base.iterdir())
    safetensors.write(Merge(base, adapter), base, tmp_path, Number.F32, quiet)
    ours, theirs = load_file(tmp_path / "model.safetensors"), merged.state_dict()
    assert set(ours) == set(load_file(base / "model.safetensors"))
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6)
    changed = [
        name for name, tensor in load_file(base / "model.safetensors").items() if not tensor.equal(ours[name])
    ]
    assert len(changed) == 14, "seven layers in each of the two blocks, and nothing else"
    assert sorted(path.name for path in base.iterdir()) == before
    assert difference(tmp_path, merged)[0] < 1e-3


@pytest.mark.guarantee("L37")
@pytest.mark.parametrize("case", [(Number.F32, 1e-3), (Number.F16, 0.02), (Number.Q8_0, 0.5)])
def test_a_gguf_file_is_the_same_model_to_whoever_loads_it(base, adapter, merged, tmp_path, case):
    number, most = case
    gguf.write(Merge(base, adapter), base, tmp_path, number, quiet)
    assert [path.name for path in tmp_path.iterdir()] == [gguf.FILE]
    found, ids = difference(tmp_path, merged)
    assert found < most
    assert ids.equal(asked(load.load(Student(model=str(base), device="cpu")).tokenizer))


@pytest.mark.guarantee("L37")
def test_weights_in_several_files_stay_in_several_files(base, adapter, tmp_path):
    parted, whole, out = tmp_path / "parted", tmp_path / "whole", tmp_path / "out"
    shutil.copytree(base, parted)
    every = load_file(parted / "model.safetensors")
    (parted / "model.safetensors").unlink()
    names = sorted(every)
    homes = {name: f"model-{1 + names.index(name) % 2}.safetensors" for name in names}
    for home in set(homes.values()):
        save_file({name: every[name] for name in names if homes[name] == home}, parted / home)
    (parted / INDEX).write_bytes(msgspec.json.encode({"metadata": {}, "weight_map": homes}))
    (parted / "modeling_evil.py").write_text("raise SystemExit")
    for source, target in ((base, whole), (parted, out)):
        target.mkdir()
        safetensors.write(Merge(source, adapter), source, target, Number.BF16, quiet)
    found = {name: tensor for home in set(homes.values()) for name, tensor in load_file(out / home).items()}
    assert all(tensor.equal(found[name]) for name, tensor in load_file(whole / "model.safetensors").items())
    assert {tensor.dtype for tensor in found.values()} == {torch.bfloat16}
    assert msgspec.json.decode((out / INDEX).read_bytes())["weight_map"] == homes
    assert msgspec.json.decode((out / "config.json").read_bytes())["dtype"] == "bfloat16"
    assert not (out / "modeling_evil.py").exists()


@pytest.mark.guarantee("L37")
@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("config.json", {"model_type": "qwen2"}, "model_type = 'qwen2'"),
        ("config.json", {"rope_parameters": {"rope_type": "llama3"}}, "rope_type = 'llama3'"),
        ("config.json", {"attention_bias": True}, "attention_bias = True"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "Metaspace"}}, "a tokenizer of another kind"),
        ("tokenizer.json", {"normalizer": {"type": "NFC"}}, "a tokenizer of another kind"),
    ],
)
def test_what_gguf_cannot_say_here_is_refused_before_anything_is_written(base, tmp_path, name, change, why):
    copy = tmp_path / "base"
    shutil.copytree(base, copy)
    gguf.check(copy)
    told = msgspec.json.decode((copy / name).read_bytes())
    (copy / name).write_bytes(msgspec.json.encode({**told, **change}))
    with pytest.raises(RefusedError, match=r"convert_hf_to_gguf\.py") as error:
        gguf.check(copy)
    assert why in str(error.value)


@pytest.mark.guarantee("L37")
def test_an_adapter_that_is_more_than_a_sum_is_refused(base, adapter, tmp_path):
    copy = tmp_path / "adapter"
    shutil.copytree(adapter, copy)
    config = msgspec.json.decode((copy / adapters.CONFIG).read_bytes())
    (copy / adapters.CONFIG).write_bytes(msgspec.json.encode({**config, "use_dora": True}))
    with pytest.raises(ConfigError, match="use_dora"):
        Merge(base, copy)
    (copy / adapters.CONFIG).write_bytes(msgspec.json.encode(config))
    weights = load_file(copy / adapters.WEIGHTS)
    save_file({**weights, "base_model.model.extra.weight": torch.ones(2)}, copy / adapters.WEIGHTS)
    with pytest.raises(ConfigError, match="no factor"):
        Merge(base, copy)
    save_file(
        {name.replace("layers.0", "layers.7"): one for name, one in weights.items()}, copy / adapters.WEIGHTS
    )
    with pytest.raises(ConfigError, match=r"layers\.7"):
        Merge(base, copy)


# -- the whole story; who answers knows its answers by heart


class Watched:
    """A watch with a champion, and a place to export to."""

    def __init__(self, root, base, adapter, monkeypatch, *, exported):
        student = Student(model=str(base), device="cpu", batch=4)
        self.place = Place(
            Watch(root / "watch"), LearnSettings(kind="learn", student=student, host=Host(free_disk_bytes=0))
        )
        self.place.watch.hidden.mkdir(parents=True)
        self.name = adapters.digest_of(adapter)
        lineage = adapters.Lineage(
            base=base_digest(student), data="d", code="c", environment="e", parent=None, decision="r" * 64
        )
        adapters.put(self.place.adapters, adapter, self.name, lineage)
        self.target = root / "out"
        right = {self.name: {task.id for task in TASKS}, "base": {task.id for task in TASKS[:exported]}}
        self.student = ByHeart(TASKS, right).install(monkeypatch)

    def export(self, *, form=Format.SAFETENSORS, number=Number.BASE, champion=None):
        wanted = Wanted(
            champion=Digest(champion or self.name),
            target=self.target,
            format=form,
            number=number,
            tasks=TASKS,
        )
        folder = self.place.watch.root / "work"
        folder.mkdir(exist_ok=True)
        return export(Work(folder, None), self.place, wanted)

    @property
    def left(self):
        return sorted(path.name for path in self.target.parent.iterdir())


@pytest.fixture
def watched(tmp_path, base, adapter, monkeypatch):
    return lambda exported: Watched(tmp_path, base, adapter, monkeypatch, exported=exported)


@pytest.mark.guarantee("L37", "L26")
def test_an_export_says_what_it_is_and_what_shows_it(watched):
    watch = watched(12)
    before = sorted(path for path in watch.place.watch.hidden.rglob("*"))
    made = watch.export()
    assert sorted(path for path in watch.place.watch.hidden.rglob("*")) == before, "the watch was only read"
    found = msgspec.json.decode((watch.target / story.PROVENANCE).read_bytes(), type=story.Provenance)
    assert found == made.provenance
    assert (found.adapter, found.lineage.decision) == (watch.name, "r" * 64)
    assert (found.evaluation.tasks, found.evaluation.champion_passed, found.evaluation.exported_passed) == (
        12,
        12,
        12,
    )
    assert set(found.files) | {story.PROVENANCE} == {path.name for path in watch.target.iterdir()}
    assert watch.left == ["out", "watch"]
    with pytest.raises(RefusedError, match="exists and was left as it is"):
        watch.export()


@pytest.mark.guarantee("L37", "L15", "L18")
def test_an_export_that_lost_more_than_chance_explains_is_refused_and_leaves_nothing(watched):
    watch = watched(5)
    with pytest.raises(RefusedError, match="7 of 12 passed answers lost, more than A/A flips explain"):
        watch.export()
    assert watch.left == ["watch"]


@pytest.mark.guarantee("L37")
def test_where_the_champion_passes_nothing_nothing_could_be_shown(watched):
    watch = watched(0)
    watch.student.right[watch.name] = set()
    with pytest.raises(RefusedError, match="passes none of the 12"):
        watch.export()
    assert watch.left == ["watch"]


@pytest.mark.guarantee("L37", "L26")
def test_another_base_a_damaged_adapter_and_a_full_disk_are_refused(watched, monkeypatch):
    watch = watched(12)
    with pytest.raises(IntegrityError, match="holds no adapter"):
        watch.export(champion="0" * 64)
    monkeypatch.setattr(story, "base_digest", lambda student: "f" * 64)
    with pytest.raises(IntegrityError, match="was trained on"):
        watch.export()
    monkeypatch.undo()
    monkeypatch.setattr(story.files, "free_bytes", lambda path: 10**6)
    with pytest.raises(NotReadyError, match="the export needs"):
        watch.export()
    assert watch.left == ["watch"]


@pytest.mark.guarantee("L37", "K5")
def test_what_a_killed_export_left_goes_and_two_exports_never_meet(watched):
    watch = watched(12)
    staging = watch.target.with_name(".out.exporting")
    (staging / "model").mkdir(parents=True)
    (staging / "model" / "half").write_text("written")
    held = os.open(staging, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(NotReadyError, match="under way"):
        watch.export()
    assert (staging / "model" / "half").exists(), "the other export goes on undisturbed"
    os.close(held)
    watch.export()
    assert watch.left == ["out", "watch"]
    with safe_open(watch.target / "model.safetensors", framework="pt") as opened:
        assert list(opened.keys())


@pytest.mark.guarantee("L37")
def test_a_type_that_a_format_has_not_is_refused():
    assert number_of(Format.GGUF, "") is Number.F16
    assert number_of(Format.SAFETENSORS, "bf16") is Number.BF16
    with pytest.raises(RefusedError, match="choose base, f32, f16, bf16"):
        number_of(Format.SAFETENSORS, "q8_0")
