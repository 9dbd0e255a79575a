"""What a receipt says, as types: in-toto Statements v1 with a test-result or a verification summary (K31). Pure.

Sources: in-toto attestation framework v1 (Statement, ResourceDescriptor), its test-result predicate v0.1, and the SLSA
verification summary v1. What those formats have no field for stands under keys that are URIs of ours, as they ask.
"""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError

STATEMENT_TYPE: Literal["https://in-toto.io/Statement/v1"] = "https://in-toto.io/Statement/v1"
TEST_RESULT_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
SUMMARY_TYPE = "https://slsa.dev/verification_summary/v1"
CHECK_FACTS = "https://longwatch.invalid/check/v1"
DECISION_FACTS = "https://longwatch.invalid/decision/v1"
VERIFIER = "https://longwatch.invalid/verifier/v1"
LEVEL_VERIFIED = "LONGWATCH_VERIFIED"
GIT_SUBJECT = "git"

Sha256 = Annotated[Digest, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
GitId = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{40}|[0-9a-f]{64})\Z")]


class Result(StrEnum):
    """How a check or a decision came out."""

    PASSED = "PASSED"
    FAILED = "FAILED"


class DigestSet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Digests of one thing, by algorithm."""

    sha256: Sha256 | None = None
    git_commit: GitId | None = msgspec.field(name="gitCommit", default=None)
    git_tree: GitId | None = msgspec.field(name="gitTree", default=None)


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A ResourceDescriptor: something, named or addressed, with its digests."""

    digest: DigestSet
    name: str = ""
    uri: str = ""


class CheckFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What we add to a test result: which attempt it belongs to and how the check ran."""

    attempt: str
    nonce: str
    """Random, given to this attempt alone: a receipt of another attempt cannot have it."""
    check: str
    argv: tuple[str, ...]
    exit_code: int | None
    started_at: str
    ended_at: str
    log: Sha256 | None = None
    skipped_count: int = 0
    evidence: tuple[Descriptor, ...] = ()
    """Files that the check left, by digest; one with a `uri` is kept in the watch, at that path."""


class TestResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The predicate of one check. A check that runs no tests of its own counts as one test with its own name."""

    __test__ = False

    result: Result
    configuration: tuple[Descriptor, ...]
    """What decided the outcome besides the subjects: the policy, the check's inputs."""
    passed_tests: tuple[str, ...]
    failed_tests: tuple[str, ...]
    facts: CheckFacts = msgspec.field(name=CHECK_FACTS)


class Verifier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who decided."""

    id: str = VERIFIER


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What we add to a summary: the attempt, and the head of the event log's hash chain when it was decided."""

    attempt: str
    nonce: str
    chain_head: str


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The predicate of one decision, which cites the receipts it rests on."""

    time_verified: str
    """UTC, RFC 3339."""
    resource_uri: str
    policy: Descriptor
    input_attestations: tuple[Descriptor, ...]
    verification_result: Result
    verified_levels: tuple[str, ...]
    facts: DecisionFacts = msgspec.field(name=DECISION_FACTS)
    verifier: Verifier = Verifier()


class _Statement(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="predicateType", forbid_unknown_fields=True
):
    subject: tuple[Descriptor, ...]
    type: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(name="_type")


class TestStatement(_Statement, frozen=True, kw_only=True, tag=TEST_RESULT_TYPE):
    """One check on these subjects."""

    __test__ = False

    predicate: TestResult


class SummaryStatement(_Statement, frozen=True, kw_only=True, tag=SUMMARY_TYPE):
    """One decision about these subjects."""

    predicate: Summary


Statement = TestStatement | SummaryStatement
_decoder = msgspec.json.Decoder(Statement)


def git_subject(*, commit: str | None, tree: str) -> Descriptor:
    """A git tree, and the commit that has it where there is one."""
    return Descriptor(name=GIT_SUBJECT, digest=DigestSet(git_commit=commit, git_tree=tree))


def artifact(path: str, sha256: Digest) -> Descriptor:
    """A file, by its path in the repository or the watch."""
    return Descriptor(name=path, digest=DigestSet(sha256=sha256))


def citation(receipt: Digest) -> Descriptor:
    """A receipt, by the digest that names it."""
    return Descriptor(uri=f"receipts/{receipt}.json", digest=DigestSet(sha256=receipt))


def decode(payload: bytes) -> Statement:
    """Read a statement, strictly.

    Raises:
        msgspec.DecodeError: it is not JSON, or not one of our two kinds of statement.
    """
    return _decoder.decode(payload)


def emptiness(statement: Statement) -> str | None:
    """Pure: why the statement proves nothing by itself, or `None`. Zero tests run is never "passed" (K31)."""
    if not statement.subject or DigestSet() in {one.digest for one in statement.subject}:
        return "it has no subject, or one without a digest"
    if len({one.name for one in statement.subject}) < len(statement.subject):
        return "two of its subjects have the same name"
    if isinstance(statement, SummaryStatement):
        return _empty_summary(statement.predicate)
    return _empty_test_result(statement.predicate)


def refuse_empty(statement: Statement) -> None:
    """Return if the statement proves something.

    Raises:
        IntegrityError: it does not, and so must not be signed.
    """
    reason = emptiness(statement)
    if reason:
        raise IntegrityError(f"a statement about {_names(statement)} was not signed: {reason}")


def _empty_test_result(predicate: TestResult) -> str | None:
    if predicate.result is Result.FAILED:
        return None
    if not predicate.passed_tests:
        return f"check {predicate.facts.check!r} would have passed with zero tests run"
    if predicate.failed_tests:
        return f"check {predicate.facts.check!r} would have passed with {len(predicate.failed_tests)} failed tests"
    if predicate.facts.exit_code != 0:
        return f"check {predicate.facts.check!r} would have passed with exit code {predicate.facts.exit_code}"
    return None


def _empty_summary(predicate: Summary) -> str | None:
    if predicate.verification_result is Result.FAILED:
        return None
    if not predicate.input_attestations:
        return "the decision passed without citing a receipt"
    if LEVEL_VERIFIED not in predicate.verified_levels:
        return f"the decision passed without the level {LEVEL_VERIFIED}"
    return None


def _names(statement: Statement) -> str:
    return ", ".join(repr(one.name) for one in statement.subject) or "nothing"
