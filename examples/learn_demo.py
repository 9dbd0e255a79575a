"""The demonstration of `learn`: a small code model learns, is judged on fresh problems, and is accepted or not.

Runs a learn watch on the embedded SmolLM2-135M in a fresh folder, kills supervisor and experiment with `kill -9` in the
middle of training, lets it resume, and prints what was measured. The model (92 MB) is fetched once. LONGWATCH_SEED
chooses other problems and another order.

Needs Python, bubblewrap and the extra `learn`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tomlkit
from watching import LONGWATCH, call, events, fresh, in_phase, kill_both, leftovers, say

HERE = Path(__file__).resolve().parent
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
"""Everything small enough for a demonstration."""


def main() -> int:
    root = fresh(Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "demo" / "learn").resolve())
    say("longwatch fetch")
    if call(root, "fetch"):
        return 1
    started_s = time.monotonic()
    say(f"longwatch init learn, in {root}")
    call(root, "init", "learn")
    make_small(root)
    say("longwatch run --max-cycles 1")
    run_and_kill(root)
    say("longwatch status, after the kill")
    call(root, "status")
    say("longwatch run --max-cycles 1, again")
    code = call(root, "run", "--max-cycles", "1")
    say("What was measured")
    happened = events(root)
    print(table(happened))
    say("longwatch verify")
    verified = call(root, "verify")
    left = leftovers(root)
    say(f"{time.monotonic() - started_s:.0f} s; processes left behind: {left}; exit codes: run {code}, verify {verified}")
    print(STATEMENT)
    once = [sum(event["kind"] == kind for event in happened) for kind in ("experiment.lost", "experiment.decided")]
    return 0 if (code, verified, left, once) == (0, 0, 0, [1, 1]) else 1


STATEMENT = """
Shown: a real model trained on answers that passed their tests; a kill in mid-training that cost no more than the steps since
the last checkpoint; and a decision by fresh problems that nobody trained on and that were bound before training began.
Not shown: that this small model programs well. The problems are short list functions of one family, reference solutions
taught where its own answers did not pass, and one run on one seed is no study. `make learn` leaves a watch running for good."""


def make_small(root: Path) -> None:
    """Change the settings that `init` wrote."""
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text(encoding="utf-8"))
    for section, values in SMALL.items():
        for key, value in values.items():
            config[section][key] = value  # type: ignore[index]
    path.write_text(tomlkit.dumps(config), encoding="utf-8")
    print(f"Made it small: {', '.join(f'{key} = {value}' for values in SMALL.values() for key, value in values.items())}")


def run_and_kill(root: Path) -> None:
    """Run until training has made a few steps after a checkpoint, then kill the supervisor and the experiment."""
    supervisor = subprocess.Popen([*LONGWATCH, "run", "--max-cycles", "1"], cwd=root)
    while supervisor.poll() is None:
        time.sleep(0.3)
        step = in_phase(root, "train.*", "train", least=13)
        if step is not None:
            kill_both(supervisor, step)
            print("\n*** kill -9: the supervisor and the experiment, in the middle of training ***")
            return
    sys.exit("the watch ended before the kill")


def table(happened: list[dict[str, Any]]) -> str:
    """Pass rates before and after, and what the other decisive events said."""
    rows = ["                              before      after"]
    rows += [
        rate("development (chooses)", event["data"], "dev_before", "dev_after", "dev_total")
        for event in happened
        if event["kind"] == "challenger.nominated"
    ]
    blocks = [event["data"] for event in happened if event["kind"] == "block.confirmed"]
    if blocks:
        total = {key: sum(block[key] for block in blocks) for key in ("champion", "challenger", "problems")}
        rows.append(rate("fresh problems (decide)", total, "champion", "challenger", "problems"))
    told = ("round.finished", "training.resumed", "anchor.compared", "experiment.decided")
    rows += ["", *(f"  {event['text']}" for event in happened if event["kind"] in told)]
    return "\n".join(rows)


def rate(name: str, data: dict[str, Any], before: str, after: str, total: str) -> str:
    return f"  {name:<26}{data[before]:>4} of {data[total]:<4}{data[after]:>4} of {data[total]}"


if __name__ == "__main__":
    sys.exit(main())
