"""`verify`: one typed answer for each receipt and for the event log (specification K32, K33). Offline, read only."""

import msgspec

from longwatch.kernel import attestation, signing
from longwatch.kernel.attestation import Statement, TestStatement
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError, LongwatchError, StateError
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.store import Store
from longwatch.kernel.verification import Answer, World, verify_receipt
from longwatch.kernel.watch import Watch
from longwatch.observe import kinds

SHORTEST_PREFIX = 8


class ReceiptAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one receipt holds."""

    receipt: str
    answer: Answer
    about: str
    """The check or the decision that it is of, where it can be read."""
    detail: str


class ChainAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the event log is what was written."""

    answer: Answer
    detail: str


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """All answers."""

    chain: ChainAnswer
    receipts: tuple[ReceiptAnswer, ...]

    @property
    def ok(self) -> bool:
        """True if everything that was looked at holds."""
        return self.wrong == 0

    @property
    def wrong(self) -> int:
        """How many answers are not ok."""
        answers = (self.chain.answer, *(one.answer for one in self.receipts))
        return sum(answer is not Answer.OK for answer in answers)


def verify(watch: Watch, wanted: str = "") -> Verification:
    """Check one receipt (its digest, or the unique beginning of it), or all of them, and the event log.

    All means: those that lie in the watch, and those that its state stands on; a removed one is `evidence_missing`.

    Raises:
        ConfigError: `wanted` is the beginning of several receipts, or too short.
        LongwatchError: the watch cannot be read.
    """
    application = kinds.load(watch)
    receipts = ReceiptStore(watch.receipts)
    store = Store.read(watch.database)
    try:
        chain = _chain(store)
        known = {*receipts.all(), *_relied_on(application, store)}
        names = [_one(wanted, known)] if wanted else sorted(known)
        world = application.world(store) if names else None
    finally:
        store.close()
    answers = tuple(_answer(name, receipts, world) for name in names) if world else ()
    return Verification(chain=chain, receipts=answers)


def _chain(store: Store) -> ChainAnswer:
    problem = store.chain()
    return ChainAnswer(answer=Answer.CHAIN_BROKEN if problem else Answer.OK, detail=problem or "")


def _relied_on(application: kinds.Application, store: Store) -> tuple[Digest, ...]:
    try:
        state = store.snapshot().line
    except StateError:
        # The state and the log do not fit together: the chain's answer says so, and nothing of the state is believed.
        return ()
    return tuple(Digest(name) for name in application.relied_on(state))


def _one(wanted: str, known: set[Digest]) -> Digest:
    found = sorted(name for name in known if name.startswith(wanted))
    if len(wanted) < SHORTEST_PREFIX:
        raise ConfigError(f"{wanted!r} is too short for a receipt: write {SHORTEST_PREFIX} digits or more")
    if len(found) > 1:
        raise ConfigError(f"{wanted} begins {len(found)} receipts: write more of it")
    return found[0] if found else Digest(wanted)


def _answer(name: Digest, receipts: ReceiptStore, world: World) -> ReceiptAnswer:
    verdict = verify_receipt(name, receipts, world)
    return ReceiptAnswer(
        receipt=name, answer=verdict.answer, about=_about(name, receipts, world), detail=verdict.detail
    )


def _about(name: Digest, receipts: ReceiptStore, world: World) -> str:
    """Name what a receipt with a good signature is of."""
    try:
        statement = attestation.decode(signing.open_envelope(receipts.read(name), world.trusted))
    except (FileNotFoundError, LongwatchError, msgspec.DecodeError):
        return ""
    return _named(statement)


def _named(statement: Statement) -> str:
    facts = statement.predicate.facts
    if isinstance(statement, TestStatement):
        return f"{facts.attempt}: check {statement.predicate.facts.check}"
    return f"{facts.attempt}: decision {statement.predicate.verification_result.value}"
