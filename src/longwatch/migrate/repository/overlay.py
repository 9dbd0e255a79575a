"""Commits that mix two: the test files of one with everything else of another. Made of objects, never in a folder."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from longwatch.migrate.repository import harvest
from longwatch.migrate.repository.checkout import index_info
from longwatch.migrate.repository.git import Entry, Git, nul


def overlay(git: Git, base: str, donor: str, paths: Iterable[str], ref: str) -> str:
    """Return a commit with the files of `base`, except that `paths` are as in `donor` (also where they are missing).

    `ref` keeps it alive; whoever asked deletes it.
    """
    wanted = tuple(paths)
    given = {entry.path: entry for entry in git.ls_tree(donor, *wanted)} if wanted else {}
    with TemporaryDirectory(prefix="longwatch-") as scratch:
        view = git.outside(Path(scratch), Path(scratch) / "index")
        view.run("read-tree", base)
        view.run(
            "update-index",
            "-z",
            "--force-remove",
            "--stdin",
            stdin=nul(path for path in wanted if path not in given),
        )
        view.run("update-index", "-z", "--index-info", stdin=index_info(_only(given.values(), wanted)))
        tree = view.line("write-tree")
    return harvest.candidate(git, base, tree, "longwatch: an overlay of test files", ref)


def _only(entries: Iterable[Entry], wanted: tuple[str, ...]) -> Iterable[Entry]:
    return (entry for entry in entries if entry.path in wanted)
