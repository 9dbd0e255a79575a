"""A watch on a machine that is not ready: it waits with the reason, or says so and goes, and begins when it is its turn."""

import json

import pytest
from tests.support import tiny_watch
from tests.support.tiny_watch import call, kinds, running, wait_for

from longwatch.learn.readiness import turns

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.mark.guarantee("L34", "L35", "K15", "K38")
def test_a_watch_waits_for_its_turn_by_the_name_of_the_other_and_begins_when_the_machine_is_free(
    tmp_path, tmp_path_factory, monkeypatch
):
    watch = tiny_watch.copy(tiny_watch.prepared(tmp_path_factory), tmp_path / "watch")
    root = watch.root
    monkeypatch.setenv("LONGWATCH_LOCKS", str(root))
    lock = turns.path("auto")
    call(root, "resume", check=True)
    with turns.turn(lock, tmp_path / "other"):
        for _ in range(2):
            refused = call(root, "run", "--no-wait")
            assert refused.returncode == 75, refused.stderr
            assert f"the watch {tmp_path / 'other'} uses this machine since" in refused.stdout
            assert kinds(root)[-1] == "supervisor.ended"
        seen = json.loads(call(root, "status", "--json", check=True).stdout)
        assert seen["phase"] == "waiting"
        assert "the machine is not ready since" in seen["reason"]
        assert not seen["details"]["machine"]["free"]
        assert dict(seen["summary"])["machine"].startswith(f"in use: the watch {tmp_path / 'other'}")
        found = json.loads(call(root, "doctor", "--json").stdout)["findings"]
        assert next(one for one in found if one["name"] == "ready")["standing"] == "note"
        assert not any(watch.steps.glob("train.*")), "nothing was begun, and nothing failed"
        assert "step.failed" not in kinds(root)
    with running(root) as supervisor:
        call(root, "resume", check=True)
        wait_for(lambda: turns.taken(lock), supervisor)
        assert turns.taken(lock).watch == str(root)
        call(root, "pause", check=True)
        assert supervisor.wait(120) == 0
    assert turns.taken(lock) is None
