"""The package is upgraded in the middle of an experiment: it is refused, continued, or ended by its archived sources (L29, L30)."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.support import tiny_watch
from tests.support.tiny_watch import ENVIRONMENT, kinds, state
from tests.support.toy import PROJECT
from tests.support.watching import nothing_lives, open_steps

from longwatch.kernel import digest
from longwatch.kernel.program import PROGRESS
from longwatch.kernel.watch import Watch
from longwatch.learn.experiment import meter
from longwatch.learn.state import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

OLDER = "\n# This is an older version.\n"
EDITED = "learn/comparing.py"


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """An interpreter for which another version of the package is installed, with all else as it is here."""
    base = tmp_path_factory.mktemp("older")
    package = base / "package/longwatch"
    shutil.copytree(PROJECT / "src/longwatch", package, ignore=shutil.ignore_patterns("__pycache__"))
    with (package / EDITED).open("a") as file:
        file.write(OLDER)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base / "venv")], check=True)
    python = base / "venv/bin/python"
    lines = (
        f"import site; site.addsitedir({sysconfig.get_paths()['purelib']!r})",
        f"import sys; sys.path.insert(0, {str(package.parent)!r})",
    )
    (site,) = (base / "venv/lib").glob("python*/site-packages")
    (site / "older.pth").write_text("\n".join(lines))
    return python


def call(python, root, *arguments):
    argv = [str(python), "-m", "longwatch.cli.main", *arguments]
    return subprocess.run(
        argv, cwd=root, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False
    )


@contextmanager
def supervised(python, root):
    """Supervise beside the test, and stop in good order at its end."""
    argv = [str(python), "-m", "longwatch.cli.main", "run"]
    supervisor = subprocess.Popen(argv, cwd=root, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        yield
        assert call(python, root, "stop").returncode == 0
        assert supervisor.wait(60) == 0
        nothing_lives(Watch(root))
        assert call(python, root, "resume").returncode == 0
    finally:
        supervisor.kill()
        supervisor.wait()


def wait_for(condition, within_s=240):
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come in time"
        time.sleep(0.02)


def trained_steps(root, least) -> bool:
    for step in open_steps(Watch(root)):
        path = Watch(root).step(step.id) / PROGRESS
        shown = msgspec.json.decode(path.read_bytes()) if path.exists() else {}
        if shown.get("phase") == "train" and (shown.get("done") or 0) >= least:
            return True
    return False


def code_of(package: Path) -> str:
    loaded = ("__init__.py", "kernel", "learn", "sandbox")
    paths = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    named = {str(path.relative_to(package)): digest.of_file(path) for path in paths}
    return digest.of_bytes(
        msgspec.json.Encoder(order="sorted").encode(
            {name: value for name, value in named.items() if name.split("/", maxsplit=1)[0] in loaded}
        )
    )


@pytest.mark.guarantee("L29", "L30", "L12", "L24", "L26", "K35")
def test_an_upgrade_in_mid_experiment(tmp_path, tmp_path_factory, older):
    root = tiny_watch.copy(tiny_watch.prepared(tmp_path_factory), tmp_path / "watch").root
    assert call(older, root, "resume").returncode == 0
    with supervised(older, root):
        wait_for(lambda: trained_steps(root, 25))
    bound = state(root).experiment.generation
    steps = sorted(path.name for path in (root / ".longwatch/steps").iterdir())

    # Half trained: the new version refuses, by name, and begins nothing.
    refused = call(sys.executable, root, "run", "--max-cycles", "1")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"longwatch: the experiment is bound to generation {bound[:12]}")
    assert EDITED in refused.stderr
    assert "1 more" not in refused.stderr
    assert "install that version of longwatch again" in refused.stderr
    assert sorted(path.name for path in (root / ".longwatch/steps").iterdir()) == steps

    # A copy of it goes on as the new version: from its checkpoint, with its clock.
    moved = tiny_watch.copy(root, tmp_path / "moved").root
    seconds = meter.read(tiny_watch.experiment(moved)).total_s
    told = call(sys.executable, moved, "continue", "--json")
    assert told.returncode == 0, told.stderr
    assert [one["name"] for one in json.loads(told.stdout)["changes"]] == [EDITED]
    assert json.loads(told.stdout)["carried_s"] == pytest.approx(seconds)
    with supervised(sys.executable, moved):
        wait_for(lambda: trained_steps(moved, 25))
    assert "training.resumed" in kinds(moved)
    assert "training.restarted" not in kinds(moved)
    (one,) = state(moved).continuations
    assert one.carried_s == pytest.approx(seconds)
    assert meter.read(tiny_watch.experiment(moved)).total_s > seconds

    # Trained by the old version, it is confirmed, compared and adopted by the new one, with the old one's sources.
    with supervised(older, root):
        wait_for(lambda: any((root / ".longwatch/steps").glob("confirm.*/step.json")))
    assert state(root).experiment.stage is Stage.CONFIRM
    ran = call(sys.executable, root, "run", "--max-cycles", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (decided,) = state(root).history
    assert (decided.decision, decided.generation) == ("accepted", bound)
    (adapter,) = (root / ".longwatch/adapters").iterdir()
    lineage = json.loads((adapter / "lineage.json").read_bytes())
    assert (
        lineage["code"]
        == code_of(older.parents[2] / "package/longwatch")
        != code_of(PROJECT / "src/longwatch")
    )
    (unpacked,) = (root / ".longwatch/steps").glob(f"adopt.*/sources/longwatch/{EDITED}")
    assert unpacked.read_text().endswith(OLDER)
    assert call(sys.executable, root, "verify").returncode == 0
    assert os.path.lexists(root / ".longwatch/generations" / bound)
