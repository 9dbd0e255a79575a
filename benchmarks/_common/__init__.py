"""What the benchmarks share: figures beside a named peer of the same run, and places to work in.

Nothing here asserts: a benchmark prints what it measured and whether that meets the goal, on this machine, now.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from longwatch.kernel.watch import Watch
from longwatch.learn.line import ENVIRONMENT

LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")
BARE = (sys.executable, "-c", "pass")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of ours beside its peer's."""

    what: str
    ours: float
    unit: str
    peer: str
    theirs: float
    goal: str
    met: bool

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return self.ours / self.theirs


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    figures: Sequence[Figure]
    ratios: Sequence[float]
    remarks: Sequence[str]


class Result(msgspec.Struct, frozen=True):
    """What a benchmark found, and what a reader must know about it."""

    figures: Sequence[Figure]
    remarks: Sequence[str] = ()


def show(title: str, measure: Callable[[Path], Result]) -> None:
    """Measure in a folder of its own on this disk, and print a table or, with `--json`, one JSON object."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    # Not the system's temporary folder: where that is memory, nothing would reach a disk.
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        result = measure(Path(folder))
    if as_json:
        ratios = [figure.ratio for figure in result.figures]
        shown = _Shown(title=title, figures=result.figures, ratios=ratios, remarks=result.remarks)
        print(msgspec.json.encode(shown).decode())
    else:
        print("\n".join((title, *map(_line, result.figures), *result.remarks)))


def _line(figure: Figure) -> str:
    ours, theirs = f"{figure.ours:,.4g} {figure.unit}", f"{figure.theirs:,.4g} {figure.unit}"
    met = "met" if figure.met else "NOT met"
    return f"  {figure.what}: {ours}; {figure.peer}: {theirs}; ratio {figure.ratio:,.3g} (goal {figure.goal}: {met})"


def per_call_s(calls: Sequence[Callable[[], object]], *, rounds: int, block: int) -> list[float]:
    """Median seconds of each call; they take turns in blocks, so that the machine's moods meet all of them."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, taken, strict=True):
            for _ in range(block):
                began = time.perf_counter()
                call()
                times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in taken]


def ran(argv: Sequence[str], cwd: Path) -> str:
    """Run a program to its end and return what it printed."""
    return subprocess.run(argv, cwd=cwd, check=True, capture_output=True, text=True).stdout


def watch_of_a_repository(folder: Path, *worker: str, settings: str = "") -> Watch:
    """Make a real watch: a git repository with one test and one card, and a worker of one command."""
    root = folder / "repository"
    (root / "tests").mkdir(parents=True)
    (root / "tests/test_one.py").write_text("def test_one():\n    assert True\n")
    ran(("git", "init", "--quiet", "--initial-branch=main"), root)
    for key, value in (("user.name", "A Person"), ("user.email", "person@example.org")):
        ran(("git", "config", key, value), root)
    ran(("git", "add", "--all"), root)
    ran(("git", "commit", "--quiet", "-m", "begin"), root)
    words = [part for word in worker for part in ("--argv", word)]
    ran((*LONGWATCH, "init", "migrate", "--worker", "command", *words), root)
    example = next((root / "tasks").glob("*.example"))
    (root / "tasks/001-first.md").write_text(example.read_text())
    with (root / "longwatch.toml").open("a") as file:
        file.write(settings)
    return Watch(root)


@contextmanager
def supervised(watch: Watch, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `longwatch run` beside; it is stopped at the end."""
    with subprocess.Popen(
        (*LONGWATCH, "run", *options), cwd=watch.root, stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def as_a_step() -> None:
    """Begin again in the environment of a learn step's program, unless this is it: torch reads it when it is loaded."""
    if not ENVIRONMENT.items() <= os.environ.items():
        os.execve(sys.executable, (sys.executable, *sys.argv), {**os.environ, **ENVIRONMENT})


def until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"it did not come within {timeout_s:g} s: run the benchmark on an idle machine")
        time.sleep(0.005)
