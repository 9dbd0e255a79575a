"""Kill the publisher, and git under it, at every step; then confirm and publish again with the ordinary calls."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from publications import change, leave_unfinished, picture, verified, work_of_a_person
from repositories import git, hook, sample, write

from longwatch.migrate.repository.checkout import private_clone
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.publish import NotPublished, Published, PublishRequest, confirm, publish

_PUBLISHER = """
import os, sys
from pathlib import Path
import msgspec
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.publish import PublishRequest, publish
Path(sys.argv[2], "pid").write_text(str(os.getpid()))
request = msgspec.json.decode(Path(sys.argv[2], "request").read_bytes(), type=PublishRequest)
publish(request, Git(Path(sys.argv[1])))
"""
# Stands before git on PATH; acts at the WHICH-th call of the command WHAT.
_WRAPPER = """#!/bin/sh
case " $* " in *" {what} "*) n=$(cat {here}/count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > {here}/count ;; *) n=-1 ;; esac
if [ $n != {which} ]; then exec {real} "$@"; fi
case {when} in
before) kill -9 $PPID ;;
after) {real} "$@"; kill -9 $PPID ;;
during) {real} "$@" & git=$!; {pause}; kill -9 $PPID $git; wait $git ;;
git) {real} "$@" & git=$!; {pause}; kill -9 $git; wait $git ;;
esac
"""


class Scene:
    """A person's busy repository and a change that waits to be published in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        repository, _ = sample(path / "r")
        work_of_a_person(repository.root)
        self.root = repository.root
        self.git = Git(self.root)
        baseline = git(self.root, "rev-parse", "HEAD")
        private_clone(repository, baseline, path / "clone")
        change(path / "clone")
        self.request: PublishRequest = verified(path, repository, baseline, path / "clone")
        leave_unfinished(self.root)
        (path / "request").write_bytes(msgspec.json.encode(self.request))
        self.before = picture(self.root, self.request.paths)

    def die(self, path: str) -> int:
        """Run the publisher until it is killed; returns its exit code."""
        environment = {**os.environ, "PATH": path}
        argv = [sys.executable, "-c", _PUBLISHER, str(self.root), str(self.path)]
        child = subprocess.run(argv, env=environment, capture_output=True, check=False, timeout=120)
        return child.returncode

    def recovers(self) -> None:
        """The ordinary way: ask, publish if it is not there, and look at everything."""
        answer = confirm(self.request, self.git)
        if isinstance(answer, NotPublished):
            publish(self.request, self.git)
            answer = confirm(self.request, self.git)
        assert isinstance(answer, Published), answer
        assert git(self.root, "rev-list", "--parents", f"{self.request.baseline}..HEAD") == (
            f"{answer.commit} {self.request.baseline}"
        )
        assert self.git.tree_of(answer.commit) == self.git.tree_of(self.request.candidate)
        assert picture(self.root, self.request.paths) == self.before
        assert set(self.git.dirty_paths()).isdisjoint(self.request.paths)
        assert git(self.root, "for-each-ref", "refs/longwatch/publishing") == ""
        assert git(self.root, "fsck", "--no-dangling") == ""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _wrapped(scene: Scene, what: str, which: int, when: str, pause: str = ":") -> str:
    real = shutil.which("git")
    script = _WRAPPER.format(what=what, which=which, when=when, pause=pause, here=scene.path, real=real)
    write(scene.path, "bin/git", script, 0o755)
    return f"{scene.path / 'bin'}:{os.environ['PATH']}"


@pytest.mark.guarantee("K5", "K6", "M29")
@pytest.mark.parametrize("when", ["before", "after", "during"])
@pytest.mark.parametrize(
    ("what", "which"), [("update-ref", 1), ("restore", 1), ("commit", 1), ("update-ref", 2)]
)
def test_killed_at_a_call_that_writes(scene: Scene, what: str, which: int, when: str) -> None:
    assert scene.die(_wrapped(scene, what, which, when)) == -signal.SIGKILL
    scene.recovers()


@pytest.mark.guarantee("K6", "M29")
@pytest.mark.parametrize("pause", ["sleep 0.002", "sleep 0.004", "sleep 0.008", "sleep 0.016"])
@pytest.mark.parametrize("what", ["restore", "commit"])
def test_killed_together_with_git_in_the_middle(scene: Scene, what: str, pause: str) -> None:
    assert scene.die(_wrapped(scene, what, 1, "during", pause)) == -signal.SIGKILL
    scene.recovers()


@pytest.mark.guarantee("M29")
@pytest.mark.parametrize("what", ["restore", "commit"])
def test_git_alone_is_killed_and_the_publisher_puts_everything_back(scene: Scene, what: str) -> None:
    assert scene.die(_wrapped(scene, what, 1, "git")) in {0, 1}
    scene.recovers()


_KILL = "kill -9 $PPID; kill -9 $(cat {path}/pid)"


@pytest.mark.guarantee("K5", "K6", "M29")
@pytest.mark.parametrize(
    ("name", "only_if"),
    [
        ("pre-commit", ""),
        ("prepare-commit-msg", ""),
        ("commit-msg", ""),
        ("reference-transaction", '[ "$1" = prepared ] && grep -q refs/heads/main &&'),
        ("reference-transaction", '[ "$1" = committed ] && grep -q refs/heads/main &&'),
        ("reference-transaction", '[ "$1" = prepared ] && grep -q refs/longwatch &&'),
        ("reference-transaction", '[ "$1" = committed ] && grep -q refs/longwatch &&'),
        ("post-index-change", ""),
        ("post-commit", ""),
    ],
)
def test_killed_inside_git_at_a_hook(scene: Scene, name: str, only_if: str) -> None:
    hook(scene.root, name, f"{only_if} {{ {_KILL.format(path=scene.path)}; }}; exit 0")
    assert scene.die(os.environ["PATH"]) == -signal.SIGKILL
    (scene.root / ".git" / "hooks" / name).unlink()
    scene.recovers()


@pytest.mark.guarantee("K5", "K6", "M29")
@pytest.mark.parametrize("path", ["src/a.py", "new/run", "new/folder/n.py"])
def test_killed_inside_git_while_it_writes_a_file(scene: Scene, path: str) -> None:
    write(scene.root, ".git/info/attributes", f"{path} filter=trap\n")
    git(scene.root, "config", "filter.trap.smudge", f"{_KILL.format(path=scene.path)}; cat")
    git(scene.root, "config", "filter.trap.clean", "cat")
    assert scene.die(os.environ["PATH"]) == -signal.SIGKILL
    (scene.root / ".git/info/attributes").unlink()
    git(scene.root, "config", "--remove-section", "filter.trap")
    scene.recovers()


@pytest.mark.guarantee("K6")
def test_killed_again_and_again(scene: Scene) -> None:
    for what, which in (("update-ref", 1), ("restore", 1), ("commit", 1)):
        (scene.path / "count").unlink(missing_ok=True)
        assert scene.die(_wrapped(scene, what, which, "during", "sleep 0.003")) == -signal.SIGKILL
        if isinstance(confirm(scene.request, scene.git), Published):
            break
    scene.recovers()


@pytest.mark.guarantee("K6", "M28", "M29")
@pytest.mark.parametrize("when", ["before", "during", "after"])
@pytest.mark.parametrize(("what", "which"), [("restore", 2), ("update-ref", 2)])
def test_killed_while_it_puts_back_what_a_hook_refused(
    scene: Scene, what: str, which: int, when: str
) -> None:
    hook(scene.root, "pre-commit", "exit 1")
    assert scene.die(_wrapped(scene, what, which, when)) == -signal.SIGKILL
    (scene.root / ".git" / "hooks" / "pre-commit").unlink()
    scene.recovers()
