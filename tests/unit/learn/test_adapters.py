"""The store of adapters: addressed by content, whole or not there, verified each time, no pickles."""

import json
import pickle
import shutil
import subprocess
import sys

import msgspec
import pytest
import torch
from safetensors.torch import save
from tests.support import faults

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import IntegrityError
from longwatch.learn import adapters, sealed
from longwatch.learn.adapters import CONFIG, WEIGHTS, Lineage

LINEAGE = Lineage(base="b", data="d", code="c", environment="e", parent=None, decision="r")


@pytest.fixture
def source(tmp_path):
    return adapter(tmp_path / "source")


def adapter(folder, value=1.0):
    folder.mkdir()
    (folder / WEIGHTS).write_bytes(save({"a": torch.full((3, 2), value), "b": torch.zeros(4)}))
    (folder / CONFIG).write_text(json.dumps({"peft_type": "LORA", "r": 8}))
    return folder


def put(tmp_path, source, lineage=LINEAGE):
    return adapters.put(tmp_path / "store", source, adapters.digest_of(source), lineage)


@pytest.mark.guarantee("L26")
def test_what_was_put_is_found_with_its_lineage(tmp_path, source):
    stored = put(tmp_path, source)
    shutil.rmtree(source)
    again = adapters.get(tmp_path / "store", stored.adapter)
    assert again == stored
    assert again.lineage == LINEAGE
    assert again.folder.name == stored.adapter
    assert adapters.digest_of(again.folder) == stored.adapter
    assert adapters.listed(tmp_path / "store") == (stored.adapter,)


@pytest.mark.guarantee("L26")
def test_equal_content_has_one_address_and_a_repeat_is_harmless(tmp_path, source):
    first = put(tmp_path, source)
    assert put(tmp_path, adapter(tmp_path / "twin")) == first
    assert put(tmp_path, adapter(tmp_path / "other", 2.0)).adapter != first.adapter
    assert len(adapters.listed(tmp_path / "store")) == 2


@pytest.mark.guarantee("L26")
def test_a_second_lineage_for_the_same_adapter_is_refused(tmp_path, source):
    put(tmp_path, source)
    with pytest.raises(IntegrityError, match="another lineage"):
        put(tmp_path, source, msgspec.structs.replace(LINEAGE, data="x"))


@pytest.mark.guarantee("L26")
def test_a_source_that_changed_after_the_decision_is_refused(tmp_path, source):
    decided = adapters.digest_of(source)
    (source / CONFIG).write_text(json.dumps({"peft_type": "LORA", "r": 16}))
    with pytest.raises(IntegrityError, match="damaged or exchanged"):
        adapters.put(tmp_path / "store", source, decided, LINEAGE)
    assert adapters.listed(tmp_path / "store") == ()


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def link(path):
    real = path.rename(path.with_name("elsewhere"))
    path.symlink_to(real)


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize("harm", [flip, cut, link, lambda path: path.unlink()])
@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, adapters.LINEAGE, sealed.MANIFEST, sealed.MARKER])
def test_whatever_is_damaged_in_the_store_is_noticed(tmp_path, source, name, harm):
    stored = put(tmp_path, source)
    harm(stored.folder / name)
    with pytest.raises(IntegrityError):
        adapters.get(tmp_path / "store", stored.adapter)


@pytest.mark.guarantee("L26")
def test_an_adapter_under_another_ones_address_is_noticed(tmp_path, source):
    stored = put(tmp_path, source)
    false = of_bytes(b"false")
    stored.folder.rename(tmp_path / "store" / false)
    with pytest.raises(IntegrityError):
        adapters.get(tmp_path / "store", false)
    with pytest.raises(IntegrityError, match="holds no adapter"):
        adapters.get(tmp_path / "store", stored.adapter)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was read",))


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize("name", ["adapter_model.bin", "optimizer.pt", "x.pkl", "modeling.py"])
def test_a_pickle_beside_the_weights_is_refused(tmp_path, source, name):
    (source / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(IntegrityError, match=name):
        adapters.digest_of(source)


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Bomb()),
        b"",
        b"\xff" * 100,
        b"\x02\0\0\0\0\0\0\0[]",
        save({"a": torch.zeros(3)}) + b"more",
        save({"a": torch.zeros(3)})[:-4],
    ],
)
def test_weights_in_another_format_are_refused(source, data):
    (source / WEIGHTS).write_bytes(data)
    with pytest.raises(IntegrityError):
        adapters.digest_of(source)


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize("text", ["", "[]", "{", '{"peft_type": "IA3"}'])
def test_another_configuration_is_refused(source, text):
    (source / CONFIG).write_text(text)
    with pytest.raises(IntegrityError):
        adapters.digest_of(source)


PUT = """
import sys
from pathlib import Path
from longwatch.learn import adapters
LINEAGE = adapters.Lineage(base="b", data="d", code="c", environment="e", parent=None, decision="r")
source = Path(sys.argv[1]); adapters.put(Path(sys.argv[2]), source, adapters.digest_of(source), LINEAGE)
"""


@pytest.mark.guarantee("L26")
@pytest.mark.parametrize(("call", "number"), [("fsync", n) for n in range(1, 10, 2)] + [("rename", 1)])
def test_dead_in_the_middle_of_a_copy_it_is_whole_or_not_there(tmp_path, source, call, number):
    store = tmp_path / "store"
    killed = faults.run_and_kill_at(call, number, "-c", PUT, str(source), str(store))
    assert faults.was_killed(killed)
    for found in adapters.listed(store):
        adapters.get(store, found)
    stored = put(tmp_path, source)
    assert adapters.listed(store) == (stored.adapter,)
    assert not list(store.glob(".staging-*"))


@pytest.mark.guarantee("L26")
def test_a_full_disk_leaves_nothing_behind(tmp_path, source):
    store = tmp_path / "store"
    store.mkdir()
    (source / WEIGHTS).write_bytes(save({"a": torch.zeros(200_000)}))
    program = f"""
import sys
from pathlib import Path
from longwatch.kernel.errors import NotReadyError
from longwatch.learn import adapters
lineage = adapters.Lineage(base='b', data='d', code='c', environment='e', parent=None, decision='r')
source, store = Path({str(source)!r}), Path({str(store)!r})
try:
    adapters.put(store, source, adapters.digest_of(source), lineage)
except NotReadyError as error:
    print("full", [path.name for path in store.iterdir()])
"""
    done = faults.run_on(store, "-c", program, size_bytes=400_000)
    assert done.stdout.strip() == "full []", done.stderr


def test_the_store_needs_no_torch():
    program = "import sys; import longwatch.learn.adapters; print({'torch', 'peft', 'safetensors'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
