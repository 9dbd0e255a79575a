"""A verified candidate is brought onto what landed meanwhile. Real git."""

from pathlib import Path

import pytest
from tests.support.repositories import commit_all, git, sample, write

from longwatch.migrate.repository import harvest
from longwatch.migrate.repository.git import Git
from longwatch.migrate.repository.merging import merge
from longwatch.migrate.steps import Candidate, Refusal, Refused, Worked


def candidate_of(repository: Git, baseline: str, **changed: str) -> Candidate:
    """A candidate that gives these files this content; the working tree is put back."""
    for path, content in changed.items():
        write(repository.root, path.replace("__", "/"), content)
    git(repository.root, "add", "--all")
    tree = git(repository.root, "write-tree")
    git(repository.root, "reset", "--quiet", "--hard", baseline)
    paths = tuple(change.path for change in repository.diff_names(baseline, tree))
    commit = baseline
    if paths:
        commit = harvest.candidate(repository, baseline, tree, "Do it", f"{harvest.CANDIDATES}job.1")
    return Candidate(
        attempt="job.1",
        number=1,
        nonce="n",
        baseline=baseline,
        commit=commit,
        tree=tree,
        paths=paths,
        summary="s",
    )


def landed(repository: Git, **changed: str) -> str:
    for path, content in changed.items():
        write(repository.root, path.replace("__", "/"), content)
    return commit_all(repository.root, "another job")


@pytest.mark.guarantee("M37")
def test_a_change_elsewhere_is_taken_along_and_nothing_of_the_persons_is_touched(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    found = candidate_of(repository, baseline, **{"src__a.py": "a = 2\n", "new.py": "n = 1\n"})
    onto = landed(repository, **{"src__b.py": "b = 2\n"})
    write(repository.root, "README.md", "the person works on\n")
    before = git(repository.root, "status", "--porcelain")
    merged = merge(repository, found, onto)
    assert isinstance(merged, Worked)
    one = merged.candidate
    assert (one.attempt, one.baseline, one.merged) == ("job.1.merged", onto, found.commit)
    assert sorted(one.paths) == ["new.py", "src/a.py"]
    assert repository.parents(one.commit) == (onto,)
    assert repository.show(one.commit, "src/b.py") == b"b = 2\n"
    assert repository.show(one.commit, "src/a.py") == b"a = 2\n"
    assert repository.message(one.commit).strip() == "Do it"
    assert git(repository.root, "rev-parse", f"{harvest.CANDIDATES}job.1.merged") == one.commit
    assert merge(repository, found, onto) == merged, "a repeat after a crash gives the same commit"
    assert git(repository.root, "status", "--porcelain") == before
    assert git(repository.root, "rev-parse", "HEAD") == onto


@pytest.mark.guarantee("M37")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"src__a.py": "a = 2\n"}, {"src__a.py": "a = 3\n"}),
        ({"new.py": "one\n"}, {"new.py": "other\n"}),
    ],
)
def test_the_same_lines_are_a_conflict_that_names_the_file(
    tmp_path: Path, ours: dict[str, str], theirs: dict[str, str]
) -> None:
    repository, baseline = sample(tmp_path / "r")
    found = candidate_of(repository, baseline, **ours)
    refused = merge(repository, found, landed(repository, **theirs))
    assert isinstance(refused, Refused)
    assert (refused.kind, refused.counts) == (Refusal.MERGE, False)
    assert next(iter(ours)).replace("__", "/") in refused.reasons[0]


@pytest.mark.guarantee("M37")
def test_a_change_to_a_file_that_moved_is_a_conflict_and_no_other_path_is_written(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    found = candidate_of(repository, baseline, **{"src__deep__c.py": "c = 1\nd = 1\n"})
    git(repository.root, "mv", "src/deep/c.py", "src/moved.py")
    refused = merge(repository, found, commit_all(repository.root))
    assert isinstance(refused, Refused)
    assert "src/moved.py" in refused.reasons[0]


@pytest.mark.guarantee("M37", "M25")
def test_what_landed_already_is_no_change_and_says_so(tmp_path: Path) -> None:
    repository, baseline = sample(tmp_path / "r")
    found = candidate_of(repository, baseline, **{"src__a.py": "a = 2\n"})
    onto = landed(repository, **{"src__a.py": "a = 2\n"})
    merged = merge(repository, found, onto)
    assert isinstance(merged, Worked)
    assert (merged.candidate.commit, merged.candidate.paths) == (onto, ())
    assert "landed meanwhile" in merged.candidate.reason
    idle = candidate_of(repository, baseline)
    unchanged = merge(repository, idle, onto)
    assert isinstance(unchanged, Worked)
    assert (unchanged.candidate.commit, unchanged.candidate.baseline) == (onto, onto)


@pytest.mark.guarantee("M37", "M29")
def test_no_merge_driver_runs(tmp_path: Path) -> None:
    """The person's own driver is a program, and an attribute that a worker wrote would choose for which files it runs."""
    repository, baseline = sample(tmp_path / "r")
    flag = tmp_path / "ran"
    git(repository.root, "config", "merge.mine.driver", f"touch {flag}")
    found = candidate_of(repository, baseline, **{"src__a.py": "a = 2\n"})
    onto = landed(repository, **{"src__a.py": "a = 3\n", ".gitattributes": "* merge=mine\n"})
    assert isinstance(merge(repository, found, onto), Refused)
    assert not flag.exists()
