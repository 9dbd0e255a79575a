import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from repositories import commit_all, git, sample, write

from longwatch.kernel.errors import AuthError, ExitCode, NotReadyError, RefusedError
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.push import (
    Pushed,
    PushRefusedError,
    RemoteMovedError,
    UnconfirmedPushError,
    push,
)


class Scene:
    """A repository with a remote, and a commit to push."""

    def __init__(self, path: Path) -> None:
        self.repository, self.first = sample(path / "r")
        self.remote = path / "remote.git"
        git(path, "init", "-q", "--bare", "--initial-branch=main", str(self.remote))
        git(self.root, "remote", "add", "origin", str(self.remote))
        git(self.root, "push", "-q", "origin", "main")
        self.commit = commit_all(self.root, "second")
        self.waits: list[float] = []

    @property
    def root(self) -> Path:
        return self.repository.root

    def push(self, *delays: float, go_on: bool = True) -> Pushed:
        def wait(seconds: float) -> bool:
            self.waits.append(seconds)
            return go_on

        return push(self.repository, "origin", "main", self.commit, delays=delays, wait=wait)

    def shown(self) -> str:
        return git(self.remote, "rev-parse", "main")

    def on_receive(self, name: str, script: str) -> None:
        write(self.remote, f"hooks/{name}", f"#!/bin/sh\n{script}\n", 0o755)

    def receiver(self, script: str) -> None:
        """What runs in place of `git receive-pack` on the remote's side."""
        program = write(self.root.parent, "receiver", f"#!/bin/sh\n{script}\n", 0o755)
        git(self.root, "config", "remote.origin.receivepack", str(program))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.guarantee("M30")
def test_the_remote_shows_it(scene: Scene) -> None:
    assert scene.push(1.0) == Pushed(commit=scene.commit, pushes=1)
    assert scene.shown() == scene.commit
    assert scene.waits == []


@pytest.mark.guarantee("M30")
def test_what_is_there_is_not_pushed_again(scene: Scene) -> None:
    scene.push()
    scene.receiver("exit 1")
    assert scene.push().pushes == 0


@pytest.mark.guarantee("M30")
def test_a_new_branch_is_made(scene: Scene) -> None:
    done = push(scene.repository, "origin", "feature/x", scene.commit, delays=(), wait=lambda _: True)
    assert done.pushes == 1
    assert git(scene.remote, "rev-parse", "feature/x") == scene.commit


@pytest.mark.guarantee("M30")
def test_a_push_that_worked_and_then_failed_is_a_success(scene: Scene) -> None:
    scene.receiver('git receive-pack "$@"; exit 1')
    scene.on_receive("post-receive", "kill -9 $PPID")
    assert scene.push() == Pushed(commit=scene.commit, pushes=1)


@pytest.mark.guarantee("M30")
def test_a_push_that_says_it_worked_and_did_not_is_none(scene: Scene) -> None:
    scene.on_receive("post-receive", f"git update-ref refs/heads/main {scene.first}")
    with pytest.raises(PushRefusedError, match="push said that it had worked"):
        scene.push(0.5)


@pytest.mark.guarantee("M30")
def test_a_refusing_hook_is_tried_so_often_and_told(scene: Scene) -> None:
    scene.on_receive("pre-receive", "echo tried >> tries; echo 'not on a Friday' >&2; exit 1")
    with pytest.raises(PushRefusedError, match="not on a Friday"):
        scene.push(1.0, 2.0)
    assert scene.waits == [1.0, 2.0]
    assert (scene.remote / "tries").read_text() == "tried\n" * 3
    assert scene.shown() == scene.first


@pytest.mark.guarantee("M30")
def test_a_hook_that_relents_is_a_success(scene: Scene) -> None:
    scene.on_receive("pre-receive", "test -e tried && exit 0; touch tried; exit 1")
    assert scene.push(1.0).pushes == 2


def _colleague(scene: Scene, message: str) -> str:
    other = scene.root.parent / "colleague"
    git(scene.root.parent, "clone", "-q", str(scene.remote), str(other))
    for key in ("name", "email"):
        git(other, "config", f"user.{key}", "c@example.org")
    moved = commit_all(other, message)
    git(other, "push", "-q")
    return moved


@pytest.mark.guarantee("M30")
def test_a_remote_that_moved_is_refused_at_once_and_never_forced(scene: Scene) -> None:
    moved = _colleague(scene, "theirs")
    git(scene.root, "config", "remote.origin.push", "+main")
    with pytest.raises(RemoteMovedError, match=moved) as caught:
        scene.push(1.0)
    assert scene.waits == []
    assert caught.value.exit_code is ExitCode.BLOCKED
    assert scene.shown() == moved
    git(scene.root, "fetch", "-q")
    with pytest.raises(RemoteMovedError):
        scene.push(1.0)
    assert scene.shown() == moved


@pytest.mark.guarantee("M30")
def test_a_remote_that_stands_on_the_commit_holds_it(scene: Scene) -> None:
    scene.push()
    _colleague(scene, "on top")
    git(scene.root, "fetch", "-q")
    assert scene.push().pushes == 0


@pytest.mark.guarantee("M30")
def test_an_unknown_tip_after_our_push_is_unconfirmed(scene: Scene) -> None:
    moved = "git commit-tree -m later -p main main^{tree}"
    identity = "GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x"
    scene.on_receive("post-receive", f"git update-ref refs/heads/main $({identity} {moved})")
    with pytest.raises(UnconfirmedPushError, match="git fetch origin") as caught:
        scene.push(1.0)
    assert caught.value.exit_code is ExitCode.NEEDS_RECONCILE


@pytest.mark.guarantee("M30")
def test_a_remote_that_vanishes_after_the_push_is_unconfirmed(scene: Scene) -> None:
    scene.on_receive("post-receive", f"mv {scene.remote} {scene.remote}.gone")
    with pytest.raises(UnconfirmedPushError, match="git ls-remote origin"):
        scene.push(1.0)
    assert scene.waits == [1.0]


@pytest.mark.guarantee("M30")
def test_a_remote_that_comes_back_is_read_before_anything_is_sent_again(scene: Scene, tmp_path: Path) -> None:
    scene.on_receive("post-receive", f"mv {scene.remote} {tmp_path}/gone")

    def wait(seconds: float) -> bool:
        (tmp_path / "gone").rename(scene.remote)
        return True

    done = push(scene.repository, "origin", "main", scene.commit, delays=(1.0,), wait=wait)
    assert done == Pushed(commit=scene.commit, pushes=1)


@pytest.mark.guarantee("M30")
def test_a_remote_that_was_never_there_is_not_ready(scene: Scene) -> None:
    scene.remote.rename(scene.remote.with_name("gone"))
    with pytest.raises(NotReadyError, match="does not appear to be a git repository"):
        scene.push(1.0, 2.0)
    assert scene.waits == [1.0, 2.0]


@pytest.mark.guarantee("M30", "K27")
def test_a_stop_cuts_the_tries(scene: Scene) -> None:
    scene.on_receive("pre-receive", "exit 1")
    with pytest.raises(NotReadyError, match="a stop was asked for"):
        scene.push(1.0, 2.0, go_on=False)
    assert scene.waits == [1.0]


@pytest.mark.guarantee("M30")
def test_the_address_that_is_pushed_to_is_the_one_that_is_read(scene: Scene, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "--initial-branch=main", "second.git")
    git(scene.root, "remote", "set-url", "--push", "origin", str(tmp_path / "second.git"))
    scene.push()
    assert git(tmp_path / "second.git", "rev-parse", "main") == scene.commit
    assert scene.shown() == scene.first
    git(scene.root, "remote", "set-url", "--add", "--push", "origin", str(scene.remote))
    scene.push()
    assert scene.shown() == scene.commit


def test_a_missing_remote_is_told(scene: Scene) -> None:
    with pytest.raises(RefusedError, match="no remote upstream"):
        push(scene.repository, "upstream", "main", scene.commit, delays=(), wait=lambda _: True)


class _Locked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def locked() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Locked)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.guarantee("M30", "K25", "K24")
@pytest.mark.parametrize("who", ["", "me:secret@"])
def test_missing_credentials_stop_at_once_without_a_prompt(scene: Scene, locked: int, who: str) -> None:
    git(scene.root, "remote", "set-url", "origin", f"http://{who}127.0.0.1:{locked}/x.git")
    unproxied = Git(scene.root).with_variables(no_proxy="127.0.0.1", GIT_ASKPASS="", SSH_ASKPASS="")
    with pytest.raises(AuthError) as caught:
        push(unproxied, "origin", "main", scene.commit, delays=(1.0,), wait=lambda _: True)
    assert "secret" not in str(caught.value)
