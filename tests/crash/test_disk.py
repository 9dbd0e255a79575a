"""A full disk and a read-only one: a clear error, nothing lost, and work goes on when there is room (specification K8)."""

import json
import subprocess
import sys

import msgspec
import pytest
from tests.support import faults, repositories, stores, toy

from longwatch.kernel.watch import Watch

MIB = 1024 * 1024

FULL = """
import json, os, sys
from pathlib import Path
from tests.support import stores
from longwatch.kernel import files
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.store import Store

root = Path(sys.argv[1])
path = root / "watch.db"
store, generation = stores.new(path)

def fill():
    ballast = os.open(root / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for size in (65536, 4096, 512, 1):
        try:
            while os.write(ballast, bytes(size)):
                pass
        except OSError:
            pass
    os.close(ballast)

def story():
    reader = Store.read(path)
    try:
        return {"chain": reader.chain(), "events": [event.text for event in reader.events()],
                "line": reader.snapshot().line.decode()}
    finally:
        reader.close()

told = {"acknowledged": [], "errors": [], "full": []}
for round in range(3):
    fill()
    for number in range(400):
        name = f"s{round}-{number}"
        try:
            stores.intend(store, generation, name)
            stores.end(store, generation, name)
            told["acknowledged"].append(name)
        except LongwatchError as error:
            told["errors"].append([type(error).__name__, str(error)])
            break
    told["full"].append(story())
    if round == 1:
        # Also a new supervisor finds a clear error, and the state as it was.
        store.close()
    (root / "ballast").unlink()
    if round == 1:
        store = Store.open(path)
    name = f"freed-{round}"
    stores.intend(store, generation, name)
    stores.end(store, generation, name)
    told["acknowledged"].append(name)
told["last"] = story()
print(json.dumps(told))
"""


@pytest.mark.guarantee("K8", "K5", "K33")
def test_on_a_full_disk_nothing_is_lost_and_the_next_commit_works(tmp_path):
    ran = faults.run_on(tmp_path, "-c", FULL, str(tmp_path), size_bytes=2 * MIB)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert len(told["errors"]) == 3, "the disk was never full"
    for kind, text in told["errors"]:
        assert kind == "LongwatchError", "a full disk is no damage"
        assert "is full" in text
        assert "watch.db" in text
    known = [f"{name} ended." for name in told["acknowledged"]]
    for seen in (*told["full"], told["last"]):
        assert seen["chain"] is None
    for turn, seen in enumerate(told["full"]):
        until = told["acknowledged"].index(f"freed-{turn}")
        assert [text for text in seen["events"] if "ended" in text] == known[:until]
    assert [text for text in told["last"]["events"] if "ended" in text] == known
    assert told["last"]["line"] == '{"last":"freed-2"}'


SUPERVISED = """
import os, sys
from pathlib import Path
from tests.support import toy
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.lifecycle import Phase
from longwatch.kernel.store import Store

root = Path(sys.argv[1])
plan = tuple(toy.step(f"toy-{n}", sleep_s=0.05) for n in range(3))
watch = toy.make(root, plan)
ballast = os.open(root / "ballast", os.O_WRONLY | os.O_CREAT)
left = int(sys.argv[2])
facts = os.statvfs(root)
os.write(ballast, bytes(max(facts.f_bavail * facts.f_frsize - left, 0)))
os.close(ballast)
failed = ""
try:
    code = toy.supervisor(watch).run()
except LongwatchError as error:
    failed, code = str(error), error.exit_code
print("first", int(code), failed)
reader = Store.read(watch.database)
assert reader.chain() is None
reader.snapshot()
reader.close()
(root / "ballast").unlink()
from tests.support import watching
from longwatch.kernel.request import Verb
if Store.read(watch.database).snapshot().lifecycle.phase is Phase.BLOCKED:
    watching.ask(watch, Verb.RESUME, accept=True)
print("second", int(toy.supervisor(watch).run()), toy.state(watch).done)
"""


@pytest.mark.guarantee("K8", "K5")
@pytest.mark.parametrize("left_bytes", [0, 4096, 16_384, 65_536, 131_072, 262_144])
def test_a_supervisor_on_a_full_disk_ends_clearly_and_the_next_one_goes_on(left_bytes, tmp_path):
    ran = faults.run_on(tmp_path, "-c", SUPERVISED, str(tmp_path), str(left_bytes), size_bytes=4 * MIB)
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()[0], ran.stdout.splitlines()[-1]
    assert left_bytes or not first.startswith("first 0"), "the disk was never full"
    assert first.startswith("first 0") or "full" in first
    assert second == "second 0 ('toy-0', 'toy-1', 'toy-2')"


READ_ONLY = """
import sys
from pathlib import Path
from tests.support import stores
from longwatch.kernel import lease
from longwatch.kernel.errors import LongwatchError
from longwatch.kernel.store import Store

path = Path(sys.argv[1])
reader = Store.read(path)
assert reader.chain() is None
print(len(tuple(reader.events())), reader.snapshot().line.decode())
for act in (lambda: Store.open(path), lambda: Store.create(path.with_name("new.db"), b"{}"),
            lambda: lease.acquire(path.with_name("lease"))):
    try:
        opened = act()
        stores.intend(opened, 1, "never")
    except LongwatchError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.guarantee("K8")
@pytest.mark.parametrize("left", ["closed well", "killed"])
def test_a_read_only_disk_is_read_and_refuses_clearly_what_writes(left, tmp_path):
    path = tmp_path / "watch.db"
    stores.filled(path, 5)
    if left == "killed":
        killer = (
            "import os, sys; from pathlib import Path; from tests.support import stores;"
            "from longwatch.kernel.store import Store; store = Store.open(Path(sys.argv[1]));"
            "stores.intend(store, 1, 'late'); stores.end(store, 1, 'late'); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", killer, str(path)], cwd=toy.PROJECT, check=False)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == (3 if left == "killed" else 1)
    ran = faults.run_on(tmp_path, "-c", READ_ONLY, str(path))
    assert ran.returncode == 0, ran.stderr
    read, *refused = ran.stdout.splitlines()
    assert read == ('14 {"last":"late"}' if left == "killed" else '12 {"last":"step-4"}')
    assert len(refused) == 3
    for text in refused:
        assert text.startswith("LongwatchError")
        assert "read-only" in text.lower() or "readonly" in text.lower()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.fixture
def watch(tmp_path):
    root = repositories.new_repository(tmp_path / "repository")
    repositories.write(root, "tests/test_one.py", "def test_one():\n    assert True\n")
    repositories.commit_all(root)
    made = longwatch(root, "init", "migrate", "--worker", "command", "--argv", "true")
    assert made.returncode == 0, made.stderr
    return Watch(root)


def longwatch(root, *words):
    command = [sys.executable, "-m", "longwatch.cli.main", *words]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.guarantee("K8", "K15")
def test_the_command_line_on_a_read_only_disk(watch):
    def on_it(*words):
        return faults.run_on(watch.root, "-m", "longwatch.cli.main", *words, "--watch-dir", str(watch.root))

    status = on_it("status", "--json")
    assert status.returncode == 0, status.stderr
    assert msgspec.json.decode(status.stdout)["phase"] == "idle"
    assert on_it("verify").returncode == 0
    for words in (("run",), ("start",), ("pause",)):
        refused = on_it(*words)
        assert refused.returncode == 1
        assert refused.stderr.startswith("longwatch: ")
        assert "Traceback" not in refused.stderr
        assert "read-only" in refused.stderr.lower() or "readonly" in refused.stderr.lower()


@pytest.mark.guarantee("K8", "K15")
def test_a_damaged_database_at_the_command_line(watch):
    damaged = bytearray(watch.database.read_bytes())
    damaged[100:4096] = bytes(3996)
    watch.database.write_bytes(damaged)
    for words in (("status",), ("pause",), ("events",), ("verify",), ("run",)):
        ran = longwatch(watch.root, *words)
        assert ran.returncode == 2, (words, ran.stdout, ran.stderr)
        assert "Traceback" not in ran.stderr
        assert str(watch.database) in ran.stderr
    assert watch.database.read_bytes() == bytes(damaged)
