"""Brings a verified candidate onto what landed since its baseline (specification M37). Nothing is believed of the result:
it is a candidate again, and the checks run again on it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.place import Place
from longwatch.migrate.repository import harvest
from longwatch.migrate.repository.git import Git, GitError, names
from longwatch.migrate.repository.scan import printable
from longwatch.migrate.steps import Candidate, Merge, MigrateStep, Refusal, Refused, Worked

OLDEST_GIT = (2, 38)
"""The first that merges two commits without a working tree."""
_SAME = "What it changes landed meanwhile with another job."
_CONFLICT = 1


def perform(work: Work[MigrateStep], step: Merge, place: Place) -> Outcome:
    """Return the merged candidate, or why the job has to be done again."""
    with work.span("git", step.title):
        return succeeded(merge(Git.open(place.repository), step.candidate, step.onto))


def merge(git: Git, candidate: Candidate, onto: str) -> Worked | Refused:
    """Return `candidate` on top of `onto`, a descendant of its baseline; or a refusal that does not count."""
    tree, conflicts = _merged_tree(git, candidate.commit, onto)
    changed = tuple(change.path for change in git.diff_names(onto, tree))
    # Git may guess that another job renamed a file, and would carry the change to a path that nobody owned.
    strange = sorted({*conflicts, *changed} - {*candidate.paths})
    if conflicts or strange:
        named = ", ".join(printable(path) for path in (conflicts or strange)[:20])
        reason = (
            f"another job landed first and changed the same places: {named}; "
            "the work begins again on the branch as it is now"
        )
        return Refused(kind=Refusal.MERGE, reasons=(reason,), counts=False)
    return Worked(candidate=_merged(git, candidate, onto, tree, changed))


def _merged_tree(git: Git, commit: str, onto: str) -> tuple[str, tuple[str, ...]]:
    """Merge without a working tree: no attribute in a file that a worker wrote chooses a merge driver."""
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        view = git.outside(Path(scratch), Path(scratch) / "index")
        arguments = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, commit)
        finished = view.answer(*arguments)
    if finished.code not in {0, _CONFLICT}:
        raise GitError(arguments, finished)
    tree, *conflicts = names(finished.stdout)
    return tree, tuple(conflicts)


def _merged(git: Git, candidate: Candidate, onto: str, tree: str, paths: tuple[str, ...]) -> Candidate:
    name = f"{candidate.attempt}.merged"
    commit = onto
    if paths:
        message = git.message(candidate.commit).rstrip("\n") + "\n"
        commit = harvest.candidate(git, onto, tree, message, f"{harvest.CANDIDATES}{name}")
    return msgspec.structs.replace(
        candidate,
        attempt=name,
        baseline=onto,
        commit=commit,
        tree=tree,
        paths=paths,
        reason=candidate.reason or ("" if paths else _SAME),
        merged=candidate.commit,
    )
