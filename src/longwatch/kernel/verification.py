"""Answers whether a receipt still holds (specification K32): offline, without a supervisor, one typed answer each.

What is checked, in this order: the envelope and its signature, that it proves something by itself, that it belongs to
its attempt, its subjects, and for a decision its policy, its place in the event log and every receipt that it cites.
The first thing that is wrong is the answer.
"""

from collections.abc import Container, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from longwatch.kernel import attestation, digest
from longwatch.kernel.attestation import (
    GIT_SUBJECT,
    Descriptor,
    Result,
    Statement,
    SummaryStatement,
    TestStatement,
)
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import PathError
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.signing import EnvelopeError, ForeignKeyError, PublicKey, SignatureError, open_envelope


class Answer(StrEnum):
    """Whether a receipt holds, and if not, why."""

    OK = "ok"
    SIGNATURE_MISMATCH = "signature_mismatch"
    """The envelope is not what was signed: its bytes, form, size, number of signatures or name."""
    UNTRUSTED_KEY = "untrusted_key"
    """Another key signed it."""
    SUBJECT_MISMATCH = "subject_mismatch"
    """A commit, tree or artifact is gone or differs, or a cited receipt is about something else."""
    EVIDENCE_MISSING = "evidence_missing"
    """The receipt, or one that it cites, is not there or is none of a check."""
    EMPTY_EVIDENCE = "empty_evidence"
    """It proves nothing: zero tests run, no subject, no citation, or a passed decision that cites a failed check."""
    NOT_FRESH = "not_fresh"
    """It, or a receipt that it cites, belongs to another attempt."""
    POLICY_CHANGED = "policy_changed"
    """The decision was made under another policy than the one in force."""
    CHAIN_BROKEN = "chain_broken"
    """The event log no longer holds, unbroken, the event at which the decision was made."""


class Verdict(msgspec.Struct, frozen=True):
    """The answer for one receipt, and a sentence that names what is wrong."""

    answer: Answer
    detail: str = ""

    @property
    def ok(self) -> bool:
        """True if the receipt holds."""
        return self.answer is Answer.OK


class SubjectReader(Protocol):
    """Reads what is there now, to be compared with what was signed."""

    def git_tree_of(self, commit: str) -> str | None:
        """Return the tree of a commit, or `None` if there is no such commit."""

    def blob_sha256(self, commit: str | None, path: str) -> Digest | None:
        """SHA-256 of a file in that commit, or without one in the watch; `None` if it is not there."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What a receipt is held against."""

    trusted: frozenset[PublicKey]
    subjects: SubjectReader
    policies: Mapping[str, Digest]
    """URI of each policy in force -> its digest."""
    nonces: Mapping[str, str]
    """Attempt -> the nonce that it was given."""
    heads: Container[str]
    """Hashes of the events in the unbroken part of the log."""


class _WrongError(Exception):
    """Carries the first thing that is wrong up to `verify_receipt`."""

    def __init__(self, answer: Answer, detail: str) -> None:
        super().__init__(detail)
        self.verdict = Verdict(answer, detail)


def verify_receipt(receipt: Digest, store: ReceiptStore, world: World) -> Verdict:
    """Say whether one receipt holds. Nothing that lies in the store makes it raise.

    Raises:
        LongwatchError: a file that is there cannot be read (permission, device error): there is no answer then.
    """
    try:
        statement = _opened(receipt, store, world)
        _own(statement, world, commit=None)
        if isinstance(statement, SummaryStatement):
            _decision(statement, store, world)
    except _WrongError as wrong:
        return wrong.verdict
    return Verdict(Answer.OK)


def _opened(receipt: Digest, store: ReceiptStore, world: World) -> Statement:
    payload = _payload(receipt, _envelope(receipt, store), world)
    try:
        return attestation.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _WrongError(
            Answer.EMPTY_EVIDENCE, f"receipt {receipt} holds no statement of a known kind: {error}"
        ) from error


def _envelope(receipt: Digest, store: ReceiptStore) -> bytes:
    try:
        data = store.read(receipt)
    except FileNotFoundError as error:
        raise _WrongError(Answer.EVIDENCE_MISSING, f"receipt {receipt} is not in {store.folder}") from error
    except PathError as error:
        raise _WrongError(Answer.SIGNATURE_MISMATCH, str(error)) from error
    actual = digest.of_bytes(data)
    if actual != receipt:
        raise _WrongError(Answer.SIGNATURE_MISMATCH, f"receipt {receipt} has the content of {actual}")
    return data


def _payload(receipt: Digest, envelope: bytes, world: World) -> bytes:
    try:
        return open_envelope(envelope, world.trusted)
    except ForeignKeyError as error:
        raise _WrongError(Answer.UNTRUSTED_KEY, f"receipt {receipt}: {error}") from error
    except (EnvelopeError, SignatureError) as error:
        raise _WrongError(Answer.SIGNATURE_MISMATCH, f"receipt {receipt}: {error}") from error


def _own(statement: Statement, world: World, *, commit: str | None) -> None:
    """Check what a statement says by itself. A receipt of a check may lack the `commit` that was made of its tree."""
    empty = attestation.emptiness(statement)
    if empty:
        raise _WrongError(Answer.EMPTY_EVIDENCE, empty)
    facts = statement.predicate.facts
    if world.nonces.get(facts.attempt) != facts.nonce:
        raise _WrongError(
            Answer.NOT_FRESH, f"its nonce is not the one that attempt {facts.attempt!r} was given"
        )
    commit = _commit(statement.subject) or commit
    for subject in statement.subject:
        _subject(subject, commit, world.subjects)
    if isinstance(statement, TestStatement):
        _evidence(statement.predicate.facts.evidence, world.subjects)


def _commit(subjects: tuple[Descriptor, ...]) -> str | None:
    return next((one.digest.git_commit for one in subjects if one.digest.git_commit), None)


def _subject(subject: Descriptor, commit: str | None, reader: SubjectReader) -> None:
    signed = subject.digest
    if signed.git_commit and signed.git_tree:
        _compare(
            f"the tree of commit {signed.git_commit}", signed.git_tree, reader.git_tree_of(signed.git_commit)
        )
    if signed.sha256:
        _compare(f"artifact {subject.name!r}", signed.sha256, reader.blob_sha256(commit, subject.name))


def _evidence(left: tuple[Descriptor, ...], reader: SubjectReader) -> None:
    """Look again at what a check left and the watch has kept."""
    for one in left:
        if not one.uri:
            continue
        found = reader.blob_sha256(None, one.uri)
        if found is None:
            raise _WrongError(
                Answer.EVIDENCE_MISSING, f"{one.name!r}, which the check left, is not at {one.uri}"
            )
        _compare(f"what the check left as {one.name!r}", one.digest.sha256, found)


def _compare(what: str, signed: str | None, actual: str | None) -> None:
    if actual is None:
        raise _WrongError(Answer.SUBJECT_MISMATCH, f"{what} is gone; {signed} was signed")
    if actual != signed:
        raise _WrongError(Answer.SUBJECT_MISMATCH, f"{what} is {actual}; {signed} was signed")


def _decision(decision: SummaryStatement, store: ReceiptStore, world: World) -> None:
    predicate = decision.predicate
    policy, head = predicate.policy, predicate.facts.chain_head
    if policy.digest.sha256 is None or world.policies.get(policy.uri) != policy.digest.sha256:
        raise _WrongError(
            Answer.POLICY_CHANGED, f"policy {policy.uri!r} in force is not {policy.digest.sha256}"
        )
    if head not in world.heads:
        raise _WrongError(
            Answer.CHAIN_BROKEN, f"the event log does not hold event {head} in an unbroken chain"
        )
    for cited in predicate.input_attestations:
        _cited(cited, decision, store, world)


def _cited(citation: Descriptor, decision: SummaryStatement, store: ReceiptStore, world: World) -> None:
    name = citation.digest.sha256
    check = _opened(name, store, world) if name else None
    if not isinstance(check, TestStatement):
        raise _WrongError(
            Answer.EVIDENCE_MISSING, f"what is cited as {citation.uri!r} is no receipt of a check"
        )
    ours, theirs = decision.predicate.facts, check.predicate.facts
    if (ours.attempt, ours.nonce) != (theirs.attempt, theirs.nonce):
        raise _WrongError(
            Answer.NOT_FRESH,
            f"receipt {name} is of attempt {theirs.attempt!r}, the decision of {ours.attempt!r}",
        )
    _same_subjects(check, decision)
    _own(check, world, commit=_commit(decision.subject))
    if decision.predicate.verification_result is Result.PASSED and check.predicate.result is Result.FAILED:
        raise _WrongError(
            Answer.EMPTY_EVIDENCE, f"the decision passed, but check {theirs.check!r} that it cites failed"
        )


def _same_subjects(check: TestStatement, decision: SummaryStatement) -> None:
    """Demand that a cited check was about what was decided: the git tree if there is one, and nothing at odds."""
    decided = {one.name: one.digest for one in decision.subject}
    shared = [(one.name, one.digest, decided[one.name]) for one in check.subject if one.name in decided]
    facts = check.predicate.facts
    names = {name for name, _, _ in shared}
    if not names or (GIT_SUBJECT in decided and GIT_SUBJECT not in names):
        raise _WrongError(Answer.SUBJECT_MISMATCH, f"check {facts.check!r} is not about what was decided")
    for name, theirs, ours in shared:
        if (theirs.git_tree, theirs.sha256) != (ours.git_tree, ours.sha256):
            raise _WrongError(
                Answer.SUBJECT_MISMATCH, f"check {facts.check!r} saw another {name!r} than was decided"
            )
