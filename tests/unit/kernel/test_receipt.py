import json
import os
from pathlib import Path

import msgspec
import pytest
from tests.support.receipts import DECIDED, HEAD, POLICY_URI, SUBJECT, TREE, Watch, check_result, summary

from longwatch.kernel import attestation, digest, receipt
from longwatch.kernel.attestation import Result
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, LongwatchError
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey, open_envelope
from longwatch.kernel.verification import Answer, Verdict, verify_receipt

OTHER = Digest("0" * 64)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


def verify(watch: Watch, name: Digest) -> Verdict:
    return verify_receipt(name, watch.store, watch.world())


def answer(watch: Watch, name: Digest) -> Answer:
    return verify(watch, name).answer


def forged(watch: Watch, statement: object) -> Digest:
    """Sign past the rules, as a careless or dishonest program of ours would."""
    return watch.store.put(watch.key.seal(msgspec.json.encode(statement)))


def decision(subject: tuple[attestation.Descriptor, ...], predicate: attestation.Summary) -> object:
    return attestation.SummaryStatement(type=attestation.STATEMENT_TYPE, subject=subject, predicate=predicate)


def check(subject: tuple[attestation.Descriptor, ...], predicate: attestation.TestResult) -> object:
    return attestation.TestStatement(type=attestation.STATEMENT_TYPE, subject=subject, predicate=predicate)


@pytest.mark.guarantee("K32")
def test_what_was_signed_holds(watch: Watch) -> None:
    assert verify(watch, watch.check) == verify(watch, watch.decision) == Verdict(Answer.OK)
    assert watch.store.all() == tuple(sorted((watch.check, watch.decision)))


@pytest.mark.guarantee("K31")
def test_a_receipt_is_an_in_toto_statement_named_by_its_digest(watch: Watch) -> None:
    data = watch.store.read(watch.check)
    assert digest.of_bytes(data) == watch.check
    statement = json.loads(open_envelope(data, frozenset({watch.key.public})))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["subject"][0] == {"digest": {"gitTree": TREE}, "name": "git"}
    assert statement["predicate"]["result"] == "PASSED"
    assert statement["predicate"]["passedTests"] == ["tests/a", "tests/b"]


@pytest.mark.guarantee("K31")
def test_a_decision_is_a_verification_summary_that_cites_its_checks(watch: Watch) -> None:
    payload = open_envelope(watch.store.read(watch.decision), frozenset({watch.key.public}))
    statement = json.loads(payload)
    assert statement["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert statement["subject"][0]["digest"].keys() == {"gitCommit", "gitTree"}
    predicate = statement["predicate"]
    assert predicate["inputAttestations"][0]["digest"] == {"sha256": watch.check}
    assert predicate["verifiedLevels"] == ["LONGWATCH_VERIFIED"]
    assert predicate.keys() >= {"verifier", "timeVerified", "resourceUri", "policy", "verificationResult"}


@pytest.mark.parametrize(
    ("predicate", "word"),
    [
        (check_result(passed=()), "zero tests"),
        (check_result(failed=("x",)), "1 failed"),
        (check_result(exit_code=1), "exit code 1"),
    ],
)
@pytest.mark.guarantee("K31")
def test_what_proves_nothing_is_not_signed(
    watch: Watch, predicate: attestation.TestResult, word: str
) -> None:
    with pytest.raises(IntegrityError, match=word):
        sign_test_result(watch.store, watch.key, SUBJECT, predicate)
    assert answer(watch, forged(watch, check(SUBJECT, predicate))) is Answer.EMPTY_EVIDENCE


@pytest.mark.guarantee("K31")
def test_a_failed_check_may_have_run_no_tests_and_its_receipt_holds(watch: Watch) -> None:
    predicate = check_result(result=Result.FAILED, passed=(), exit_code=2)
    assert answer(watch, sign_test_result(watch.store, watch.key, SUBJECT, predicate)) is Answer.OK


@pytest.mark.parametrize(
    "subject", [(), (*SUBJECT, attestation.Descriptor(name="x", digest=attestation.DigestSet()))]
)
@pytest.mark.guarantee("K31")
def test_a_statement_needs_subjects_with_digests(
    watch: Watch, subject: tuple[attestation.Descriptor, ...]
) -> None:
    with pytest.raises(IntegrityError, match="no subject"):
        sign_test_result(watch.store, watch.key, subject, check_result())
    assert answer(watch, forged(watch, check(subject, check_result()))) is Answer.EMPTY_EVIDENCE


@pytest.mark.guarantee("K31")
def test_two_subjects_of_one_name_are_refused(watch: Watch) -> None:
    with pytest.raises(IntegrityError, match="same name"):
        sign_test_result(watch.store, watch.key, (*SUBJECT, SUBJECT[0]), check_result())


@pytest.mark.guarantee("K31")
def test_a_decision_needs_citations_that_are_there(watch: Watch) -> None:
    for predicate, word in ((summary(), "without citing"), (summary(watch.check, levels=()), "level")):
        with pytest.raises(IntegrityError, match=word):
            sign_summary(watch.store, watch.key, DECIDED, predicate)
        assert answer(watch, forged(watch, decision(DECIDED, predicate))) is Answer.EMPTY_EVIDENCE
    with pytest.raises(IntegrityError, match="sign it first"):
        sign_summary(watch.store, watch.key, DECIDED, summary(OTHER))


@pytest.mark.guarantee("K32")
def test_a_decision_against_the_work_holds_with_failed_checks(watch: Watch) -> None:
    failed = sign_test_result(
        watch.store, watch.key, SUBJECT, check_result(result=Result.FAILED, exit_code=1)
    )
    predicate = summary(failed, watch.check, result=Result.FAILED, levels=())
    assert answer(watch, sign_summary(watch.store, watch.key, DECIDED, predicate)) is Answer.OK


@pytest.mark.guarantee("K32")
def test_a_passed_decision_that_cites_a_failed_check_is_empty(watch: Watch) -> None:
    failed = sign_test_result(
        watch.store, watch.key, SUBJECT, check_result(result=Result.FAILED, exit_code=1)
    )
    name = sign_summary(watch.store, watch.key, DECIDED, summary(watch.check, failed))
    assert verify(watch, name).answer is Answer.EMPTY_EVIDENCE
    assert "failed" in verify(watch, name).detail


@pytest.mark.guarantee("K32")
def test_another_key_is_untrusted(watch: Watch, tmp_path: Path) -> None:
    stranger = SigningKey.create(tmp_path / "stranger")
    name = sign_test_result(watch.store, stranger, SUBJECT, check_result())
    assert answer(watch, name) is Answer.UNTRUSTED_KEY
    cited = sign_summary(watch.store, watch.key, DECIDED, summary(name))
    assert answer(watch, cited) is Answer.UNTRUSTED_KEY


@pytest.mark.guarantee("K32")
def test_content_under_another_name_is_a_mismatch(watch: Watch) -> None:
    path = watch.store.path(watch.check)
    path.write_bytes(watch.store.read(watch.decision))
    assert answer(watch, watch.check) is Answer.SIGNATURE_MISMATCH
    assert answer(watch, watch.decision) is Answer.SIGNATURE_MISMATCH


@pytest.mark.guarantee("K32")
def test_a_swapped_payload_is_a_mismatch(watch: Watch) -> None:
    parts = json.loads(watch.store.read(watch.check))
    parts["payload"] = json.loads(watch.store.read(watch.decision))["payload"]
    name = watch.store.put(json.dumps(parts, separators=(",", ":")).encode())
    assert answer(watch, name) is Answer.SIGNATURE_MISMATCH


@pytest.mark.parametrize("change", ["huge", "fifo", "link", "folder", "empty"])
@pytest.mark.guarantee("K32")
def test_whatever_lies_in_a_receipts_place_gets_an_answer(watch: Watch, change: str) -> None:
    path = watch.store.path(watch.check)
    aside = path.rename(path.with_suffix(".aside"))
    if change == "huge":
        with path.open("wb") as file:
            file.truncate(receipt.MAX_BYTES + 1)
    elif change == "fifo":
        os.mkfifo(path)
    elif change == "link":
        path.symlink_to(aside)
    elif change == "folder":
        path.mkdir()
    else:
        path.touch()
    assert answer(watch, watch.check) is Answer.SIGNATURE_MISMATCH
    assert answer(watch, watch.decision) is Answer.SIGNATURE_MISMATCH


@pytest.mark.guarantee("K32")
def test_a_receipt_that_is_gone_is_missing_evidence_also_for_who_cites_it(watch: Watch) -> None:
    watch.store.path(watch.check).unlink()
    assert answer(watch, watch.check) is Answer.EVIDENCE_MISSING
    assert verify(watch, watch.decision).answer is Answer.EVIDENCE_MISSING
    assert watch.check in verify(watch, watch.decision).detail


@pytest.mark.guarantee("K32")
def test_a_decision_is_no_evidence_for_a_decision(watch: Watch) -> None:
    name = sign_summary(watch.store, watch.key, DECIDED, summary(watch.decision))
    assert answer(watch, name) is Answer.EVIDENCE_MISSING
    unnamed = msgspec.structs.replace(
        summary(watch.check), input_attestations=(attestation.git_subject(commit=None, tree=TREE),)
    )
    assert answer(watch, forged(watch, decision(DECIDED, unnamed))) is Answer.EVIDENCE_MISSING


@pytest.mark.parametrize("attempt", ["attempt-2", "attempt-1", "attempt-unknown"])
@pytest.mark.guarantee("K32")
def test_a_receipt_of_another_attempt_is_not_fresh(watch: Watch, attempt: str) -> None:
    nonce = "nonce-2"
    name = sign_test_result(watch.store, watch.key, SUBJECT, check_result(attempt=attempt, nonce=nonce))
    cited = sign_summary(watch.store, watch.key, DECIDED, summary(name))
    assert answer(watch, cited) is Answer.NOT_FRESH
    assert answer(watch, name) is (Answer.OK if attempt == "attempt-2" else Answer.NOT_FRESH)


@pytest.mark.guarantee("K32")
def test_a_decision_under_another_attempts_nonce_is_not_fresh(watch: Watch) -> None:
    name = sign_summary(watch.store, watch.key, DECIDED, summary(watch.check, nonce="nonce-2"))
    assert answer(watch, name) is Answer.NOT_FRESH


@pytest.mark.guarantee("K32")
def test_a_changed_policy_is_said(watch: Watch) -> None:
    for policies in ({POLICY_URI: OTHER}, {}):
        world = msgspec.structs.replace(watch.world(), policies=policies)
        assert verify_receipt(watch.decision, watch.store, world).answer is Answer.POLICY_CHANGED
        assert verify_receipt(watch.check, watch.store, world).answer is Answer.OK


@pytest.mark.guarantee("K32", "K33")
def test_a_decision_needs_its_event_in_the_log(watch: Watch) -> None:
    world = msgspec.structs.replace(watch.world(), heads=frozenset())
    verdict = verify_receipt(watch.decision, watch.store, world)
    assert verdict.answer is Answer.CHAIN_BROKEN
    assert HEAD in verdict.detail


@pytest.mark.guarantee("K32")
def test_a_commit_that_is_gone_or_has_another_tree_is_a_mismatch(watch: Watch) -> None:
    for trees in ({}, {"c" * 40: "f" * 40}):
        watch.repository.trees = trees
        assert answer(watch, watch.decision) is Answer.SUBJECT_MISMATCH


@pytest.mark.guarantee("K32")
def test_an_artifact_that_is_gone_or_differs_is_a_mismatch(watch: Watch) -> None:
    for blobs in ({}, {("c" * 40, "out.bin"): OTHER, (None, "out.bin"): OTHER}):
        watch.repository.blobs = blobs  # type: ignore[assignment]
        assert answer(watch, watch.decision) is Answer.SUBJECT_MISMATCH
        assert answer(watch, watch.check) is Answer.SUBJECT_MISMATCH


@pytest.mark.guarantee("K32", "M21")
def test_what_a_check_left_and_the_watch_kept_is_looked_at_again(watch: Watch) -> None:
    left = attestation.Descriptor(
        name="cube.case.json", uri="evidence/1", digest=attestation.DigestSet(sha256=OTHER)
    )
    built = attestation.Descriptor(name="artifact: app.bin", digest=attestation.DigestSet(sha256=OTHER))
    predicate = check_result()
    facts = msgspec.structs.replace(predicate.facts, evidence=(left, built))
    cited = sign_test_result(watch.store, watch.key, SUBJECT, msgspec.structs.replace(predicate, facts=facts))
    decided = sign_summary(watch.store, watch.key, DECIDED, summary(cited))
    assert answer(watch, decided) is Answer.EVIDENCE_MISSING
    watch.repository.blobs[None, "evidence/1"] = Digest("1" * 64)
    assert answer(watch, decided) is answer(watch, cited) is Answer.SUBJECT_MISMATCH
    watch.repository.blobs[None, "evidence/1"] = OTHER
    assert answer(watch, decided) is answer(watch, cited) is Answer.OK


@pytest.mark.guarantee("K32")
def test_a_cited_check_must_be_about_what_was_decided(watch: Watch) -> None:
    subjects = (
        (attestation.git_subject(commit=None, tree="f" * 40),),
        (attestation.artifact("out.bin", OTHER), SUBJECT[0]),
        (attestation.artifact("elsewhere", OTHER),),
        (SUBJECT[1],),
    )
    for subject in subjects:
        watch.repository.blobs[(None, "elsewhere")] = OTHER
        name = sign_test_result(watch.store, watch.key, subject, check_result())
        cited = sign_summary(watch.store, watch.key, DECIDED, summary(name))
        assert answer(watch, cited) is Answer.SUBJECT_MISMATCH


@pytest.mark.guarantee("K32")
def test_a_check_before_the_commit_is_held_against_the_decided_commit(watch: Watch) -> None:
    watch.repository.blobs = {("c" * 40, "out.bin"): SUBJECT[1].digest.sha256}  # type: ignore[dict-item]
    assert answer(watch, watch.decision) is Answer.OK


@pytest.mark.guarantee("K32")
def test_signed_content_of_an_unknown_kind_is_no_evidence(watch: Watch) -> None:
    good = json.loads(open_envelope(watch.store.read(watch.check), frozenset({watch.key.public})))
    for payload in (
        b"",
        b"[" * 50_000,
        b"\xff",
        b"{}",
        json.dumps(good | {"predicateType": "https://example.invalid"}).encode(),
        json.dumps(good | {"_type": "https://in-toto.io/Statement/v0.1"}).encode(),
        json.dumps(good | {"extra": 1}).encode(),
        json.dumps(good | {"subject": [{"name": "x", "digest": {"sha256": "A" * 64}}]}).encode(),
    ):
        assert answer(watch, watch.store.put(watch.key.seal(payload))) is Answer.EMPTY_EVIDENCE


@pytest.mark.guarantee("K32")
def test_every_answer_has_a_test_that_reaches_it() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [one for one in Answer if f"Answer.{one.name}" not in text] == []


def test_a_receipt_over_the_limit_is_not_kept(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipt, "MAX_BYTES", 10)
    with pytest.raises(LongwatchError, match="over the limit"):
        watch.store.put(b"x" * 11)


def test_a_store_lists_receipts_only(tmp_path: Path) -> None:
    store = ReceiptStore(tmp_path / "none")
    assert store.all() == ()
    name = store.put(b"x")
    (store.folder / "notes.txt").touch()
    (store.folder / f".longwatch-{OTHER}.tmp").touch()
    assert store.all() == (name,)


@pytest.mark.guarantee("K31")
def test_a_repeated_signature_is_harmless(watch: Watch) -> None:
    assert sign_test_result(watch.store, watch.key, SUBJECT, check_result()) == watch.check
