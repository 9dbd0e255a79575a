"""kill -9 of a training at any moment, also inside a checkpoint: it ends at the same bits as if nothing had happened."""

import json
import subprocess
import sys

import pytest
from tests.support import toy

# Some fifty trainings: half a minute of a processor, which a busy machine may take long to give.
pytestmark = pytest.mark.timeout(900)


def killer(mode, folder):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.train_killer", mode, str(folder)],
        cwd=toy.PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=840,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DUE = (0, 2, 4, 5)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    return killer("points", tmp_path_factory.mktemp("points"))


@pytest.mark.guarantee("L11", "L12")
def test_dead_at_a_chosen_moment_it_ends_bit_for_bit_the_same(chosen):
    whole, trials = chosen["whole"], chosen["trials"]
    assert all(trial["killed"] for trial in trials), "otherwise nothing was tested"
    names = {trial["name"] for trial in trials}
    assert names >= {"write", "fsync", "replace", "unlink", "rename", "micro-batch", "Progress"}
    for trial in trials:
        assert trial["adapter"] == whole["adapter"], trial["at"]
        assert trial["losses"] == whole["losses"], trial["at"]


@pytest.mark.guarantee("L12")
def test_a_death_damages_no_checkpoint_and_forgets_none(chosen):
    moments = chosen["whole"]["moments"]
    for trial in chosen["trials"]:
        done = moments[: trial["at"] - 1].count("Progress")
        saved = [step for step in DUE if step <= done]
        # A death right after a due step came before, in or after its checkpoint.
        expected = [[saved[-1]]] if done != saved[-1] else [[saved[-1]], saved[-2:-1]]
        assert trial["resumed"] in expected, trial
        assert trial["quarantined"] == []


@pytest.mark.guarantee("L12")
def test_dead_twice_at_random_it_ends_bit_for_bit_the_same(tmp_path):
    found = killer("random", tmp_path)
    assert all(trial["killed"][0] for trial in found["trials"])
    assert any(trial["killed"][1] for trial in found["trials"])
    assert {trial["adapter"] for trial in found["trials"]} == {found["whole"]["adapter"]}
