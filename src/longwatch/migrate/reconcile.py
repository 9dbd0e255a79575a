"""The part of `reconcile` that only a migrate watch has: git since the last verified point, and salvaged work (K14)."""

from collections.abc import Iterator

from longwatch.kernel.finding import Section
from longwatch.kernel.watch import Watch
from longwatch.migrate.place import Place
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.state import Job, MigrateState, Status

_SHOWN = 50
_UNPUBLISHED = frozenset({Status.CANDIDATE, Status.VERIFIED, Status.COMMITTED})


def since_verified(watch: Watch, settings: MigrateSettings, state: MigrateState) -> tuple[Section, ...]:
    """Return what changed, what is unpublished, and what a cut attempt left behind. Changes nothing.

    Raises:
        ConfigError: there is no git repository.
        GitError: git could not be asked.
    """
    place = Place(watch, settings)
    git = Git.open(place.repository)
    sections = (
        Section(title="branch", lines=tuple(_branch(git, state))),
        Section(title="not committed in your working tree", lines=bounded(git.dirty_paths())),
        Section(title="jobs in hand", lines=tuple(_in_hand(state))),
        Section(title="partial work that was kept", lines=tuple(_salvaged(place))),
    )
    return (*sections, *_unsettled(state))


def bounded(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Pure: return the first lines, and how many more there are."""
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], f"... and {more} more") if more > 0 else lines


def _branch(git: Git, state: MigrateState) -> Iterator[str]:
    head, known = git.head() or "", state.head
    if not known:
        yield f"HEAD is {head[:12] or 'missing'}; the watch has adopted no baseline yet"
    elif head == known:
        yield f"HEAD is {head[:12]}, as the watch left it"
    elif not head or not git.has(f"{known}^{{commit}}"):
        yield f"HEAD is {head[:12] or 'missing'}; the commit that the watch knows, {known[:12]}, is gone"
    else:
        yield f"HEAD moved from {known[:12]} to {head[:12]} outside the watch; changed since:"
        changed = tuple(f"{change.kind} {change.path}" for change in git.diff_names(known, head))
        yield from bounded(changed)
    operation = git.operation()
    if operation:
        yield f"a {operation} is in progress"


def _in_hand(state: MigrateState) -> Iterator[str]:
    for name, job in state.jobs.items():
        if job.status in _UNPUBLISHED and job.candidate is not None:
            paths = ", ".join(bounded(job.candidate.paths))
            yield f"{name}: {job.status}, candidate {job.candidate.commit[:12]}, paths {paths or '(no change)'}"
        elif job.status is Status.BLOCKED:
            yield f"{name}: blocked. {_first_line(job)}"


def _first_line(job: Job) -> str:
    return next(iter(job.failure.splitlines()), "")


def _salvaged(place: Place) -> Iterator[str]:
    """Name the newest patch first: it is the one that a person may want to take up."""
    patches = place.attempts.glob("*/salvage.patch") if place.attempts.is_dir() else iter(())
    newest_first = sorted(patches, key=lambda patch: patch.stat().st_mtime_ns, reverse=True)
    for number, patch in enumerate(newest_first[:3]):
        yield f"{patch}{' (the newest; `git apply` takes it on its baseline)' if number == 0 else ''}"


def _unsettled(state: MigrateState) -> tuple[Section, ...]:
    if not state.unsettled:
        return ()
    return (Section(title="why a person has to look", lines=tuple(state.unsettled.splitlines())),)
