"""A repository with a verified change that waits to be published, and a person's own work beside it."""

from pathlib import Path

from repositories import git, sample, write

from longwatch.migrate.repository.checkout import private_clone
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.harvest import CANDIDATES, candidate, harvest
from longwatch.migrate.repository.publish import PublishRequest


def verified(path: Path, repository: Git, baseline: str, folder: Path, **more: object) -> PublishRequest:
    """The request to publish what was changed in `folder`."""
    taken = harvest(repository, baseline, folder, path / "evidence")
    assert taken.refused == ()
    commit = candidate(repository, baseline, taken.tree, "candidate", f"{CANDIDATES}a1")
    fields = {
        "attempt": "a1",
        "branch": "main",
        "baseline": baseline,
        "candidate": commit,
        "paths": tuple(change.path for change in taken.changes),
        "message": "Port the module\n\nWith a body.",
        "receipt": "0" * 64,
        "timeout_s": 30.0,
    }
    return PublishRequest(**(fields | more))


def change(folder: Path) -> None:
    """A change of every kind."""
    write(folder, "src/a.py", "a = 2\n" * 5000)
    (folder / "src/deep/c.py").unlink()
    (folder / "src/deep").rmdir()
    write(folder, "new/folder/n.py", "n = 1\n")
    write(folder, "new/run", "#!/bin/sh\n", 0o755)
    (folder / "run.sh").chmod(0o644)
    (folder / "link").unlink()
    (folder / "link").symlink_to("src/b.py")
    (folder / "other").symlink_to("src")


def waiting(path: Path, **more: object) -> tuple[Git, PublishRequest]:
    """A repository and a request that publishes `change` in it."""
    repository, baseline = sample(path / "r")
    private_clone(repository, baseline, path / "clone")
    change(path / "clone")
    return repository, verified(path, repository, baseline, path / "clone", **more)


def work_of_a_person(root: Path) -> None:
    """Every kind of unfinished work; the tracked files of it must exist at the baseline."""
    for name in ("staged", "both", "gone", "removed", "modified", "mode", "to_link"):
        write(root, f"mine/{name}", f"{name}\n")
    git(root, "add", "mine")
    git(root, "commit", "--quiet", "-m", "mine")


def leave_unfinished(root: Path) -> None:
    write(root, "mine/new", "new\n")
    write(root, "mine/staged", "staged now\n")
    write(root, "mine/both", "staged now\n")
    git(root, "add", "mine")
    write(root, "mine/both", "and more\n")
    git(root, "rm", "--quiet", "mine/gone")
    (root / "mine/removed").unlink()
    write(root, "mine/modified", "modified\n")
    (root / "mine/mode").chmod(0o755)
    (root / "mine/to_link").unlink()
    (root / "mine/to_link").symlink_to("modified")
    write(root, "mine/intent", "later\n")
    git(root, "add", "--intent-to-add", "mine/intent")
    write(root, "untracked", "untracked\n")
    write(root, "src/untracked", "untracked\n")
    write(root, "x.log", "ignored\n")
    write(root, "build/x", "ignored\n")


def picture(root: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Everything in the working tree and the index but `without`, byte by byte, and every file in .git that is a lock."""
    seen: dict[str, str] = {}
    for file in sorted(root.rglob("*")):
        name = str(file.relative_to(root))
        if name.startswith(".git/"):
            if name.endswith(".lock"):
                seen[name] = "lock"
        elif name in without or (file.is_dir() and not file.is_symlink()):
            continue
        elif file.is_symlink():
            seen[name] = f"link {file.readlink()}"
        else:
            seen[name] = f"{file.stat().st_mode:o} {file.read_bytes()!r}"
    for row in git(root, "ls-files", "--stage").split("\n"):
        described, _, name = row.partition("\t")
        if name and name not in without:
            seen[f"index {name}"] = described
    seen["status"] = "\n".join(
        row for row in git(root, "status", "--porcelain", "-uall").split("\n") if row[3:] not in without
    )
    return seen
