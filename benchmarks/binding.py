"""How fast is binding, next to what everybody has? Ratios of one run on one machine, so that machines cancel out.

    python benchmarks/binding.py [--files N] [--rounds N] [--json]

First: all files are read, against `sha256sum` under `xargs -P` on all cores. Again: nothing has changed and the cache
is warm, against `git status` on the same tree. The page cache is warm in both.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from longwatch.kernel import digest
from longwatch.kernel.statcache import StatCache

PER_FOLDER = 100
WITHOUT = frozenset({".git"})


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Medians in seconds, and the two ratios that README claims."""

    files: int
    size_bytes: int
    cores: int
    rounds: int
    first_s: float
    sha256sum_s: float
    again_s: float
    git_status_s: float

    @property
    def first_speed(self) -> float:
        """Speed of the first binding relative to sha256sum; more is better, the goal is 0.9 at least."""
        return self.sha256sum_s / self.first_s

    @property
    def again_time(self) -> float:
        """Time of a cached binding relative to git status; less is better, the goal is 1.5 at most."""
        return self.again_s / self.git_status_s


def plant(root: Path, count: int) -> int:
    """Write source-like files of 0.3 to 6 KB, a hundred to a folder, and return their bytes."""
    size = 0
    for number in range(count):
        folder = root / f"part{number // (PER_FOLDER * 32)}" / f"module{number // PER_FOLDER % 32}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True, exist_ok=True)
        data = f"value_{number} = {number}\n".encode() * (15 + number * 7919 % 250)
        (folder / f"file_{number % PER_FOLDER}.py").write_bytes(data)
        size += len(data)
    return size


def git(root: Path, *arguments: str) -> None:
    """Run git with an identity of its own, and without maintenance in the background."""
    own = (
        "-c",
        "user.name=benchmark",
        "-c",
        "user.email=benchmark@localhost",
        "-c",
        "maintenance.auto=false",
    )
    subprocess.run(["git", "-C", root, *own, *arguments], check=True, stdout=subprocess.DEVNULL)


def seconds(action: Callable[[], object]) -> float:
    """How long the action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def sha256sum(root: Path, cores: int) -> None:
    """Hash the tree as a shell user would."""
    names = f"find . -name .git -prune -o -type f -print0 | xargs -0 -n 500 -P {cores} sha256sum"
    subprocess.run(["sh", "-c", names], cwd=root, check=True, stdout=subprocess.DEVNULL)


def bind(root: Path, cache: Path) -> None:
    """Bind the tree as a new process would: with a cache that is on disk only."""
    digest.bind("benchmark", root, without=WITHOUT, cache=StatCache(cache))


def measure(folder: Path, count: int, rounds: int) -> Result:
    """Plant a tree and take every time in turn, `rounds` times; a single slow moment then hits all alike."""
    root, cache = folder / "tree", folder / "cache"
    size = plant(root, count)
    git(folder, "init", "-q", str(root))
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "A tree")
    time.sleep(2.1)  # the cache takes no file that is younger than two seconds
    cores = len(os.sched_getaffinity(0))
    sha256sum(root, cores)
    git(root, "status")
    times: dict[str, list[float]] = {"first": [], "sha256sum": [], "again": [], "git": []}
    for _ in range(rounds):
        for kept in (cache, cache.with_name(f"{cache.name}.tree")):
            kept.unlink(missing_ok=True)
        times["sha256sum"].append(seconds(lambda: sha256sum(root, cores)))
        times["first"].append(seconds(lambda: bind(root, cache)))
        times["git"].append(seconds(lambda: git(root, "status", "--porcelain")))
        times["again"].append(seconds(lambda: bind(root, cache)))
    middle = {name: statistics.median(values) for name, values in times.items()}
    return Result(
        files=count,
        size_bytes=size,
        cores=cores,
        rounds=rounds,
        first_s=middle["first"],
        sha256sum_s=middle["sha256sum"],
        again_s=middle["again"],
        git_status_s=middle["git"],
    )


def table(result: Result) -> str:
    """The result for people."""
    rows = (
        (
            "first",
            result.first_s,
            "sha256sum",
            result.sha256sum_s,
            result.first_speed,
            "speed, goal: 0.9 or more",
        ),
        (
            "again",
            result.again_s,
            "git status",
            result.git_status_s,
            result.again_time,
            "time, goal: 1.5 or less",
        ),
    )
    head = f"{result.files} files, {result.size_bytes / 1e6:.0f} MB, {result.cores} cores, median of {result.rounds}"
    lines = (
        f"  {ours:8}{ours_s:7.3f} s   {theirs:12}{theirs_s:7.3f} s   {ratio:5.2f} x {goal}"
        for ours, ours_s, theirs, theirs_s, ratio, goal in rows
    )
    return "\n".join((head, *lines))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="longwatch-binding-") as folder:
        result = measure(Path(folder), options.files, options.rounds)
    if options.json:
        ratios = {"first_speed": result.first_speed, "again_time": result.again_time}
        print(msgspec.json.encode(msgspec.to_builtins(result) | ratios).decode())
    else:
        print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
