"""A small world in which receipts hold, for adversaries to change one thing in."""

import hashlib
from pathlib import Path

from longwatch.kernel import attestation
from longwatch.kernel.attestation import (
    LEVEL_VERIFIED,
    CheckFacts,
    DecisionFacts,
    Descriptor,
    DigestSet,
    Result,
    Summary,
    TestResult,
)
from longwatch.kernel.digest import Digest
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.verification import World

COMMIT, TREE = "c" * 40, "d" * 40
ARTIFACT = Digest(hashlib.sha256(b"artifact").hexdigest())
POLICY = Digest(hashlib.sha256(b"policy").hexdigest())
POLICY_URI = "https://longwatch.invalid/policy/checks"
HEAD = "e" * 64
SUBJECT = (attestation.git_subject(commit=None, tree=TREE), attestation.artifact("out.bin", ARTIFACT))
DECIDED = (attestation.git_subject(commit=COMMIT, tree=TREE), attestation.artifact("out.bin", ARTIFACT))


class Repository:
    """Answers from memory."""

    def __init__(self) -> None:
        self.trees: dict[str, str] = {COMMIT: TREE}
        self.blobs: dict[tuple[str | None, str], Digest] = {
            (COMMIT, "out.bin"): ARTIFACT,
            (None, "out.bin"): ARTIFACT,
        }

    def git_tree_of(self, commit: str) -> str | None:
        return self.trees.get(commit)

    def blob_sha256(self, commit: str | None, path: str) -> Digest | None:
        return self.blobs.get((commit, path))


def check_result(
    *,
    result: Result = Result.PASSED,
    passed: tuple[str, ...] = ("tests/a", "tests/b"),
    failed: tuple[str, ...] = (),
    attempt: str = "attempt-1",
    nonce: str = "nonce-1",
    exit_code: int = 0,
) -> TestResult:
    return TestResult(
        result=result,
        configuration=(),
        passed_tests=passed,
        failed_tests=failed,
        facts=CheckFacts(
            attempt=attempt,
            nonce=nonce,
            check="unit",
            argv=("pytest", "-q"),
            exit_code=exit_code,
            started_at="2026-11-30T10:00:00.000000Z",
            ended_at="2026-11-30T10:00:01.000000Z",
            log=ARTIFACT,
        ),
    )


def summary(
    *cited: Digest,
    result: Result = Result.PASSED,
    attempt: str = "attempt-1",
    nonce: str = "nonce-1",
    head: str = HEAD,
    levels: tuple[str, ...] = (LEVEL_VERIFIED,),
) -> Summary:
    return Summary(
        time_verified="2026-11-30T10:00:02.000000Z",
        resource_uri="git+file:repository",
        policy=Descriptor(uri=POLICY_URI, digest=DigestSet(sha256=POLICY)),
        input_attestations=tuple(map(attestation.citation, cited)),
        verification_result=result,
        verified_levels=levels,
        facts=DecisionFacts(attempt=attempt, nonce=nonce, chain_head=head),
    )


class Watch:
    """A key, a store with one decision that cites one check, and the world in which both hold."""

    def __init__(self, folder: Path) -> None:
        self.key = SigningKey.create(folder / "key")
        self.store = ReceiptStore(folder / "receipts")
        self.repository = Repository()
        self.check = sign_test_result(self.store, self.key, SUBJECT, check_result())
        self.decision = sign_summary(self.store, self.key, DECIDED, summary(self.check))

    def world(self) -> World:
        return World(
            trusted=frozenset({self.key.public}),
            subjects=self.repository,
            policies={POLICY_URI: POLICY},
            nonces={"attempt-1": "nonce-1", "attempt-2": "nonce-2"},
            heads=frozenset({HEAD}),
        )
