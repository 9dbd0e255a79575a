"""A whole learn watch on a tiny real student: collect, train, confirm, accept or refuse."""

import json
from pathlib import Path

import msgspec
import pytest
import tomlkit
from tests.support import tiny_watch
from tests.support.tiny_watch import call, kinds

from longwatch.kernel.digest import of_bytes
from longwatch.learn.experiment import replay
from longwatch.learn.experiment.examples import Author
from longwatch.learn.tasks import Split

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.fixture
def finished(tmp_path, tmp_path_factory):
    return tiny_watch.copy(tiny_watch.finished(tmp_path_factory), tmp_path / "watch").root


@pytest.mark.guarantee("L6", "L7", "L8", "L9", "L13", "L17", "L26", "L33", "L35", "K31", "K32")
def test_a_student_that_learns_is_accepted_on_fresh_problems(finished):
    happened = kinds(finished)
    for earlier, later in (
        ("window.prepared", "round.finished"),
        ("round.finished", "challenger.nominated"),
        ("challenger.nominated", "block.confirmed"),
        ("block.confirmed", "anchor.compared"),
        ("anchor.compared", "champion.accepted"),
    ):
        assert happened.index(earlier) < happened.index(later)
    assert happened.count("round.finished") == 2
    assert len(list((finished / ".longwatch" / "adapters").iterdir())) == 1
    verified = call(finished, "verify")
    assert verified.returncode == 0, verified.stdout
    assert "experiment-1: decision PASSED" in verified.stdout
    status = json.loads(call(finished, "status", "--json", check=True).stdout)
    assert dict(status["summary"])["champion"] != "base"


@pytest.mark.guarantee("L11", "L26")
def test_what_taught_the_champion_is_kept_for_replay_and_bound_to_it(finished):
    (path,) = (finished / ".longwatch" / "replay").iterdir()
    examples = replay.load(path.parent, path.stem)
    assert {example.author for example in examples} <= set(Author)
    assert len({(example.task, example.answer) for example in examples}) == len(examples) > 0
    (adapter,) = (finished / ".longwatch" / "adapters").iterdir()
    manifest = of_bytes((finished / ".longwatch" / "windows" / "1" / "manifest.json").read_bytes())
    lineage = json.loads((adapter / "lineage.json").read_bytes())
    assert lineage["data"] == of_bytes(msgspec.json.encode((manifest, path.stem)))


@pytest.mark.guarantee("L26", "K32")
def test_an_accepted_adapter_that_is_changed_is_found(finished):
    (adapter,) = (finished / ".longwatch" / "adapters").iterdir()
    flip(adapter / "adapter_model.safetensors")
    verified = call(finished, "verify")
    assert verified.returncode == 1
    assert "subject_mismatch" in verified.stdout


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)


@pytest.mark.guarantee("L13", "L17", "L19")
def test_a_student_that_is_taught_nothing_that_is_asked_is_never_accepted(tmp_path, tmp_path_factory):
    """Its references are right, but no prompt says what is wanted: all that it can learn is to guess."""

    def mistaught(task):
        return msgspec.structs.replace(task, prompt=f"Say nothing about {task.id}.")

    counts = {Split.TRAIN: 24, Split.DEV: 8, Split.CONFIRM: 20, Split.SEALED: 4}
    watch = tiny_watch.make(
        tmp_path / "watch",
        tiny_watch.student(tmp_path_factory),
        counts,
        change=mistaught,
        training={"tasks_per_round": 12, "max_steps": 40},
    )
    run = call(watch.root, "run", "--max-cycles", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    told = kinds(watch.root)
    assert "experiment.decided" in told
    assert "champion.accepted" not in told
    assert not (watch.hidden / "adapters").exists()


@pytest.mark.guarantee("L31")
def test_hours_change_only_in_an_idle_watch(tmp_path, tmp_path_factory):
    watch = tiny_watch.make(tmp_path / "watch", tiny_watch.student(tmp_path_factory))
    busy = call(watch.root, "set-hours", "2")
    assert busy.returncode == 2
    assert "longwatch pause" in busy.stderr
    call(watch.root, "pause", check=True)
    assert call(watch.root, "run").returncode == 0
    for bad in ("0", "25", "nan"):
        assert call(watch.root, "set-hours", bad).returncode == 2
    assert call(watch.root, "set-hours", "2").returncode == 0
    assert tomlkit.parse(watch.config.read_text())["experiment"]["hours"] == 2
    assert "hours.changed" in kinds(watch.root)


@pytest.mark.guarantee("L1", "L19")
def test_what_is_written_before_the_first_run_holds(tmp_path, tmp_path_factory):
    """`init` writes a state and a file: a person edits the file, and nothing has happened yet."""
    watch = tiny_watch.make(tmp_path / "watch", tiny_watch.student(tmp_path_factory))
    tiny_watch.configure(watch.root, acceptance={"q": 0.3}, curriculum={"start_row": 7})
    with tiny_watch.running(watch.root) as supervisor:
        tiny_watch.wait_for(lambda: any(watch.steps.glob("prepare.*/step.json")), supervisor)
        (path,) = watch.steps.glob("prepare.*/step.json")
        assert json.loads(path.read_bytes())["start_row"] == 7
        call(watch.root, "stop", check=True)
        assert supervisor.wait(60) == 0
    assert tiny_watch.state(watch.root).schedule.q == 0.3
