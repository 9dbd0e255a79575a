"""Pushes a commit and believes the remote alone: success is what its branch shows, not what push printed (M30)."""

import re
from collections.abc import Callable, Sequence

import msgspec

from longwatch.kernel.errors import (
    AuthError,
    InterruptedWorkError,
    LongwatchError,
    NotReadyError,
    RefusedError,
)
from longwatch.migrate.repository.git import Git, GitError, masked
from longwatch.migrate.repository.git_process import Finished

TIMEOUT_S = 600.0
_READ_TIMEOUT_S = 120.0
_SAID_BYTES = 2000
# What git, ssh and HTTP say when credentials are missing or refused (git 2.39, OpenSSH 9).
_CREDENTIALS = re.compile(
    r"Authentication failed|could not read (Username|Password)|Permission denied \(|terminal prompts disabled"
    r"|Host key verification failed|The requested URL returned error: (401|403)"
)


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """The remote's branch holds the commit."""

    commit: str
    pushes: int
    """How often push was run; 0 if the commit was there already."""


class RemoteMovedError(RefusedError):
    """The remote's branch holds commits that the local one does not: a person has to bring them together."""


class PushRefusedError(LongwatchError):
    """The remote answers, and after all tries it does not show the commit."""


class UnconfirmedPushError(InterruptedWorkError):
    """A push was sent, and what the remote holds now could not be told."""


class _Course(msgspec.Struct):
    """How the tries went so far."""

    pushes: int = 0
    unread: bool = False
    """A push was sent and the remote has not been read since."""
    trouble: str = ""
    """What git said last."""


class _Target(msgspec.Struct, frozen=True, kw_only=True):
    git: Git
    remote: str
    addresses: tuple[str, ...]
    branch: str
    commit: str

    @property
    def name(self) -> str:
        return f"{self.branch} on {self.remote}"


def push(
    git: Git,
    remote: str,
    branch: str,
    commit: str,
    *,
    delays: Sequence[float],
    wait: Callable[[float], bool],
    timeout_s: float = TIMEOUT_S,
) -> Pushed:
    """Push `commit` to the remote's `branch`, never by force: once, and once more after each of `delays` (seconds).

    `wait(seconds)` returns `False` if a stop was asked for meanwhile. The remote is read before and after each push.

    Raises:
        RemoteMovedError: the branch there has other commits; this is not tried again.
        AuthError: credentials are missing or refused, before anything was sent.
        PushRefusedError: the remote was read and does not show the commit (a hook there, missing rights).
        UnconfirmedPushError: a push was sent and the remote cannot be read: needs reconcile.
        NotReadyError: the remote could not be reached before anything was sent, or a stop was asked for.
    """
    target = _Target(git=git, remote=remote, addresses=_addresses(git, remote), branch=branch, commit=commit)
    course = _Course()
    for delay_s in (0.0, *delays):
        if delay_s and not wait(delay_s):
            raise _failed(target, course, stopped=True)
        if _try(target, course, timeout_s):
            return Pushed(commit=commit, pushes=course.pushes)
    raise _failed(target, course, stopped=False)


def _try(target: _Target, course: _Course, timeout_s: float) -> bool:
    """One round: read, push if the commit is not there, read again. True if the remote shows the commit."""
    shown = _shows(target, course)
    if shown is None or shown:
        return bool(shown)
    said = target.git.answer(
        "push", "--porcelain", "--no-force", target.remote, f"{target.commit}:refs/heads/{target.branch}",
        timeout_s=timeout_s,
    )  # fmt: skip
    course.pushes += 1
    course.unread = True
    course.trouble = _words(said) if not said.ok else "push said that it had worked"
    return bool(_shows(target, course))


def _shows(target: _Target, course: _Course) -> bool | None:
    """True if every address shows the commit on the branch, `None` if one cannot be read."""
    shown = []
    for address in target.addresses:
        answer = target.git.answer(
            "ls-remote", address, f"refs/heads/{target.branch}", timeout_s=_READ_TIMEOUT_S
        )
        if not answer.ok:
            course.trouble = _words(answer)
            _refuse_credentials(target, course)
            return None
        tip = answer.stdout.decode().partition("\t")[0] or None
        shown.append(_holds(target, course, tip))
    course.unread = False
    return all(shown)


def _holds(target: _Target, course: _Course, tip: str | None) -> bool:
    """True if the branch's tip is the commit or stands on it. Raises if the branch went another way."""
    if tip is None or tip == target.commit:
        return tip is not None
    if target.git.has(tip):
        if target.git.is_ancestor(target.commit, tip):
            return True
        if target.git.is_ancestor(tip, target.commit):
            return False
    elif course.pushes:
        raise UnconfirmedPushError(
            f"{target.name} is at {tip}, which is not known here and may stand on {target.commit} or not."
            f" Look with `git fetch {target.remote}`, then resume with --accept"
        )
    raise RemoteMovedError(
        f"{target.name} is at {tip}, which {target.commit} does not stand on: fetch it and bring both together"
    )


def _refuse_credentials(target: _Target, course: _Course) -> None:
    if not course.pushes and _CREDENTIALS.search(course.trouble):
        raise AuthError(
            f"{target.remote} refuses: {course.trouble}. Set up a credential helper or an ssh key that asks nothing"
        )


def _addresses(git: Git, remote: str) -> tuple[str, ...]:
    """Where push sends to; the remote's name itself where that is also where it is read from."""
    try:
        send = git.line("remote", "get-url", "--push", "--all", remote).split("\n")
        read = git.line("remote", "get-url", remote)
    except GitError as error:
        raise RefusedError(
            f"{git.root} has no remote {remote}: add it, or set [publish] remote. {error}"
        ) from error
    return (remote,) if send == [read] else tuple(send)


def _failed(target: _Target, course: _Course, *, stopped: bool) -> LongwatchError:
    why = "a stop was asked for" if stopped else "all tries are used up"
    if course.unread:
        return UnconfirmedPushError(
            f"nobody knows whether {target.commit} is {target.name}: it was pushed {course.pushes} times, and then the"
            f" remote could not be read; {why}. Look with `git ls-remote {target.remote}`. Git said: {course.trouble}"
        )
    if stopped or not course.pushes:
        return NotReadyError(f"{target.commit} is not {target.name}: {why}. Git said: {course.trouble}")
    return PushRefusedError(
        f"{target.name} does not show {target.commit} after {course.pushes} pushes: {why}. Git said: {course.trouble}"
    )


def _words(finished: Finished) -> str:
    said = masked(finished.stderr[-_SAID_BYTES:].decode("utf-8", "replace").strip())
    return said or f"git {finished.ending}"
