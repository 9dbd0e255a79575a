"""Whether what a receipt stands on still lies in the watch as it was signed: itself, what it cites, what checks left.

A receipt is named by its digest, and the watch's state holds the name: nothing can be put in its place unnoticed. Its
signature, its attempt and its place in the log are looked at by `longwatch verify`.
"""

import msgspec

from longwatch.kernel import attestation, digest
from longwatch.kernel.attestation import Statement, TestStatement
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import PathError
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.watch import Watch
from longwatch.migrate.queue.folder import Folder


class _Envelope(msgspec.Struct, frozen=True):
    payload: bytes


class Kept:
    """One look at the receipts of a watch; each file is read once."""

    def __init__(self, watch: Watch) -> None:
        self._receipts, self._folder = ReceiptStore(watch.receipts), Folder(watch.root)
        self._known: dict[str, str] = {}

    def fault(self, receipt: str) -> str:
        """Return why a receipt no longer stands; empty if it does."""
        if receipt not in self._known:
            self._known[receipt] = self._fault(Digest(receipt))
        return self._known[receipt]

    def _fault(self, receipt: Digest) -> str:
        named = f"its receipt {receipt[:12]}"
        try:
            raw = self._receipts.read(receipt)
        except FileNotFoundError:
            return f"{named} is missing"
        except PathError as error:
            return f"{named} cannot be read: {error}"
        if digest.of_bytes(raw) != receipt:
            return f"{named} is damaged: its content is not what was signed"
        statement = attestation.decode(msgspec.json.decode(raw, type=_Envelope).payload)
        return self._below(statement)

    def _below(self, statement: Statement) -> str:
        if isinstance(statement, TestStatement):
            left = statement.predicate.facts.evidence
            faults = (self._left(one.name, one.uri, one.digest.sha256) for one in left if one.uri)
        else:
            cited = statement.predicate.input_attestations
            faults = (self.fault(one.digest.sha256) for one in cited if one.digest.sha256)
        return next(filter(None, faults), "")

    def _left(self, name: str, path: str, sha256: str | None) -> str:
        if path not in self._known:
            found = self._folder.sha256(path)
            what = "is missing" if found is None else "" if found == sha256 else "is damaged"
            self._known[path] = f"what a check left as {name!r} {what} at {path}" if what else ""
        return self._known[path]
