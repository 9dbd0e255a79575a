"""Signs what a verification saw: one test result for each check, one summary for the decision (specification K31)."""

from collections.abc import Iterator
from pathlib import Path

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
    git_subject,
)
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.digest import digest, of_bytes
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.store import Store
from longwatch.migrate import witness
from longwatch.migrate.checks import cases
from longwatch.migrate.checks.running import CheckRun
from longwatch.migrate.declared import Bound
from longwatch.migrate.place import Place
from longwatch.migrate.queue.cards import Card
from longwatch.migrate.repository.git import Git
from longwatch.migrate.steps import Candidate
from longwatch.sandbox import sandbox_of


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification saw."""

    runs: tuple[CheckRun, ...]
    references: tuple[Bound, ...] = ()
    """Sources that decided what is right."""
    products: tuple[Bound, ...] = ()
    """Declared artifacts, as they lay there after the checks."""


def sign(place: Place, git: Git, candidate: Candidate, card: Card, seen: Witnessed) -> str:
    """Leave the receipts of a verified candidate and return the name of the decision's."""
    store, key = ReceiptStore(place.watch.receipts), SigningKey.load(place.watch.keys)
    subjects = _subjects(git, candidate)
    configuration = (
        witness.policy(place.settings),
        Descriptor(name=card.path, digest=DigestSet(sha256=digest(card.digest))),
        *(_bound("source", one) for one in seen.references),
        *_tools(place),
    )
    products = tuple(_bound("artifact", one) for one in seen.products)
    cited = tuple(
        sign_test_result(
            store, key, subjects, _test_result(run, candidate, configuration, (*_kept(place, run), *products))
        )
        for run in seen.runs
    )
    summary = Summary(
        time_verified=stamp(now().wall_s),
        resource_uri=f"git:{place.settings.repository.branch}",
        policy=witness.policy(place.settings),
        input_attestations=tuple(citation(receipt) for receipt in cited),
        verification_result=Result.PASSED,
        verified_levels=(LEVEL_VERIFIED,),
        facts=DecisionFacts(attempt=candidate.attempt, nonce=candidate.nonce, chain_head=_head(place)),
    )
    return sign_summary(store, key, subjects, summary)


def _subjects(git: Git, candidate: Candidate) -> tuple[Descriptor, ...]:
    """The commit with its tree, and every file that the change left."""
    left = git.files(candidate.commit, *candidate.paths)
    there = (left[path] for path in candidate.paths if path in left)
    artifacts = (artifact(file.path, of_bytes(git.blob(file.blob))) for file in there)
    return (git_subject(commit=candidate.commit, tree=candidate.tree), *artifacts)


def _tools(place: Place) -> Iterator[Descriptor]:
    """The image that brought the programs, where a container ran them."""
    where = place.settings.where
    found = sandbox_of(where).toolchain()
    if found:
        digest_of = DigestSet(sha256=digest(found.removeprefix("sha256:")))
        yield Descriptor(name=f"image: {where.image}", digest=digest_of)


def _bound(what: str, one: Bound) -> Descriptor:
    return Descriptor(name=f"{what}: {one.path}", digest=DigestSet(sha256=digest(one.sha256)))


def _kept(place: Place, run: CheckRun) -> Iterator[Descriptor]:
    """Keep what the cases of a check left, where the receipt can be held against it later."""
    root = Path(run.record.log).with_name("receipts")
    for name, sha256 in dict(cases.keep(root, run.seen, place.evidence)).items():
        uri = str((place.evidence / sha256).relative_to(place.watch.root))
        yield Descriptor(name=name, uri=uri, digest=DigestSet(sha256=sha256))


def _test_result(
    run: CheckRun,
    candidate: Candidate,
    configuration: tuple[Descriptor, ...],
    evidence: tuple[Descriptor, ...],
) -> TestResult:
    outcomes = run.tests.outcomes if run.tests is not None else {}
    passed = tuple(sorted(name for name, outcome in outcomes.items() if outcome == "passed"))
    return TestResult(
        result=Result.PASSED,
        configuration=configuration,
        passed_tests=passed or _counted(run),
        failed_tests=(),
        facts=CheckFacts(
            attempt=candidate.attempt,
            nonce=candidate.nonce,
            check=run.name,
            argv=run.argv,
            exit_code=run.exit_code,
            started_at=run.record.started_at,
            ended_at=run.record.ended_at,
            log=digest(run.record.log_sha256),
            skipped_count=sum(outcome == "skipped" for outcome in outcomes.values()),
            evidence=evidence,
        ),
    )


def _counted(run: CheckRun) -> tuple[str, ...]:
    """A check that prints no names of tests counts them; one that runs none counts as one test of its own name."""
    if run.tests is None:
        return (run.name,)
    return tuple(f"{run.name}: test {number}" for number in range(1, run.tests.counts.passed + 1))


def _head(place: Place) -> str:
    store = Store.read(place.watch.database)
    try:
        return store.snapshot().head.hex()
    finally:
        store.close()
