"""Real git repositories for tests, shaped in a line or two."""

import os
import subprocess
from pathlib import Path

from longwatch.migrate.repository.git import Git


def git(root: Path, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
    finished = subprocess.run(
        ["git", *arguments],
        cwd=root,
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert finished.returncode == 0, f"git {arguments}: {finished.stderr.decode()}"
    return finished.stdout.decode().rstrip("\n")


def write(root: Path, path: str, content: str | bytes, mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    file.chmod(mode)
    return file


def commit_all(root: Path, message: str = "change") -> str:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")


def new_repository(root: Path, *arguments: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main", "--template=", *arguments)
    for key, value in (("user.name", "A Person"), ("user.email", "person@example.org"), ("gc.auto", "0")):
        git(root, "config", key, value)
    return root


def hook(root: Path, name: str, script: str) -> None:
    write(root / ".git" / "hooks", name, f"#!/bin/sh\n{script}\n", 0o755)


def sample(root: Path) -> tuple[Git, str]:
    """A repository with a few kinds of files, and its only commit."""
    new_repository(root)
    write(root, ".gitignore", "*.log\nbuild/\n/private\n")
    write(root, "README.md", "hello\n")
    write(root, "src/a.py", "a = 1\n")
    write(root, "src/b.py", "b = 1\n")
    write(root, "src/deep/c.py", "c = 1\n")
    write(root, "run.sh", "#!/bin/sh\n", 0o755)
    (root / "link").symlink_to("src/a.py")
    return Git.open(root), commit_all(root, "begin")
