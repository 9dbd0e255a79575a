"""Migrate watches in real repositories, as `longwatch init migrate` makes them, and receipts as the verification leaves them."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from longwatch.cli import beginning
from longwatch.kernel import attestation, digest
from longwatch.kernel.attestation import (
    LEVEL_VERIFIED,
    CheckFacts,
    DecisionFacts,
    Result,
    Summary,
    TestResult,
)
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.digest import Digest
from longwatch.kernel.journal import Note
from longwatch.kernel.line import Succeeded
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.store import Ended, Intended, Store
from longwatch.kernel.watch import Watch
from longwatch.migrate import settings, witness
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import Candidate, Verify
from tests.support import repositories

NONCE = "n" * 32


def longwatch(cwd: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the real program."""
    argv = [sys.executable, "-m", "longwatch.cli.main", *arguments]
    environment = {**os.environ, "COLUMNS": "200", **variables}
    return subprocess.run(
        argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def repository(root: Path) -> Path:
    repositories.new_repository(root)
    repositories.write(root, "conftest.py", "")
    repositories.write(root, "tests/test_a.py", "def test_a():\n    assert True\n")
    repositories.write(root, "src/greet.py", "GREETING = 'hello'\n")
    repositories.commit_all(root, "begin")
    return root


def migrate(root: Path) -> Watch:
    """A new watch, with its own files committed."""
    beginning.migrate(repository(root), adapter="command", argv=("true",))
    repositories.commit_all(root, "watch")
    return Watch(root)


def configure(watch: Watch, old: str, new: str) -> None:
    text = watch.config.read_text()
    assert old in text
    watch.config.write_text(text.replace(old, new))


def verified(
    watch: Watch, *, job: str = "greeting", nonce: str = NONCE, key: SigningKey | None = None
) -> Digest:
    """Do what one verified job leaves: steps, events, two receipts and the state. Returns the decision's receipt."""
    git = Git.open(watch.root)
    commit = git.head() or ""
    candidate = Candidate(
        attempt=f"{job}.1",
        number=1,
        nonce=NONCE,
        baseline=commit,
        commit=commit,
        tree=git.tree_of(commit),
        paths=("src/greet.py",),
        summary="greets",
    )
    store = Store.open(watch.database)
    generation = store.begin_generation(Note("supervisor.began", "Process 1 supervises."))
    step = Verify(id=f"{job}.1.verify.1", job=job, candidate=candidate, card="0" * 64)
    intent = Intended(step.id, msgspec.json.encode(step), "cookie", now())
    store.commit(generation, notes=(Note("step.started", step.title),), changes=(intent,))
    receipt = _sign(watch, git, candidate, nonce, store.snapshot().head.hex(), key)
    done = Job(status=Status.DONE, number=1, receipt=receipt, commit=commit)
    state = MigrateState(head=commit, jobs={job: done})
    ended = Ended(id=step.id, outcome=Succeeded(msgspec.Raw(b"null")), active_s=1.0)
    store.commit(
        generation,
        notes=(Note("job.verified", f"{job}: verified."), Note("job.done", f"{job}: done.")),
        line=msgspec.json.encode(state),
        changes=(ended,),
    )
    store.close()
    return receipt


def _sign(  # noqa: PLR0917 - what a receipt binds
    watch: Watch, git: Git, candidate: Candidate, nonce: str, head: str, key: SigningKey | None
) -> Digest:
    signer = key or SigningKey.load(watch.keys)
    store = ReceiptStore(watch.receipts)
    policy = witness.policy(settings.load(watch.root))
    content = git.show(candidate.commit, "src/greet.py") or b""
    subject = (
        attestation.git_subject(commit=candidate.commit, tree=candidate.tree),
        attestation.artifact("src/greet.py", digest.of_bytes(content)),
    )
    moment = stamp(now().wall_s)
    facts = CheckFacts(
        attempt=candidate.attempt,
        nonce=nonce,
        check="pytest",
        argv=("pytest", "-q"),
        exit_code=0,
        started_at=moment,
        ended_at=moment,
    )
    tests = ("tests/test_a.py::test_a",)
    result = TestResult(
        result=Result.PASSED, configuration=(policy,), passed_tests=tests, failed_tests=(), facts=facts
    )
    cited = sign_test_result(store, signer, subject, result)
    summary = Summary(
        time_verified=moment,
        resource_uri="git:main",
        policy=policy,
        input_attestations=(attestation.citation(cited),),
        verification_result=Result.PASSED,
        verified_levels=(LEVEL_VERIFIED,),
        facts=DecisionFacts(attempt=candidate.attempt, nonce=nonce, chain_head=head),
    )
    return sign_summary(store, signer, subject, summary)


def contents(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, but for SQLite's own `-shm` and `-wal`.

    A reader of a database in WAL mode needs the shared memory file and makes it where it is missing; neither file
    holds anything that was not committed.
    """
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in files
        if not path.name.endswith(("-shm", "-wal"))
    }
