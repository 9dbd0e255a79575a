"""One experiment again and again, each time with another misfortune: it decides the same, on the same evidence.

The misfortunes are in `tests.support.learn_misfortunes`. Nothing is lost and nothing is counted twice.
"""

import json
import subprocess
import sys

import pytest
from tests.support import faults, learn_forks, tiny_watch, toy

from longwatch.kernel.identity import COOKIE_VARIABLE
from longwatch.learn.tasks import Split

pytestmark = pytest.mark.timeout(900)

COUNTS = {Split.TRAIN: 36, Split.DEV: 12, Split.CONFIRM: 20, Split.SEALED: 8}
KILLED = ("writes", "damage", "random-1", "random-2")
HOPELESS = ("idle", "noise-1", "noise-2", "noise-3")
TRIALS = ("whole", *KILLED, "pauses", "clock", "cells", *HOPELESS)
DISKS = ("disk-collecting", "disk-training", "disk-adopting")
MIB = 1024 * 1024
METER_S = 0.5
"""What a kill may cost of the active seconds; a start of the step's program comes before they are counted at all."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    def build(root):
        model = tiny_watch.student(tmp_path_factory)
        watch = tiny_watch.make(
            root,
            model,
            COUNTS,
            training={"tasks_per_round": 36, "samples": 1, "max_steps": 100},
            experiment={"rounds": 1},
            # A rate that no watch should have: so it takes little evidence, and little time.
            acceptance={"q": 0.9, "block": 10},
            backoff={"max_faults": 1000},
        )
        tiny_watch.prepare(watch)
        tiny_watch.call(root, "resume", check=True)

    return tiny_watch.once(tmp_path_factory, "small", build)


def misfortunes(run, prepared, folder, *names):
    argv = ("-W", "ignore", "-m", "tests.support.learn_killer", str(prepared), str(folder), *names)
    ran = run(*argv)
    assert ran.returncode == 0, ran.stderr[-4000:]
    return {
        name: {**told, "said": ran.stderr}
        for name, told in json.loads(ran.stdout.strip().splitlines()[-1]).items()
    }


def plainly(*argv):
    return subprocess.run(
        [sys.executable, *argv], cwd=toy.PROJECT, capture_output=True, text=True, check=False, timeout=800
    )


@pytest.fixture(scope="module", autouse=True)
def _forks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(COOKIE_VARIABLE, learn_forks.PLACEHOLDER)
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def told(tmp_path_factory, prepared):
    def build(folder):
        found = misfortunes(plainly, prepared, folder, *TRIALS)
        (folder / "told.json").write_text(json.dumps(found))

    folder = tiny_watch.once(tmp_path_factory, "misfortunes", build)
    return json.loads((folder / "told.json").read_text())


def holds(trial, whole):
    """The same adapter, pairs, decision and champion; everything happened once; the journal is whole."""
    assert trial["result"] == whole["result"]
    assert trial["chain"] is None
    kinds = [kind for kind, _ in trial["events"]]
    for kind in (
        "window.prepared",
        "challenger.nominated",
        "anchor.compared",
        "champion.accepted",
        "experiment.decided",
    ):
        assert kinds.count(kind) == 1, kind
    assert kinds.count("block.confirmed") == len(whole["result"]["pairs"])
    assert trial["left"] == []
    assert 0 < trial["active_s"] <= trial["wall_s"]


@pytest.mark.guarantee("L17", "L26", "L33")
def test_undisturbed_it_is_accepted(told):
    whole = told["whole"]
    assert whole["code"] == 0
    assert [decision for decision, *_ in whole["result"]["decided"]] == ["accepted"]
    assert len(whole["result"]["pairs"]) == 2
    holds(whole, whole)


@pytest.mark.guarantee("L8", "L9", "L12", "L13", "L14", "L17", "L26", "L32", "K5", "K6", "K33")
@pytest.mark.parametrize("trial", KILLED)
def test_killed_at_any_moment_it_decides_the_same(trial, told):
    holds(told[trial], told["whole"])


@pytest.mark.guarantee("L12", "L26", "L29", "K5")
def test_it_was_killed_at_every_kind_of_write(told):
    moments = told["writes"]["moments"]
    assert len(moments) > 40
    assert {moment.split(":")[0] for moment in moments} == {"bind", "train", "confirm", "anchor", "adopt"}
    assert {
        "bind:COMPLETE",
        "bind:*",
        "bind:report.json",
        "train:*.answers.json",
        "train:*.grades.json",
        "train:collected.json",
        "train:COMPLETE",
        "train:*-00",
        "train:fitted.json",
        "train:report.json",
        "confirm:000001-0000.json",
        "anchor:report.json",
        "adopt:receipt.json",
        "adopt:lineage.json",
        "adopt:COMPLETE",
        "adopt:report.json",
    } <= set(moments)


@pytest.mark.guarantee("L12", "L32", "K6")
def test_supervisors_and_steps_were_killed_at_random(told):
    victims = {victim for trial in ("random-1", "random-2") for victim in told[trial]["victims"]}
    assert victims == {"supervisor", "step", "both"}
    adopted = [
        text
        for trial in ("random-1", "random-2")
        for kind, text in told[trial]["events"]
        if kind == "step.adopted"
    ]
    assert adopted, "an experiment outlived its supervisor, and the next one waited for it"


@pytest.mark.guarantee("L12", "L14", "K12", "K35")
def test_paused_in_every_phase_it_decides_the_same(told):
    trial = told["pauses"]
    assert trial["codes"] == [0, 0, 0, 0]
    seconds = [*trial["paused_at_s"], trial["active_s"]]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    holds(trial, told["whole"])


@pytest.mark.guarantee("L12")
def test_a_damaged_checkpoint_is_set_aside_and_its_steps_are_made_again(told):
    trial = told["damage"]
    assert [name.partition("-step-")[2] for name in trial["quarantined"]] == [
        "000040-00",
        "000060-00",
        "000080-00",
    ]
    (said,) = [text for kind, text in trial["events"] if kind == "training.resumed"]
    assert "goes on from step 60; 20 saved steps are lost; damaged and set aside: " in said, (
        "what it cost is said"
    )
    assert "COMPLETE is missing" in said


@pytest.mark.guarantee("L10")
def test_a_sandbox_that_is_killed_from_outside_fails_no_answer(told):
    assert set(told["cells"]["moments"]) == {"train", "confirm", "anchor"}
    holds(told["cells"], told["whole"])


@pytest.mark.guarantee("L13", "L17", "L18", "L19")
@pytest.mark.parametrize("trial", HOPELESS)
def test_a_challenger_that_is_no_better_is_never_accepted(trial, told):
    """Not even under a rate of false acceptances that no watch should have."""
    kinds = [kind for kind, _ in told[trial]["events"]]
    assert "champion.accepted" not in kinds
    assert kinds.count("experiment.decided") == 1
    assert told[trial]["result"]["champion"] == "base"
    assert told[trial]["result"]["store"] == []
    assert ("block.confirmed" in kinds) is (trial != "idle"), "noise was judged, and not only passed over"


@pytest.mark.guarantee("L14", "K27", "K35")
def test_steps_of_the_wall_clock_change_nothing(told):
    trial = told["clock"]
    assert trial["moments"] == ["refused"], "it waited once, too"
    assert [text for kind, text in trial["events"] if kind == "step.failed" and "the disk is full" in text]
    holds(trial, told["whole"])


@pytest.mark.guarantee("L12", "L14", "K8")
def test_on_a_full_disk_it_says_so_and_goes_on_when_there_is_room(tmp_path, prepared, told):
    def on_a_small_disk(*argv):
        return faults.run_on(tmp_path, *argv, size_bytes=48 * MIB)

    found = misfortunes(on_a_small_disk, prepared, tmp_path / "trials", *DISKS)
    for name in DISKS:
        trial = found[name]
        assert trial["full"], "the disk was never full"
        said = trial["said"] + "".join(text for kind, text in trial["events"] if kind == "step.failed")
        assert trial["ended"] == 1 or "the disk is full" in said
        assert f"{name}/.longwatch" in said
        holds(trial, told["whole"])
    assert list(tmp_path.iterdir()) == []
