"""Repeats one recorded attempt. It runs as the worker, inside the sandbox, on the system's own Python.

Therefore: the standard library alone, nothing of ours, and no syntax that an older Python does not know.
"""

import json
import os
import subprocess
import sys
import time


def main() -> int:
    """Print, wait, change, wait, answer, as the script on standard input says. Returns the exit code."""
    script = json.load(sys.stdin)
    behaviour = script["behaviour"]
    for line in behaviour["print"]:
        print(line, flush=True)  # noqa: T201 - a worker's output is its standard output
    time.sleep(behaviour["sleep_s"])
    if script["patch"] is not None:
        apply(script["patch"])
    if behaviour["leave_process"]:
        leave_process()
    time.sleep(behaviour["linger_s"])
    if script["result"] is not None:
        write(script["answer"], script["result"])
    return int(behaviour["exit_code"])


def apply(patch: str) -> None:
    """Change the files, or end with git's reason: something may stand in the way of a recorded change."""
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", patch], check=False, stderr=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"the recorded change cannot be applied: {done.stderr.strip()}")


def leave_process() -> None:
    """Start a process that leaves our session and outlives us, with our output still open, as a bad worker would."""
    subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, start_new_session=True)


def write(path: str, text: str) -> None:
    """Put the answer in its place, whole."""
    part = path + ".part"
    with open(part, "w", encoding="utf-8") as file:  # noqa: PTH123 - the writers of Longwatch are not here
        file.write(text)
    os.replace(part, path)  # noqa: PTH105 - the writers of Longwatch are not here


if __name__ == "__main__":
    sys.exit(main())
