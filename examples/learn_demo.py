"""The demonstration of `learn`: a small code model collects, trains, is confirmed on fresh problems, and is accepted or not.

Runs a learn watch on the embedded SmolLM2-135M in a fresh folder, kills supervisor and experiment with `kill -9` in the
middle of training, lets it resume, and prints what was measured. The model (92 MB) is fetched once.

Needs Python, bubblewrap and the extra `learn`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import tomlkit

HERE = Path(__file__).resolve().parent
LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")
SMALL = {
    "curriculum": {
        "seed": int(os.environ.get("LONGWATCH_SEED", "1")),
        "families": ["lists"],
        "levels": [1],
        "train_tasks": 48,
        "dev_tasks": 20,
        "confirm_tasks": 100,
    },
    "training": {"samples": 2, "tasks_per_round": 48, "batch": 1, "max_steps": 200, "checkpoint_steps": 10},
    "experiment": {"rounds": 1},
    "acceptance": {"sealed_tasks": 20},
}


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "demo" / "learn").resolve()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    say("longwatch fetch")
    if call(root, "fetch"):
        return 1
    started = time.monotonic()
    say(f"longwatch init learn, in {root}")
    call(root, "init", "learn")
    make_small(root)
    say("longwatch run --max-cycles 1")
    run_and_kill(root)
    say("longwatch run --max-cycles 1, again")
    code = call(root, "run", "--max-cycles", "1")
    say("What was measured")
    print(table(root))
    say("longwatch verify")
    verified = call(root, "verify")
    print(f"\n{time.monotonic() - started:.0f} s; exit codes: run {code}, verify {verified}")
    print(STATEMENT)
    return 0 if (code, verified) == (0, 0) else 1


STATEMENT = """
Shown: a real model trained on answers that passed their tests, a kill in mid-training that cost at most two steps, and a
decision by fresh problems that nobody trained on and that were bound before training began.
Not shown: that this small model programs well. The problems are short list functions of one family, and reference
solutions taught where its own answers did not pass. Run `longwatch run` in the folder to let it go on for good."""


def make_small(root: Path) -> None:
    """Make everything small enough for a demonstration."""
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text(encoding="utf-8"))
    for table, values in SMALL.items():
        for key, value in values.items():
            config[table][key] = value  # type: ignore[index]
    path.write_text(tomlkit.dumps(config), encoding="utf-8")


def run_and_kill(root: Path) -> None:
    """Run until training has made a few steps, then kill the supervisor and the experiment."""
    supervisor = subprocess.Popen([*LONGWATCH, "run", "--max-cycles", "1"], cwd=root)
    while supervisor.poll() is None:
        time.sleep(0.3)
        step = training(root)
        if step is not None:
            supervisor.send_signal(signal.SIGKILL)
            kill_step(root, step)
            supervisor.wait()
            print("\n*** kill -9: the supervisor and the experiment, in the middle of training ***")
            return
    print("The watch ended before it trained.")


def training(root: Path) -> str | None:
    """The id of an experiment's step that has made at least three training steps, or None."""
    for path in (root / ".longwatch" / "steps").glob("train.*/progress.json"):
        progress = json.loads(path.read_bytes())
        if progress.get("phase") == "train" and (progress.get("done") or 0) >= 3:
            return path.parent.name
    return None


def kill_step(root: Path, step: str) -> None:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(root / ".longwatch" / "steps" / step).encode() in words:
                os.kill(int(process.name), signal.SIGKILL)


def table(root: Path) -> str:
    """What the event log says, in the order in which it happened."""
    kinds = ("window.prepared", "round.finished", "challenger.nominated", "block.confirmed", "anchor.compared")
    ends = ("training.resumed", "champion.accepted", "experiment.decided")
    printed = subprocess.run([*LONGWATCH, "events", "--json"], cwd=root, check=True, capture_output=True, text=True)
    events = [json.loads(line) for line in printed.stdout.splitlines()]
    return "\n".join(f"  {event['text'][:300]}" for event in events if event["kind"] in (*kinds, *ends))


def call(root: Path, *arguments: str) -> int:
    sys.stdout.flush()
    return subprocess.run([*LONGWATCH, *arguments], cwd=root, check=False).returncode


def say(text: str) -> None:
    print(f"\n=== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
