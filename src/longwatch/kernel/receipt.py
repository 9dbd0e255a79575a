"""Receipts: signed statements in files that are named by their digest (specification K31)."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longwatch.kernel import attestation, digest, files
from longwatch.kernel.attestation import (
    STATEMENT_TYPE,
    Descriptor,
    Statement,
    Summary,
    SummaryStatement,
    TestResult,
    TestStatement,
)
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, LongwatchError

if TYPE_CHECKING:
    # Who only reads receipts need not load what signs them.
    from longwatch.kernel.signing import SigningKey

MAX_BYTES = 16 * 1024 * 1024
_NAME = re.compile(r"([0-9a-f]{64})\.json")


class ReceiptStore:
    """A folder of envelopes, each named by the SHA-256 of its bytes. Nothing in it is ever overwritten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, receipt: Digest) -> Path:
        """Where this receipt lies."""
        return self.folder / f"{receipt}.json"

    def put(self, envelope: bytes) -> Digest:
        """Keep an envelope, durably; a repeat is harmless.

        Raises:
            LongwatchError: it is larger than `MAX_BYTES`, or cannot be written.
            IntegrityError: other content stands at its name.
        """
        if len(envelope) > MAX_BYTES:
            raise LongwatchError(
                f"a receipt of {len(envelope)} bytes is over the limit of {MAX_BYTES}: split the check"
            )
        name = digest.of_bytes(envelope)
        files.create(files.make_folder(self.folder) / f"{name}.json", envelope)
        return name

    def read(self, receipt: Digest) -> bytes:
        """Return an envelope as it lies there, unverified.

        Raises:
            FileNotFoundError: it is not there.
            PathError: it is larger than `MAX_BYTES` or no regular file.
        """
        return files.read_bounded(self.path(receipt), MAX_BYTES)

    def all(self) -> tuple[Digest, ...]:
        """Names of all receipts, sorted; other files in the folder are left out."""
        if not self.folder.is_dir():
            return ()
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return tuple(sorted(Digest(name[1]) for name in names if name))


def sign_test_result(
    store: ReceiptStore, key: "SigningKey", subject: tuple[Descriptor, ...], predicate: TestResult
) -> Digest:
    """Leave the receipt of one check and return its name.

    Raises:
        IntegrityError: it proves nothing: no subject, or passed with zero tests, a failed test or a failing exit code.
        LongwatchError: it cannot be written.
    """
    return _sign(store, key, TestStatement(type=STATEMENT_TYPE, subject=subject, predicate=predicate))


def sign_summary(
    store: ReceiptStore, key: "SigningKey", subject: tuple[Descriptor, ...], predicate: Summary
) -> Digest:
    """Leave the receipt of one decision and return its name.

    Raises:
        IntegrityError: it proves nothing, or cites a receipt that is not in the store.
        LongwatchError: it cannot be written.
    """
    for cited in predicate.input_attestations:
        if cited.digest.sha256 is None or not store.path(cited.digest.sha256).is_file():
            raise IntegrityError(
                f"a decision cites {cited.uri!r}, which is not in {store.folder}: sign it first"
            )
    return _sign(store, key, SummaryStatement(type=STATEMENT_TYPE, subject=subject, predicate=predicate))


def _sign(store: ReceiptStore, key: "SigningKey", statement: Statement) -> Digest:
    attestation.refuse_empty(statement)
    return store.put(key.seal(msgspec.json.encode(statement)))
