"""The demonstration of `migrate`: a legacy package, six task cards, and a worker that cannot be trusted.

Makes a real git repository, runs a migrate watch in it with the `replay` worker (recorded attempts, good and bad ones),
kills the supervisor and the worker with `kill -9` in the middle of an attempt, and shows what was refused, what was
recovered and what was verified and committed. With LONGWATCH_WORKER=codex (or claude) the real program works instead.

Needs Python, git and bubblewrap.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import tomlkit
from watching import LONGWATCH, call, events, in_phase, kill_both, leftovers, say

HERE = Path(__file__).resolve().parent
WORKER = os.environ.get("LONGWATCH_WORKER", "replay")


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "demo" / "shop").resolve()
    started = time.monotonic()
    make_repository(root)
    make_watch(root)
    say("longwatch doctor")
    call(root, "doctor")
    if WORKER == "replay":
        run_and_kill(root)
        say("longwatch status, after the kill")
        call(root, "status")
    say("longwatch run" + (", again" if WORKER == "replay" else ""))
    code = call(root, "run")
    say("What happened")
    print(table(root))
    say("longwatch verify")
    verified = call(root, "verify")
    say("git log")
    subprocess.run(["git", "log", "--oneline", "--decorate"], cwd=root, check=True)
    left = leftovers(root)
    say(f"{time.monotonic() - started:.0f} s; processes left behind: {left}; exit codes: run {code}, verify {verified}")
    if WORKER != "replay":
        return 0 if (code, verified, left) == (0, 0, 0) else 1
    happened = counts(root)
    if (code, verified, left, happened) != (0, 0, 0, EXPECTED):
        print(f"\nThis is not what the demonstration shows elsewhere: {happened}, expected {EXPECTED}.")
        return 1
    print(STATEMENT)
    return 0


EXPECTED = {"attempt.refused": 3, "attempt.lost": 1, "job.committed": 6}
STATEMENT = """
Shown: a claim without a change, a weakened test and a file outside the owned paths were each refused by name; a process
that a worker left behind was ended; an attempt that was killed together with its supervisor was recovered; six verified
changes were committed, each with a signed receipt.
Not shown: that a model can do the work. The attempts were recorded; everything else is the real thing."""


def make_repository(root: Path) -> None:
    say(f"A git repository with a legacy package in {root}")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(HERE / "legacy", root, ignore=shutil.ignore_patterns("attempts", "cards", "__pycache__"))
    for arguments in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Ada"),
        ("config", "user.email", "ada@example.org"),
        ("config", "commit.gpgsign", "false"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "The shop as it was"),
    ):
        subprocess.run(["git", *arguments], cwd=root, check=True)


def make_watch(root: Path) -> None:
    say("longwatch init migrate")
    words = ("--argv", str(HERE / "legacy" / "attempts")) if WORKER == "replay" else ()
    if call(root, "init", "migrate", "--worker", WORKER, *words):
        sys.exit(1)
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text(encoding="utf-8"))
    check = tomlkit.table()
    check.update({"name": "tests", "kind": "test", "argv": ["python3", "run_tests.py"], "census": "unittest"})
    checks = tomlkit.aot()
    checks.append(check)
    config["checks"] = checks
    config["worker"]["retry_delay_s"] = 0.5  # type: ignore[index]
    path.write_text(tomlkit.dumps(config), encoding="utf-8")
    print("Told it how this repository is checked: python3 run_tests.py")
    for card in sorted((HERE / "legacy" / "cards").iterdir()):
        shutil.copy(card, root / "tasks")
    print("Wrote six task cards into tasks/")


def run_and_kill(root: Path) -> None:
    """Run until the attempt at the opening hours is under way, then kill supervisor and worker at once."""
    say("longwatch run")
    supervisor = subprocess.Popen([*LONGWATCH, "run"], cwd=root)
    while supervisor.poll() is None:
        time.sleep(0.2)
        step = in_phase(root, "hours.*.attempt.*", "worker")
        if step is not None:
            time.sleep(1)
            kill_both(supervisor, step)
            print("\n*** kill -9: the supervisor and the worker's program, in the middle of an attempt ***")
            return
    sys.exit("the watch ended before the kill")


def table(root: Path) -> str:
    """One line for each attempt: what it was and what became of it."""
    words = {
        "attempt.refused": "refused",
        "attempt.lost": "recovered",
        "attempt.salvaged": "kept",
        "job.committed": "committed",
        "job.done": "",
        "job.blocked": "blocked",
    }
    lines = []
    for event in events(root):
        word = next((word for kind, word in words.items() if event["kind"].startswith(kind)), "")
        if word:
            lines.append(f"  {word:<10} {event['text'].splitlines()[0][:150]}")
    return "\n".join(lines)


def counts(root: Path) -> dict[str, int]:
    """How often what the demonstration is about happened."""
    kinds = [event["kind"] for event in events(root)]
    return {kind: sum(one.startswith(kind) for one in kinds) for kind in EXPECTED}


if __name__ == "__main__":
    sys.exit(main())
