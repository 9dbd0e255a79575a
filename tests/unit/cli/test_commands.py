"""Every verb is there, prints JSON where it prints data, and ends with the code that is documented."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support import watches

from longwatch.kernel.watch import Watch

VERBS = (
    *(
        "init",
        "run",
        "start",
        "status",
        "pause",
        "resume",
        "stop",
        "reconcile",
        "doctor",
        "timings",
        "events",
    ),
    *("service", "verify"),
)
PRINTING = ("status", "pause", "resume", "stop", "reconcile", "doctor", "timings", "verify")


@pytest.fixture
def watch(tmp_path) -> Watch:
    return watches.migrate(tmp_path / "repo")


@pytest.mark.guarantee("K10")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(tmp_path, verb):
    finished = watches.longwatch(tmp_path, verb, "--help")
    assert finished.returncode == 0
    assert "Usage" in finished.stdout


@pytest.mark.guarantee("K10")
def test_what_prints_data_prints_json_for_the_watch_that_is_named(watch, tmp_path):
    for verb in PRINTING:
        finished = watches.longwatch(tmp_path, verb, "--watch-dir", str(watch.root), "--json")
        assert isinstance(json.loads(finished.stdout), dict), verb


@pytest.mark.guarantee("K10")
def test_events_are_printed_by_number_as_text_or_json_lines(watch):
    watches.verified(watch)
    lines = watches.longwatch(watch.root, "events", "--json").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4]
    cut = {
        ("--after", "2"): [3, 4],
        ("--limit", "1"): [4],
        ("--after", "0", "--limit", "2"): [1, 2],
        ("--after", "9"): [],
    }
    for arguments, wanted in cut.items():
        found = watches.longwatch(watch.root, "events", "--json", *arguments).stdout.splitlines()
        assert [json.loads(line)["seq"] for line in found] == wanted, arguments
    assert "supervisor.began" in watches.longwatch(watch.root, "events").stdout


@pytest.mark.guarantee("K37")
def test_events_are_shown_in_the_configured_zone_and_stored_in_utc(watch):
    watches.verified(watch)
    watches.configure(watch, 'zone = "UTC"', 'zone = "Asia/Kolkata"')
    assert " IST  " in watches.longwatch(watch.root, "events").stdout
    line = watches.longwatch(watch.root, "events", "--json").stdout.splitlines()[0]
    assert json.loads(line)["at"].endswith("Z")


@pytest.mark.guarantee("K10")
@pytest.mark.parametrize(
    "arguments", [("status", "--watch"), ("status", "--watch", "--json"), ("events", "--follow")]
)
def test_what_follows_live_ends_with_an_interrupt_and_code_0(watch, arguments):
    watches.verified(watch)
    process = subprocess.Popen(
        [sys.executable, "-m", "longwatch.cli.main", *arguments],
        cwd=watch.root,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert first.strip()
    assert (process.returncode, errors) == (0, "")
