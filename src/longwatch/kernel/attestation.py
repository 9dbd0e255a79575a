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
    """Of the bytes of a file or a receipt."""
    git_commit: GitId | None = msgspec.field(name="gitCommit", default=None)
    """The id of a commit."""
    git_tree: GitId | None = msgspec.field(name="gitTree", default=None)
    """The id of its tree."""


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A ResourceDescriptor: something, named or addressed, with its digests."""

    digest: DigestSet
    """What it was, exactly."""
    name: str = ""
    """What it is called: `git`, or the path of a file."""
    uri: str = ""
    """Where it lies: a receipt below `.longwatch/`, kept evidence below the watch. That of the policy names its rules."""


class CheckFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What we add to a test result: which attempt it belongs to and how the check ran."""

    attempt: str
    """Which attempt at which job, or which experiment."""
    nonce: str
    """Random, given to this attempt alone: a receipt of another attempt cannot have it."""
    check: str
    """The name of the check."""
    argv: tuple[str, ...]
    """The command that was run, word by word."""
    exit_code: int | None
    """How it ended; null: it was ended by a signal."""
    started_at: str
    """UTC, RFC 3339."""
    ended_at: str
    """The same."""
    log: Sha256 | None = None
    """Of everything that it printed."""
    skipped_count: int = 0
    """Tests that were there and did not run."""
    evidence: tuple[Descriptor, ...] = ()
    """Files that the check left, by digest; one with a `uri` is kept in the watch, at that path."""


class TestResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The predicate of one check. A check that runs no tests of its own counts as one test with its own name."""

    __test__ = False

    result: Result
    """How the check came out."""
    configuration: tuple[Descriptor, ...]
    """What decided the outcome besides the subjects: the policy, the check's inputs."""
    passed_tests: tuple[str, ...]
    """Their ids, as the runner prints them; never empty where the result is `PASSED`."""
    failed_tests: tuple[str, ...]
    """The same of those that failed."""
    facts: CheckFacts = msgspec.field(name=CHECK_FACTS)
    """What the format has no field for."""


class Verifier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who decided."""

    id: str = VERIFIER
    """Always this one."""


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What we add to a summary: the attempt, and the head of the event log's hash chain when it was decided."""

    attempt: str
    """As in the receipts that are cited."""
    nonce: str
    """The same."""
    chain_head: str
    """SHA-256, in hexadecimal: whoever cuts the log off before the decision is found out."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The predicate of one decision, which cites the receipts it rests on."""

    time_verified: str
    """UTC, RFC 3339."""
    resource_uri: str
    """What was decided about: `git:` and the branch, or `learn:` and the base model."""
    policy: Descriptor
    """The rules that were in force, by digest."""
    input_attestations: tuple[Descriptor, ...]
    """The receipts that it rests on, by digest; never empty where it passed."""
    verification_result: Result
    """The decision."""
    verified_levels: tuple[str, ...]
    """Holds `LONGWATCH_VERIFIED` where it passed."""
    facts: DecisionFacts = msgspec.field(name=DECISION_FACTS)
    """What the format has no field for."""
    verifier: Verifier = Verifier()
    """Who decided."""


class _Statement(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="predicateType", forbid_unknown_fields=True
):
    subject: tuple[Descriptor, ...]
    """What it is about: a commit with its tree and each file that it left, or each file of an adapter."""
    type: Literal["https://in-toto.io/Statement/v1"] = msgspec.field(name="_type")
    """Always this."""


class TestStatement(_Statement, frozen=True, kw_only=True, tag=TEST_RESULT_TYPE):
    """One check on these subjects."""

    __test__ = False

    predicate: TestResult
    """What the check showed."""


class SummaryStatement(_Statement, frozen=True, kw_only=True, tag=SUMMARY_TYPE):
    """One decision about these subjects."""

    predicate: Summary
    """What was decided."""


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
