"""What a person sees and gets who does everything wrong that can be done wrong, through the real command line."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.repositories import commit_all, git, hook, write
from tests.support.shop import WORKER, Finished, Shop, change, new_file, open_shop, settle

pytestmark = pytest.mark.e2e

VERBS = (
    ("init", "migrate"),
    *(
        (verb,)
        for verb in (
            "run",
            "start",
            "status",
            "pause",
            "resume",
            "stop",
            "reconcile",
            "verify",
            "events",
            "timings",
            "doctor",
            "service",
        )
    ),
)
PRINTING = ("status", "events", "timings", "verify", "reconcile", "doctor")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path, ("a",))


def ran(shop: Shop, code: int, *arguments: str) -> Finished:
    """Run the supervisor and expect this end, without a trace of our own insides."""
    finished = shop.call("run", *arguments)
    assert finished.returncode == code, (finished.stdout, finished.stderr, shop.said())
    assert "Traceback" not in finished.stderr
    return finished


def go_on(shop: Shop, *arguments: str) -> None:
    asked = shop.call("resume", "--accept", *arguments)
    assert asked.returncode == 0, asked


def blocked(shop: Shop, *words: str) -> str:
    """Expect a run to end blocked, for a reason with these words."""
    said = ran(shop, 2).stdout
    assert shop.status().phase == "blocked"
    for word in words:
        assert word in shop.status().reason
    assert "longwatch resume --accept" in said
    return shop.status().reason


# -- what is printed


@pytest.mark.guarantee("K10", "K15")
def test_the_look_of_every_verb(shop: Shop) -> None:
    for words in VERBS:
        helped = shop.call(*words, "--help")
        assert helped.returncode == 0
        assert len(helped.stdout) > 200, words
        assert "\033" not in helped.stdout
    top = shop.call("--help").stdout
    for code in ("0 done", "1 an error", "2 blocked", "3 needs reconcile", "4", "75"):
        assert code in top
    told = ran(shop, 0, "--json").stdout
    assert {json.loads(line)["kind"] for line in told.splitlines()} >= {
        "job.verified",
        "job.done",
        "watch.complete",
    }
    for verb in PRINTING:
        plain, machine = shop.call(verb), shop.call(verb, "--json")
        assert "\033" not in plain.stdout + machine.stdout
        assert plain.stdout.strip()
        for text in machine.stdout.splitlines() if verb == "events" else (machine.stdout,):
            json.loads(text)
        assert plain.stderr == ""
        assert machine.stderr == ""
    for verb in ("pause", "stop", "resume"):
        assert json.loads(shop.call(verb, "--json").stdout)["verb"] == verb


@pytest.mark.guarantee("K10")
def test_a_watch_is_found_from_below_and_from_elsewhere(shop: Shop, tmp_path: Path) -> None:
    assert json.loads(shop.call("status", "--json", cwd=shop.root / "tests").stdout)["watch"] == str(
        shop.root
    )
    elsewhere = ("--watch-dir", str(shop.root))
    assert shop.call("run", *elsewhere, cwd=tmp_path).returncode == 0
    assert shop.call("verify", *elsewhere, cwd=tmp_path).returncode == 0
    lost = shop.call("status", cwd=tmp_path)
    assert lost.returncode == 2
    assert "longwatch init migrate" in lost.stderr


@pytest.mark.guarantee("K10")
def test_the_status_file_mirrors_the_status(shop: Shop) -> None:
    shop.configure(observe={"status_file": "status.json"})
    ran(shop, 0)
    mirrored = json.loads((shop.root / "status.json").read_bytes())
    shown = shop.json("status")
    assert mirrored["phase"] == shown["phase"] == "complete"
    assert mirrored["events"] == shown["events"]
    assert shop.done() == ["a"]


# -- a person's files are wrong


@pytest.mark.guarantee("K15", "M23", "M34")
def test_a_wrong_configuration_is_refused_before_anything_begins(shop: Shop) -> None:
    good = shop.watch.config.read_text()
    wrong = {
        "kind = [": "longwatch.toml",
        good.replace("[worker]", "[worker]\nmax_attemps = 2"): "max_attempts",
        good.replace("[[checks]]", "[[cheks]]"): "checks",
        good[: good.index("[[checks]]")] + good[good.index("[budget]") :]: "checks",
        good.replace('adapter = "replay"', 'adapter = "replai"'): "replay",
    }
    for text, hint in wrong.items():
        shop.watch.config.write_text(text)
        refused = ran(shop, 2)
        assert hint in refused.stderr, refused.stderr
        assert "longwatch.toml" in refused.stderr
        shown = shop.call("status")
        assert shown.returncode == 0, "a broken file must not hide the state"
        assert "config" in shown.stdout
    shop.watch.config.write_text(good)
    assert shop.kinds() == []
    ran(shop, 0)


@pytest.mark.guarantee("M2", "M1")
def test_a_wrong_queue_blocks_with_the_mend(shop: Shop) -> None:
    card = shop.root / "tasks/a.md"
    good = card.read_text()
    wrong = {
        "no front matter\n": "tasks/a.md",
        good.replace("owned:", "ownd:"): "owned",
        good.replace('id: "a"', 'id: "../a"'): "id",
        good.replace("---\n\nBring", 'after: ["b"]\n---\n\nBring'): "b",
    }
    for text, hint in wrong.items():
        card.write_text(text)
        reason = blocked(shop, hint)
        assert "tasks/a.md" in reason
        go_on(shop)
    card.write_text(good)
    (shop.root / "tasks").rename(shop.root / "elsewhere")
    blocked(shop, "tasks")
    go_on(shop)
    (shop.root / "elsewhere").rename(shop.root / "tasks")
    ran(shop, 0)


@pytest.mark.guarantee("K8", "K15")
def test_a_damaged_database_is_named_and_left_alone(tmp_path: Path) -> None:
    shop = open_shop(tmp_path)
    ran(shop, 0)
    for name in ("watch.db-wal", "watch.db-shm"):
        (shop.watch.hidden / name).unlink(missing_ok=True)
    raw = bytearray(shop.watch.database.read_bytes())
    for damaged in (b"no database at all", bytes(raw[:4096]) + b"\xff" * 4096 + bytes(raw[8192:]), b""):
        shop.watch.database.write_bytes(damaged)
        for verb in ("run", "status", "pause", "reconcile", "verify"):
            refused = shop.call(verb)
            assert refused.returncode in {1, 2}, (verb, refused)
            assert "watch.db" in refused.stderr, (verb, refused)
            assert "Traceback" not in refused.stderr, verb
            assert shop.watch.database.read_bytes() == damaged, verb
        assert shop.call("init", "migrate").returncode == 2


# -- the repository is not as it should be


@pytest.mark.guarantee("M29", "M33", "M28")
def test_a_branch_that_is_not_as_it_was(shop: Shop) -> None:
    git(shop.root, "switch", "--quiet", "--create", "other")
    blocked(shop, "git switch main", "other")
    git(shop.root, "switch", "--quiet", "main")
    go_on(shop)
    ran(shop, 0)
    write(shop.root, "shop/__init__.py", "# maintenance\n")
    git(shop.root, "commit", "--quiet", "--all", "--message", "Maintenance")
    shop.job("b")
    blocked(shop, "outside the watch", "--refresh-baseline")
    assert shop.call("resume").returncode == 2
    go_on(shop)
    blocked(shop, "--refresh-baseline")
    go_on(shop, "--refresh-baseline")
    ran(shop, 0)
    assert shop.done() == ["a", "b"]
    assert shop.call("verify").returncode == 0


@pytest.mark.guarantee("M28", "M29", "M31")
@pytest.mark.parametrize("before", [True, False], ids=["before the attempt", "meanwhile"])
def test_a_dirty_path_in_the_way(tmp_path: Path, before: bool) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    if before:
        write(shop.root, "shop/a.py", "# mine\n")
    shop.raise_flag("check")
    supervisor = shop.begin()
    shop.in_step("verify", "check:test")
    write(shop.root, "shop/a.py", "# mine\n")
    shop.lower_flag("check")
    assert settle(shop, supervisor) == 2
    reason = shop.status().reason
    assert "shop/a.py" in reason
    assert "longwatch resume --accept" in reason
    assert (shop.root / "shop/a.py").read_text() == "# mine\n"
    assert not (shop.root / "tests/test_a.py").exists()
    (shop.root / "shop/a.py").rename(shop.root / "mine.py")
    go_on(shop)
    ran(shop, 0)
    assert shop.done() == ["a"]
    assert shop.commits() == ["a.1"]
    assert (shop.root / "mine.py").read_text() == "# mine\n"


@pytest.mark.guarantee("M31", "M4")
def test_publishing_by_hand(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    shop.configure(publish={"commit": False})
    for job in ("a", "b"):
        reason = blocked(shop, "ready_to_publish", f"shop/{job}.py", f"tests/test_{job}.py")
        assert git(shop.root, "log", "--oneline", "--", f"shop/{job}.py") == ""
        # Asking again changes nothing, and spends nothing.
        go_on(shop)
        assert blocked(shop, "ready_to_publish") == reason
        take = next(part for part in reason.split("`") if part.startswith("git merge"))
        git(shop.root, *take.split()[1:])
        go_on(shop)
    ran(shop, 0)
    assert sum(kind == "attempt.claimed" for kind, _ in shop.events()) == 2
    assert shop.call("verify").returncode == 0


@pytest.mark.guarantee("M29", "K28", "M27")
def test_a_hook_of_the_person_that_refuses(shop: Shop) -> None:
    hook(shop.root, "pre-commit", "echo 'no more commits today' >&2; exit 1")
    shop.configure(worker={"max_attempts": 5})
    before = git(shop.root, "rev-parse", "HEAD")
    reason = blocked(shop, "no more commits today", "unfixable")
    assert "pre-commit" in reason
    assert git(shop.root, "rev-parse", "HEAD") == before
    assert git(shop.root, "status", "--porcelain", "shop", "tests") == ""
    hook(shop.root, "pre-commit", "exit 0")
    go_on(shop)
    ran(shop, 0)
    assert shop.done() == ["a"]


# -- the worker is not as it should be


@pytest.mark.guarantee("M16", "K15", "K14", "K13")
def test_a_protected_file_that_changes_while_the_worker_runs(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.raise_flag("worker")
    supervisor = shop.begin()
    shop.in_step("attempt", "worker")
    write(shop.root, "tasks/b.md.later", "a card to come\n")
    hook(shop.root, "post-commit", "exit 0")
    git(shop.root, "config", "core.editor", "vi")
    shop.lower_flag("worker")
    assert settle(shop, supervisor) == 3
    seen = shop.status()
    assert seen.phase == "needs_reconcile"
    for name in ("tasks/b.md.later", "hooks/post-commit", "core.editor"):
        assert name in seen.reason
    assert shop.call("resume").returncode == 2
    looked = shop.call("reconcile")
    assert looked.returncode == 0
    assert "resume --accept" in looked.stdout
    ran(shop, 3)
    go_on(shop)
    ran(shop, 0)
    assert shop.done() == ["a"]


@pytest.mark.guarantee("M35", "K15", "K14")
def test_an_attempt_that_was_cut_is_left_to_a_person_if_they_say_so(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a",), worker=WORKER)
    shop.configure(worker={"interrupted": "reconcile"})
    shop.raise_flag("worker")
    supervisor = shop.begin()
    shop.in_step("attempt", "worker")
    supervisor.kill()
    for program in shop.programs():
        program.kill()
    supervisor.wait()
    ran(shop, 3)
    assert shop.call("resume").returncode == 2
    assert shop.done() == []
    shop.lower_flag("worker")
    go_on(shop)
    ran(shop, 0)
    assert shop.done() == ["a"]


@pytest.mark.guarantee("M27", "K15", "M25", "M12")
def test_attempts_that_are_used_up(shop: Shop) -> None:
    shop.record("a", patch="", claim="done")
    reason = blocked(shop, "a:", "needs at least one file", "3 attempts")
    assert "1 of 1 jobs" in reason
    assert sum(kind.startswith("attempt.refused") for kind in shop.kinds()) == 3
    shop.record("a", 4)
    go_on(shop)
    ran(shop, 0)
    assert shop.commits() == ["a.4"]


@pytest.mark.guarantee("K28")
def test_the_same_failing_checks_three_times(shop: Shop) -> None:
    shop.configure(worker={"max_attempts": 10})
    broken = new_file("shop/a.py", ["VALUE = 2"]) + change("a").split("diff --git")[2].join(
        ("diff --git", "")
    )
    shop.record("a", patch=broken)
    blocked(shop, "unfixable here")
    assert sum(kind.startswith("attempt.refused") for kind in shop.kinds()) == 3


@pytest.mark.guarantee("M11", "K15")
def test_a_spent_budget_stops_once_and_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b"))
    shop.configure(budget={"tokens": 100, "tokens_per_attempt": 60})
    ran(shop, 4)
    assert shop.done() == ["a"]
    assert shop.status().phase == "exhausted"
    assert "budget.tokens" in shop.status().reason
    ran(shop, 4)
    assert sum(kind == "attempt.claimed" for kind in shop.kinds()) == 1
    shop.configure(budget={"tokens": 1000})
    ran(shop, 0)
    assert shop.done() == ["a", "b"]


# -- running


@pytest.mark.guarantee("M34")
def test_once_and_max_cycles(tmp_path: Path) -> None:
    shop = open_shop(tmp_path, ("a", "b", "c", "d"))
    ran(shop, 0, "--once")
    assert shop.done() == ["a"]
    ran(shop, 0, "--max-cycles", "2")
    assert shop.done() == ["a", "b", "c"]
    assert shop.open_steps() == []
    ran(shop, 0)
    assert shop.done() == ["a", "b", "c", "d"]


@pytest.mark.guarantee("K4", "K15")
def test_markers_of_other_tools(shop: Shop) -> None:
    other = subprocess.Popen(["sleep", "60"])
    marker = write(shop.root, "other.pid", f"{other.pid}\n")
    shop.configure(host={"markers": ["other.pid"], "publish_marker": "longwatch.pid"})
    refused = ran(shop, 75)
    assert "other.pid" in refused.stderr
    assert str(other.pid) in refused.stderr
    assert shop.kinds() == []
    other.kill()
    other.wait()
    ran(shop, 0)
    assert marker.read_text() == f"{other.pid}\n", "a foreign marker is never removed"
    assert not (shop.root / "longwatch.pid").exists()
    write(shop.root, "longwatch.pid", f"{os.getpid()}\n")
    ran(shop, 75)
    assert (shop.root / "longwatch.pid").read_text() == f"{os.getpid()}\n"


@pytest.mark.guarantee("K32", "K15")
def test_a_receipt_that_was_changed(shop: Shop) -> None:
    ran(shop, 0)
    receipt = next(iter(shop.watch.receipts.glob("*.json")))
    receipt.write_text(receipt.read_text().replace("a", "b", 1))
    refused = shop.call("verify")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


@pytest.mark.guarantee("M34", "K26")
def test_a_preflight_that_fails_is_waited_for(shop: Shop) -> None:
    gate = write(
        shop.root.parent,
        "gate.sh",
        f'#!/bin/sh\ntest -e "{shop.flags}/open" || {{ echo "the gate is shut"; exit 1; }}\n',
        0o755,
    )
    shop.configure(repository={"preflight": [[str(gate)]]})
    supervisor = shop.begin()
    seen = shop.wait("waiting", lambda seen: seen.phase == "waiting")
    assert "the gate is shut" in seen.reason
    shop.raise_flag("open")
    assert settle(shop, supervisor) == 0
    assert shop.done() == ["a"]
    assert not any(kind.startswith("attempt.refused") for kind in shop.kinds())


@pytest.mark.guarantee("M28")
def test_a_watch_that_nobody_filled(tmp_path: Path) -> None:
    """Straight after an init there is nothing to do, and that is said."""
    shop = open_shop(tmp_path)
    assert "no card" in ran(shop, 0).stdout
    commit_all(shop.root, "the watch's own files")
    shop.job("a")
    assert "moved" in blocked(shop, "--refresh-baseline")
