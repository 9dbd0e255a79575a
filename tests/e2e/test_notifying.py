"""A person's own command hears what matters, once; whatever it does, the work goes on."""

import json
from pathlib import Path

import pytest
from tests.support.shop import open_shop

pytestmark = pytest.mark.e2e


@pytest.mark.guarantee("K40")
def test_the_command_hears_of_accepted_jobs_and_of_a_watch_that_needs_somebody(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    shop.record("b", patch="")
    told = tmp_path / "told"
    shop.configure(worker={"max_attempts": 1}, observe={"notify": ["sh", "-c", f"cat >> {told}; echo heard"]})
    assert shop.call("run").returncode == 2
    heard = [json.loads(line) for line in told.read_text().splitlines()]
    assert sorted(one["what"] for one in heard) == ["accepted", "blocked"]
    accepted = next(one for one in heard if one["what"] == "accepted")
    assert (accepted["watch"], accepted["data"]["job"]) == (str(shop.root), "a")
    assert (shop.watch.hidden / "notify.log").read_text() == "heard\nheard\n"


@pytest.mark.guarantee("K40")
def test_a_command_that_fails_or_hangs_or_is_missing_stops_no_work(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    shop.configure(observe={"notify": ["sh", "-c", "echo broken >&2; exit 3"]})
    assert shop.call("run", "--once").returncode == 0
    assert (shop.watch.hidden / "notify.log").read_text() == "broken\n"
    shop.configure(observe={"notify": ["sleep", "1000"], "notify_on": ["complete"]})
    assert shop.call("run").returncode == 0
    assert shop.living() == []
    shop.configure(observe={"notify": ["no-such-program"]})
    refused = shop.call("run")
    assert (refused.returncode, "observe.notify[0] = 'no-such-program'" in refused.stderr) == (2, True)
    shop.configure(observe={"notify": ["true"], "notify_on": ["everything"]})
    assert "'everything': is unknown: use blocked" in shop.call("run").stderr
