"""The steps that leave the watch's own folder: the commit on the person's branch, and the push."""

import time

from longwatch.kernel import files, retry
from longwatch.kernel.errors import InterruptedWorkError
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.repository import push as pushing
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.publish import (
    CommitRefusedError,
    DirtyPathsError,
    MovedError,
    Published,
    PublishRequest,
    Unclear,
    confirm,
    publish,
)
from longwatch.migrate.steps import Commit, Committed, Held, MigrateStep, Push, Pushed, Refusal, Refused


def commit(work: Work[MigrateStep], step: Commit, place: Place, *, confirm: bool) -> Outcome:
    """Commit a verified candidate, once: after a crash, and where only asked to, git is asked what happened first."""
    git, request = Git.open(place.repository), _request(step, place)
    with work.span("git", step.title), files.locked(place.turn):
        if confirm or step.ask_only:
            found = _confirmed(work, request, git)
            if found is not None:
                return succeeded(found)
        if step.ask_only:
            return succeeded(Held(reason=_ready_to_publish(step)))
        return _commit(work, step, request, git)


def _commit(work: Work[MigrateStep], step: Commit, request: PublishRequest, git: Git) -> Outcome:
    try:
        published = publish(request, git)
    except DirtyPathsError as error:
        return succeeded(Held(reason=f"{step.job} is verified. {error}; then `longwatch resume --accept`."))
    except MovedError as error:
        return succeeded(Refused(kind=Refusal.PUBLISH, reasons=(str(error),), counts=False))
    except CommitRefusedError as error:
        return succeeded(Refused(kind=Refusal.PUBLISH, reasons=(str(error),), failing=("commit",)))
    return succeeded(_told(work, published))


def _confirmed(work: Work[MigrateStep], request: PublishRequest, git: Git) -> Committed | None:
    found = confirm(request, git)
    match found:
        case Published():
            return _told(work, found)
        case Unclear(reason=reason) if _taken_by_hand(request, git):
            work.note("commit.taken", f"{request.attempt}: the person took the change themselves. {reason}")
            return Committed(commit=git.head() or "")
        case Unclear(reason=reason):
            raise InterruptedWorkError(reason)
        case _:
            return None


def _taken_by_hand(request: PublishRequest, git: Git) -> bool:
    """The branch stands at the very candidate, or at a commit of the same tree on the same baseline."""
    head = git.head()
    return head is not None and git.tree_of(head) == git.tree_of(request.candidate)


def _told(work: Work[MigrateStep], published: Published) -> Committed:
    for text in published.notes:
        work.note("commit.note", text)
    return Committed(commit=published.commit)


def _request(step: Commit, place: Place) -> PublishRequest:
    candidate = step.candidate
    return PublishRequest(
        attempt=candidate.attempt,
        branch=place.settings.repository.branch,
        baseline=candidate.baseline,
        candidate=candidate.commit,
        paths=candidate.paths,
        message=f"{step.title_text}\n\n{candidate.summary}",
        receipt=step.receipt,
        dirty_before=candidate.dirty_before,
    )


def _ready_to_publish(step: Commit) -> str:
    short = step.candidate.commit[:12]
    return (
        f"ready_to_publish: {step.job} is verified and publish.commit is off. Paths: {', '.join(step.candidate.paths)}. "
        f"Review `git show {short}`; take it with `git merge --ff-only {short}`, or set publish.commit = true; "
        "then `longwatch resume --accept`."
    )


def push(work: Work[MigrateStep], step: Push, place: Place) -> Outcome:
    """Push the branch and believe only what the remote shows afterwards."""
    settings = place.settings
    delays = tuple(retry.backoff_s(n, settings.backoff) for n in range(1, settings.publish.push_tries))
    with work.span("push", step.title):
        pushed = pushing.push(
            Git.open(place.repository),
            settings.publish.remote,
            settings.repository.branch,
            step.commit,
            delays=delays,
            wait=lambda seconds: _wait(work, seconds),
        )
    return succeeded(Pushed(commit=pushed.commit))


def _wait(work: Work[MigrateStep], seconds: float) -> bool:
    """Wait, and return whether to go on; a pause or stop cuts it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not work.should_stop():
        time.sleep(0.1)
    return not work.should_stop()
