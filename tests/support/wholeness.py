"""What a migrate watch must be after everything was done: each job once, nothing left over; and how it is shot at."""

import signal
import subprocess
from pathlib import Path

from tests.support.repositories import git, new_repository
from tests.support.shop import Shop, change, kill


def remote_of(shop: Shop, folder: Path) -> Path:
    bare = new_repository(folder / "remote.git", "--bare")
    git(shop.root, "remote", "add", "origin", str(bare))
    git(shop.root, "push", "--quiet", "origin", "main")
    shop.configure(publish={"push": True})
    return bare


def finish(shop: Shop) -> None:
    """Run without disturbance; whatever was killed before, it ends well."""
    finished = shop.call("run")
    assert finished.returncode == 0, (finished, shop.said())


def whole(shop: Shop, jobs: tuple[str, ...], remote: Path | None = None) -> None:
    """Everything was done once, nothing is left, and every receipt holds."""
    assert shop.status().phase == "complete"
    assert sorted(shop.done()) == sorted(jobs), shop.said()
    assert git(shop.root, "rev-list", "--count", "HEAD") == str(len(jobs) + 1)
    for job in jobs:
        assert shop.kinds().count("job.done") == len(jobs)
        assert (
            sum(kind == "job.committed" and text.startswith(f"{job}:") for kind, text in shop.events()) == 1
        )
    if remote is not None:
        assert git(remote, "rev-parse", "main") == git(shop.root, "rev-parse", "main")
    verified = shop.call("verify")
    assert verified.returncode == 0, verified.stdout
    assert shop.living() == []
    assert shop.programs() == []
    assert list((shop.watch.hidden / "work").iterdir()) == []
    git(shop.root, "fsck", "--strict")
    assert git(shop.root, "for-each-ref", "--format=%(refname)", "refs/longwatch/publishing") == ""
    assert [p.name for p in (shop.root / ".git").rglob("*.lock")] == []


def shoot(shop: Shop, supervisor: "subprocess.Popen[bytes]", target: str) -> None:
    programs, workers = shop.programs(), shop.workers()
    if target in {"supervisor", "all"}:
        supervisor.send_signal(signal.SIGKILL)
    if target in {"program", "all"}:
        kill(programs)
    if target in {"worker", "all"}:
        kill(workers)


def expected_tree(shop: Shop, jobs: tuple[str, ...]) -> str:
    """The tree that an undisturbed run brings: the first commit with every job's own change."""
    root = git(shop.root, "rev-list", "--max-parents=0", "HEAD")
    index = shop.root / ".git" / "expected-index"
    there = {"GIT_INDEX_FILE": str(index)}
    git(shop.root, "read-tree", root, **there)
    for job in jobs:
        git(shop.root, "apply", "--cached", "-", stdin=change(job).encode(), **there)
    tree = git(shop.root, "write-tree", **there)
    index.unlink()
    return tree
