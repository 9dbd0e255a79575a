"""Brings a verified change into the person's repository as one commit of their own, and proves what came of it.

Nothing but the declared paths is touched. Before the first effect a reference below `refs/longwatch/publishing/` says
that this attempt has begun to write; after a crash `confirm` asks git what happened, and publishing again finishes it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import (
    IntegrityError,
    InterruptedWorkError,
    LongwatchError,
    RefusedError,
)
from longwatch.migrate.repository.commit_trace import Traced, traced
from longwatch.migrate.repository.git import GITLINK, Git, GitError, masked, nul
from longwatch.migrate.repository.harvest import obeyed_paths
from longwatch.migrate.repository.landing import (
    Sides,
    Stand,
    committed_paths,
    in_index,
    in_worktree,
    obstacles,
    put_back,
    resulting_tree,
    sides,
    write,
)
from longwatch.migrate.repository.locks import clear_stranded
from longwatch.migrate.repository.scan import parents, printable

PUBLISHING = "refs/longwatch/publishing/"
TRAILER_ATTEMPT = "Longwatch-Attempt"
TRAILER_RECEIPT = "Longwatch-Receipt"
_SAID_BYTES = 2000


class MovedError(RefusedError):
    """The branch, HEAD or an operation in progress is not what the change was verified on."""


class DirtyPathsError(RefusedError):
    """Paths of the change hold, or are blocked by, something of the person's."""


class UndeclaredError(IntegrityError):
    """The candidate changes other paths than were verified, or paths that no commit may bring."""


class CommitRefusedError(LongwatchError):
    """Git or a hook made no commit; the paths are as they were before."""


class OtherTreeError(InterruptedWorkError):
    """A commit was made, and it is not the one that was verified."""


class PublishRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to publish, and on what it was verified."""

    attempt: str
    """Path-safe; names the attempt in the commit's trailer."""
    branch: str
    baseline: str
    candidate: str
    paths: tuple[str, ...]
    """Exactly the paths that differ between baseline and candidate, all verified."""
    message: str
    receipt: str
    """Digest of the receipt."""
    dirty_before: tuple[str, ...] = ()
    """Paths that were dirty when the baseline was remembered."""
    timeout_s: float = 600.0
    """For the commit with all its hooks and signing."""


class Published(msgspec.Struct, frozen=True, kw_only=True, tag="published"):
    """The change is a commit of the branch."""

    commit: str
    notes: tuple[str, ...] = ()
    """What a person should know besides: removed locks, hooks that failed after the commit."""


class NotPublished(msgspec.Struct, frozen=True, kw_only=True, tag="not_published"):
    """There is no commit of this change; publishing (again) is safe."""

    half_written: tuple[str, ...] = ()
    """Paths that an interrupted try has already written."""
    notes: tuple[str, ...] = ()


class Unclear(msgspec.Struct, frozen=True, kw_only=True, tag="unclear"):
    """A person has to look."""

    reason: str


Confirmation = Published | NotPublished | Unclear


def publish(request: PublishRequest, git: Git) -> Published:
    """Commit exactly the paths of the candidate on the branch, with the person's hooks, signing and name, once.

    A try that failed after its commit has published: the next one finds that commit and makes no other.

    Raises:
        UndeclaredError: the candidate changes other paths than `request.paths`, or paths that git itself obeys.
        MovedError: another branch or commit is checked out, or a merge or rebase is under way.
        DirtyPathsError: a path is or was dirty, or something of the person's stands in its way.
        NotReadyError: another git process holds a lock.
        CommitRefusedError: a hook refused or hung, or git failed; nothing was committed and the paths are put back.
        OtherTreeError: a commit was made but is not the verified one.
    """
    repository = _careful(git)
    notes = _cleared(repository, request)
    tip = repository.tip(request.branch)
    before = _ours_after(repository, request, tip) if tip is not None else None
    if before is not None:
        return _finished(repository, request, before, notes)
    both = _checked_paths(repository, request)
    _check_position(repository, request)
    _check_clean(repository, request, both)
    repository.update_ref(_mark(request), request.candidate)
    try:
        _bring(repository, request, both)
        trace = _commit(repository, request)
    except GitError as error:
        _undo(repository, request, both)
        raise CommitRefusedError(f"nothing was committed and the paths are as before: {error}") from error
    return _settled(repository, request, both, trace, notes)


def confirm(request: PublishRequest, git: Git) -> Confirmation:
    """Ask git what became of a publication that may have been cut at any point.

    Removes locks that the cut left, and changes nothing else. Raises `NotReadyError` if a live process holds a lock.
    """
    repository = _careful(git)
    notes = _cleared(repository, request)
    tip = repository.tip(request.branch)
    if tip is None:
        return Unclear(reason=f"branch {request.branch} is gone: look for it with `git reflog`")
    if tip == request.baseline:
        return _unpublished(repository, request, notes)
    ours = _ours_after(repository, request, tip)
    if ours is None:
        return Unclear(
            reason=f"branch {request.branch} is at {tip}, and the commit after {request.baseline} is not this attempt's:"
            " look at `git log`, then resume with --accept"
        )
    return _finished(repository, request, ours, notes)


def withdraw(request: PublishRequest, git: Git) -> tuple[str, ...]:
    """After `NotPublished`: put half-written paths back to the baseline instead of publishing again.

    Content that is not ours is kept as a blob; the answer names the blobs.
    """
    repository = _careful(git)
    _cleared(repository, request)
    _check_position(repository, request)
    if not repository.has(_mark(request)):
        return ()
    return _undo(repository, request, _checked_paths(repository, request))


def message(request: PublishRequest) -> str:
    """The commit's message with its trailers. Letters that are not text (a worker may have written them) are replaced."""
    said = "".join(
        letter if letter in "\n\t" or letter.isprintable() else "\ufffd" for letter in request.message
    )
    trailers = f"{TRAILER_ATTEMPT}: {request.attempt}\n{TRAILER_RECEIPT}: {request.receipt}\n"
    return f"{said.strip()}\n\n{trailers}"


def _careful(git: Git) -> Git:
    """The person's repository, durable, and without housekeeping that goes on in the background."""
    return git.with_config("core.fsync=all", "gc.auto=0", "maintenance.auto=false")


def _mark(request: PublishRequest) -> str:
    return f"{PUBLISHING}{request.attempt}"


def _cleared(git: Git, request: PublishRequest) -> tuple[str, ...]:
    removed = clear_stranded(git, (f"refs/heads/{request.branch}", _mark(request)))
    return tuple(f"removed {name}, which a killed git had left behind" for name in removed)


def _checked_paths(git: Git, request: PublishRequest) -> Sides:
    """Raise unless the request names exactly what the candidate changes, on the baseline, and nothing dangerous."""
    changes = git.diff_names(request.baseline, request.candidate)
    differing = {change.path for change in changes} ^ set(request.paths)
    if differing or not changes:
        named = _listed(differing) or "nothing changes"
        raise UndeclaredError(f"the candidate is not what was verified: {named}. Verify it again")
    if git.parents(request.candidate) != (request.baseline,):
        raise UndeclaredError(
            f"candidate {request.candidate} does not stand on {request.baseline}. Verify it again"
        )
    reasons = obeyed_paths(git, request.paths)
    reasons |= {change.path: "it is a submodule" for change in changes if change.mode == GITLINK}
    if reasons:
        raise UndeclaredError(f"paths that no attempt may change: {_reasoned(reasons)}. Change them by hand")
    return sides(git, request.baseline, request.candidate, request.paths)


def _check_position(git: Git, request: PublishRequest) -> None:
    branch, head, operation = git.branch(), git.head(), git.operation()
    if operation is not None:
        raise MovedError(f"a {operation} is under way in {git.root}: finish or abort it, then resume")
    if branch != request.branch:
        where = branch or "a detached HEAD"
        raise MovedError(
            f"{where} is checked out in {git.root}, not {request.branch}: switch back, then resume"
        )
    if head != request.baseline:
        raise MovedError(f"{request.branch} is at {head}, but the change was verified on {request.baseline}")


def _check_clean(git: Git, request: PublishRequest, both: Sides) -> None:
    """Raise if a path is or was the person's. What an interrupted try of this attempt has written is ours."""
    reasons = obstacles(git, both)
    dirty = frozenset(request.dirty_before)
    was = (path for path in both.paths if not dirty.isdisjoint((path, *parents(path))))
    reasons |= dict.fromkeys(was, "it was dirty before the work began")
    accepted = {Stand.BEFORE}
    if git.has(_mark(request)):
        accepted |= {Stand.AFTER, Stand.HALF}
    staged, standing = in_index(git, both), in_worktree(git, both)
    reasons |= {path: "it is staged" for path, stand in staged.items() if stand not in accepted}
    reasons |= {
        path: "it differs from the baseline" for path, stand in standing.items() if stand not in accepted
    }
    if reasons:
        raise DirtyPathsError(
            f"not published, your own work is there: {_reasoned(reasons)}. Commit or move it"
        )


def _bring(git: Git, request: PublishRequest, both: Sides) -> None:
    """Write the paths, and make sure that a commit of them will have the verified tree."""
    write(git, both, request.candidate)
    tree, wanted = resulting_tree(git, request.baseline, both.paths), git.tree_of(request.candidate)
    if tree != wanted:
        differing = _listed(change.path for change in git.diff_names(wanted, tree))
        _undo(git, request, both)
        raise CommitRefusedError(
            f"with your git configuration a commit would not hold what was verified: {differing}. Look at"
            " .gitattributes, core.autocrlf and core.fileMode; nothing was committed and the paths are as before"
        )


def _commit(git: Git, request: PublishRequest) -> Traced:
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        text, trace = Path(scratch) / "message", Path(scratch) / "trace"
        files.replace(text, message(request).encode())
        finished = git.answer(
            "commit", "--only", "--quiet", f"--file={text}", "--cleanup=whitespace", "--no-status",
            "--pathspec-from-file=-", "--pathspec-file-nul",
            stdin=nul(committed_paths(git, request.paths)),
            timeout_s=request.timeout_s,
            variables={"GIT_TRACE2_EVENT": str(trace)},
        )  # fmt: skip
        return traced(trace, finished)


def _settled(
    git: Git, request: PublishRequest, both: Sides, trace: Traced, notes: tuple[str, ...]
) -> Published:
    """Tell from the branch, not from what git said, what came of the commit."""
    notes += _cleared(git, request)
    tip = git.tip(request.branch)
    said = masked(trace.finished.stderr[-_SAID_BYTES:].decode("utf-8", "replace").strip())
    if tip == request.baseline:
        kept = _undo(git, request, both)
        raise CommitRefusedError(
            f"nothing was committed and the paths are as before: {trace.blame}."
            f"{' Other content was kept: ' + '; '.join(kept) + '.' if kept else ''} Git said: {said}"
        )
    commit = _first_after(git, request, tip) if tip is not None else None
    if commit is None or not _is_ours(git, request, commit, trailer=False):
        raise OtherTreeError(
            f"{request.branch} is at {tip}, which is not the verified change on {request.baseline}:"
            f" {_listed(trace.hooks) or 'somebody'} changed it. Look at `git show`, then resume with --accept"
        )
    if not trace.finished.ok:
        notes += (f"after the commit was made: {trace.blame}. Git said: {said}",)
    return _finished(git, request, commit, notes)


def _finished(git: Git, request: PublishRequest, commit: str, notes: tuple[str, ...]) -> Published:
    git.delete_ref(_mark(request))
    return Published(commit=commit, notes=notes)


def _undo(git: Git, request: PublishRequest, both: Sides) -> tuple[str, ...]:
    _cleared(git, request)
    kept = put_back(git, both, request.baseline)
    git.delete_ref(_mark(request))
    return kept


def _unpublished(git: Git, request: PublishRequest, notes: tuple[str, ...]) -> NotPublished | Unclear:
    if not git.has(_mark(request)):
        return NotPublished(notes=notes)
    if git.branch() != request.branch:
        return Unclear(
            reason=f"publishing on {request.branch} was cut and another branch is checked out: switch back"
        )
    both = sides(git, request.baseline, request.candidate, request.paths)
    staged, standing = in_index(git, both), in_worktree(git, both)
    foreign = {path for path in both.paths if Stand.FOREIGN in {staged[path], standing[path]}}
    if foreign:
        return Unclear(
            reason=f"publishing was cut, and these hold neither the old nor the new content: {_listed(foreign)}."
            " Restore them with `git restore --staged --worktree`, then resume with --accept"
        )
    written = (path for path in both.paths if {staged[path], standing[path]} != {Stand.BEFORE})
    return NotPublished(half_written=tuple(written), notes=notes)


def _ours_after(git: Git, request: PublishRequest, tip: str) -> str | None:
    """The commit of the branch that is the verified change and names this attempt, if there is one."""
    first = _first_after(git, request, tip) if tip != request.baseline else None
    return first if first is not None and _is_ours(git, request, first, trailer=True) else None


def _first_after(git: Git, request: PublishRequest, tip: str) -> str | None:
    """The commit that came right after the baseline on the branch; `None` if the branch left the baseline."""
    if not git.is_ancestor(request.baseline, tip):
        return None
    between = git.run("rev-list", "--first-parent", f"{request.baseline}..{tip}").decode().split()
    return between[-1]


def _is_ours(git: Git, request: PublishRequest, commit: str, *, trailer: bool) -> bool:
    """True if the commit is the verified change on the baseline (and, with `trailer`, says that it is this attempt's)."""
    marked = f"{TRAILER_ATTEMPT}: {request.attempt}" in git.message(commit).splitlines()
    same = git.tree_of(commit) == git.tree_of(request.candidate)
    return same and git.parents(commit) == (request.baseline,) and (marked or not trailer)


def _listed(paths: Iterable[str]) -> str:
    named = sorted(printable(path) for path in paths)
    return ", ".join(named[:20]) + (f" and {len(named) - 20} more" if len(named) > 20 else "")


def _reasoned(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{printable(path)} ({reason})" for path, reason in sorted(reasons.items())[:20])
