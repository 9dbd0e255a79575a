"""The demonstration of a migration with an oracle: three of Blender's operators are ported to the browser.

Installs Blender as a Python module and a few npm packages, makes a git repository of the shape that the profile
`blender-web` asks for, and runs a migrate watch over its queue with the `replay` worker: recorded attempts, four of which
must not get through. Every case runs in real Chromium and is held against real Blender. Ends with the queue `complete`,
every receipt verified, also in a fresh clone.

Needs Python 3.11, git, bubblewrap, node, npm and chromium.
"""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import tomlkit
from blender_attempts import REFUSED, TEMPLATE, record
from watching import call, events, leftovers, say

BPY = "bpy==5.0.1"
PYTHON = (3, 11)
"""The one version that this Blender is built for."""
SOURCE_ROOT = ".venv/lib/python3.11/site-packages/bpy/5.0"
KEPT = (".venv", "node_modules")
EXPECTED = {"attempt.refused": 4, "job.committed": 5, "task.handed_off": 2}
STATEMENT = """
Shown: three operators were ported over two tasks, each case in real Chromium against what real Blender gave for the same
input, some of which was drawn anew in each run. A forged receipt, evidence borrowed from another unit, and a torus that was
wrong by a thousandth in one vertex were each refused by name; an edit of the inventory failed at the sandbox. The queue
moved by accepted handoffs to its end, and every unit of the inventory is verified. All receipts hold, in a fresh clone too.
Not shown: that a model can do the work. The attempts were recorded; everything else is the real thing. The port holds
objects, transforms, meshes and UV maps of object mode, not all of Blender's Main; a number counts as equal within 0.00001."""


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else TEMPLATE.parents[1] / "demo" / "blender-web").resolve()
    started = time.monotonic()
    make_repository(root)
    install(root)
    installed_s = time.monotonic() - started
    make_watch(root)
    say("longwatch doctor")
    call(root, "doctor")
    say("longwatch run")
    code = call(root, "run")
    say("What happened")
    print(table(root))
    say("longwatch verify")
    verified = call(root, "verify")
    say("longwatch verify, in a fresh clone with the watch's memory")
    cloned = verify_clone(root)
    say("longwatch doctor, at the end")
    call(root, "doctor")
    say("git log")
    subprocess.run(["git", "--no-pager", "log", "--oneline", "--decorate"], cwd=root, check=True)
    left, took_s = leftovers(root), time.monotonic() - started
    codes = f"exit codes: run {code}, verify {verified}, verify in the clone {cloned}"
    say(
        f"{installed_s:.0f} s to install, {took_s - installed_s:.0f} s the rest; processes left behind: {left}; {codes}"
    )
    missed = different(root)
    if (code, verified, cloned, left) != (0, 0, 0, 0) or missed:
        print("\nThis is not what the demonstration shows elsewhere:", *missed, sep="\n  ")
        return 1
    print(STATEMENT)
    return 0


def make_repository(root: Path) -> None:
    say(f"A git repository with a queue, an oracle and an application without operators in {root}")
    root.mkdir(parents=True, exist_ok=True)
    for old in root.iterdir():
        if old.name not in KEPT:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    leave = shutil.ignore_patterns("ports", *KEPT, "dist", "__pycache__")
    shutil.copytree(TEMPLATE, root, ignore=leave, dirs_exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org"), ("commit.gpgsign", "false")):
        git(root, "config", key, value)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Nothing is ported yet")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)


def install(root: Path) -> None:
    """Install Blender and the npm packages beside the repository's files, where git ignores them; kept for next time."""
    if not (root / SOURCE_ROOT).is_dir():
        say(f"{BPY}: 374 MB to fetch, 1 GB when installed")
        subprocess.run([python(), "-m", "venv", root / ".venv"], check=True)
        pip = (root / ".venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input")
        subprocess.run([*pip, "install", "--root-user-action=ignore", BPY], check=True)
    lock, installed = root / "package-lock.json", root / "node_modules" / ".installed"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        say("npm ci: esbuild, TypeScript, Biome, playwright-core (150 MB)")
        subprocess.run(["npm", "ci", "--no-fund", "--no-audit"], cwd=root, check=True)
        shutil.copy(lock, installed)


def python() -> str:
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    found = shutil.which("python{}.{}".format(*PYTHON))
    return found or sys.exit(
        f"{BPY} is built for Python 3.11 and no other: install python3.11 with its venv module"
    )


def make_watch(root: Path) -> None:
    say("longwatch init migrate --profile blender-web")
    attempts = root.with_name(f"{root.name}-attempts")
    shutil.rmtree(attempts, ignore_errors=True)
    record(attempts)
    words = ("--worker", "replay", "--argv", str(attempts), "--profile", "blender-web")
    if call(root, "init", "migrate", *words):
        sys.exit(1)
    path = root / "longwatch.toml"
    config = tomlkit.parse(path.read_text(encoding="utf-8"))
    config["queue"]["source_root"] = SOURCE_ROOT  # type: ignore[index]
    config["sandbox"]["share"] = list(KEPT)  # type: ignore[index]
    config["worker"]["retry_delay_s"] = 0.5  # type: ignore[index]
    path.write_text(tomlkit.dumps(config), encoding="utf-8")
    print(f"Told it where Blender's sources lie ({SOURCE_ROOT}), and which ignored folders the checks need")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "The watch")


def verify_clone(root: Path) -> int:
    """A clone has the commits; what the watch remembers and keeps as evidence is its own, and goes along."""
    clone = root.with_name(f"{root.name}-clone")
    shutil.rmtree(clone, ignore_errors=True)
    git(root.parent, "clone", "--quiet", str(root), str(clone))
    leave = shutil.ignore_patterns("work", "bell")
    shutil.copytree(root / ".longwatch", clone / ".longwatch", ignore=leave)
    return call(clone, "verify")


def table(root: Path) -> str:
    """One line for each attempt and handoff: what became of it, and why."""
    words = {"attempt.refused": "refused", "job.committed": "committed", "task.handed_off": "handed off"}
    lines = []
    for event in events(root):
        word = next((word for kind, word in words.items() if event["kind"].startswith(kind)), "")
        if word:
            lines.append(f"  {word:<10} {reason(event['text'])}")
    return "\n".join(lines)


def reason(text: str) -> str:
    """The beginning of a sentence, or who was refused and for what."""
    known = next((why for why in REFUSED.values() if why in text), "")
    return f"{text.split(':')[0]}: ... {known}" if known else text.splitlines()[0][:150]


def different(root: Path) -> list[str]:
    """What did not happen as it should have."""
    seen = events(root)
    found = []
    for kind, wanted in EXPECTED.items():
        count = sum(event["kind"].startswith(kind) for event in seen)
        found += [f"{kind}: {count} times, expected {wanted}"] if count != wanted else []
    refused = [event["text"] for event in seen if event["kind"].startswith("attempt.refused")]
    for (job, number), why in REFUSED.items():
        if not any(text.startswith(f"{job}: attempt {number} ") and why in text for text in refused):
            found.append(f"attempt {number} at {job} was not refused for: {why}")
    return found


if __name__ == "__main__":
    sys.exit(main())
