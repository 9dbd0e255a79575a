"""The accepted adapter takes the champion's place: verified into the store, with its lineage, and signed (L26, K31)."""

import msgspec

from longwatch.kernel.attestation import (
    LEVEL_VERIFIED,
    CheckFacts,
    DecisionFacts,
    Descriptor,
    DigestSet,
    Result,
    Summary,
    TestResult,
    artifact,
    citation,
)
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.digest import digest, of_bytes
from longwatch.kernel.line import Outcome
from longwatch.kernel.program import Work
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.store import Store
from longwatch.learn import adapters, witness
from longwatch.learn.acceptance import Pair
from longwatch.learn.comparing import pairs_before
from longwatch.learn.evidence import succeeded
from longwatch.learn.experiment import replay
from longwatch.learn.place import Place
from longwatch.learn.stages import staged
from longwatch.learn.steps import BASE, Adopt, Adopted, LearnStep
from longwatch.learn.student.answers import Sampling
from longwatch.learn.student.binding import base_digest, bind
from longwatch.learn.tasks import Verdict


def perform(work: Work[LearnStep], step: Adopt, place: Place) -> Outcome:
    """Copy the adapter into the store and leave the receipts of the decision. A repeat is harmless."""
    with work.span("adopt", step.title):
        # A repeat finds the receipt and the lineage of the first time: a lineage never changes.
        folder = place.experiment(step.number)
        receipt = staged(folder / "receipt.json", str, lambda: _signed(step, place))
        taught = replay.load(folder / "nominated", step.challenger.examples)
        learned = replay.write(place.replay, replay.joined(replay.load(place.replay, step.replay), taught))
        lineage = staged(
            folder / "lineage.json", adapters.Lineage, lambda: _lineage(step, place, receipt, learned)
        )
        source = folder / "nominated" / step.challenger.adapter
        stored = adapters.put(place.adapters, source, digest(step.challenger.adapter), lineage)
    return succeeded(Adopted(adapter=stored.adapter, receipt=receipt, replay=learned))


def _lineage(step: Adopt, place: Place, receipt: str, learned: str) -> adapters.Lineage:
    student = place.settings.student
    bound = bind(student, batch=student.batch, sampling=Sampling())
    return adapters.Lineage(
        base=base_digest(student),
        data=of_bytes(msgspec.json.encode((step.window.manifest, learned))),
        code=witness.code_digest(),
        environment=bound.environment,
        parent=None if step.champion == BASE else digest(step.champion),
        decision=receipt,
    )


def _signed(step: Adopt, place: Place) -> str:
    store, key = ReceiptStore(place.watch.receipts), SigningKey.load(place.watch.keys)
    pairs = pairs_before(place, step.number)
    subjects = _subjects(step, place)
    cited = sign_test_result(store, key, subjects, _test_result(step, place, pairs))
    summary = Summary(
        time_verified=stamp(now().wall_s),
        resource_uri=f"learn:{place.settings.student.model}",
        policy=witness.policy(place.settings),
        input_attestations=(citation(cited),),
        verification_result=Result.PASSED,
        verified_levels=(LEVEL_VERIFIED,),
        facts=DecisionFacts(attempt=_attempt(step), nonce=step.window.nonce, chain_head=_head(place)),
    )
    return sign_summary(store, key, subjects, summary)


def _subjects(step: Adopt, place: Place) -> tuple[Descriptor, ...]:
    source = place.experiment(step.number) / "nominated" / step.challenger.adapter
    root = place.adapters.relative_to(place.watch.root) / step.challenger.adapter
    return tuple(artifact(str(root / name), of_bytes(data)) for name, data in adapters.read(source).items())


def _test_result(step: Adopt, place: Place, pairs: tuple[Pair, ...]) -> TestResult:
    """The confirmation as a test result: the fresh tasks that the challenger's answers passed."""
    passed = tuple(sorted({pair.task for pair in pairs if pair.challenger is Verdict.PASS}))
    evidence = of_bytes(msgspec.json.encode(step.ruling))
    at = stamp(now().wall_s)
    return TestResult(
        result=Result.PASSED,
        configuration=(
            witness.policy(place.settings),
            *(
                Descriptor(name=f"window {one.number}", digest=DigestSet(sha256=digest(one.manifest)))
                for one in (step.window, *step.fresh)
            ),
            Descriptor(name="ruling", digest=DigestSet(sha256=evidence)),
        ),
        passed_tests=passed,
        failed_tests=(),
        facts=CheckFacts(
            attempt=_attempt(step),
            nonce=step.window.nonce,
            check="confirmation",
            argv=("longwatch", "confirmation", f"experiment {step.number}"),
            exit_code=0,
            started_at=at,
            ended_at=at,
        ),
    )


def _attempt(step: Adopt) -> str:
    return f"experiment-{step.number}"


def _head(place: Place) -> str:
    store = Store.read(place.watch.database)
    try:
        return store.snapshot().head.hex()
    finally:
        store.close()
