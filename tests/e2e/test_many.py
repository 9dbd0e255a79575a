"""Two hundred experiments in one watch, killed again and again: as full as after the first ones, and nothing is lost."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from tests.support import learn_forks, tiny_watch, toy
from tests.support.tiny_watch import call, events, state

from longwatch.kernel.identity import COOKIE_VARIABLE
from longwatch.learn.steps import BASE

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(3600)]

EXPERIMENTS = 200
KIB = 1024


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """The watch, and how full it was after each experiment."""
    folder = tmp_path_factory.mktemp("many") / "watch"
    argv = ("-W", "ignore", "-m", "tests.support.learn_many", str(tiny_watch.student(tmp_path_factory)))
    ran = subprocess.run(
        [sys.executable, *argv, str(folder), str(EXPERIMENTS), "3000"],
        cwd=toy.PROJECT,
        env={**os.environ, COOKIE_VARIABLE: learn_forks.PLACEHOLDER, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3500,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    return folder, json.loads(ran.stdout.splitlines()[-1])["full"]


@pytest.mark.guarantee("L27", "L33")
def test_disk_and_state_stay_as_full_as_they_are(lived):
    _, full = lived
    assert full[-1]["experiment"] >= EXPERIMENTS
    early, late = full[10:40], full[-30:]
    assert max(one["rest"] for one in late) < 1.2 * max(one["rest"] for one in early)
    accepted = full[-1]["accepted"]
    assert max(one["line"] for one in late) < 1.2 * max(one["line"] for one in early) + accepted * KIB
    # The log and the steps are kept for ever.
    grown = late[-1]["database"] - early[-1]["database"]
    assert grown / (late[-1]["experiment"] - early[-1]["experiment"]) < 64 * KIB


@pytest.mark.guarantee("L21", "L26", "L27")
def test_every_adapter_that_anything_refers_to_is_there_and_everything_verifies(lived):
    root, full = lived
    known = state(root)
    accepted = {one.adapter for one in known.history if one.adapter}
    assert len(accepted) == full[-1]["accepted"] > 0
    assert {path.name for path in (root / ".longwatch" / "adapters").iterdir()} == accepted
    assert {known.champion, known.best} - {BASE} <= accepted
    verified = call(root, "verify")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.guarantee("L3", "L26", "L32", "L33")
def test_no_window_and_no_experiment_is_lost_or_counted_twice(lived):
    root, _ = lived
    told, known = events(root), state(root)
    windows = [one["data"]["manifest"] for one in told if one["kind"] == "window.prepared"]
    consumed = sum(one["kind"] in {"window.consumed", "curriculum.exhausted"} for one in told)
    assert set(Counter(windows).values()) == {1}
    assert len(windows) + consumed == known.windows
    decided = [
        json.loads(one["data"]["record"])["number"] for one in told if one["kind"] == "experiment.decided"
    ]
    assert decided == list(range(1, len(decided) + 1))
    assert sum(one["kind"] == "champion.accepted" for one in told) == len(
        [o for o in known.history if o.adapter]
    )
