"""`verify`: one typed answer for each receipt and the event log, whatever somebody did to them."""

import json
import sqlite3

import pytest
from tests.support import repositories, watches

from longwatch.kernel.errors import ConfigError
from longwatch.kernel.receipt import ReceiptStore
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.verification import Answer
from longwatch.kernel.watch import Watch
from longwatch.observe import verifying


@pytest.fixture
def watch(tmp_path) -> Watch:
    return watches.migrate(tmp_path / "repo")


def answers(watch: Watch, wanted: str = "") -> set[Answer]:
    return {one.answer for one in verifying.verify(watch, wanted).receipts}


@pytest.mark.guarantee("K32", "K33")
def test_what_a_verified_job_leaves_holds(watch):
    receipt = watches.verified(watch)
    seen = verifying.verify(watch)
    assert seen.ok
    assert len(seen.receipts) == 2
    assert answers(watch, receipt[:12]) == {Answer.OK}
    told = {one.about for one in seen.receipts}
    assert told == {"greeting.1: check pytest", "greeting.1: decision PASSED"}


@pytest.mark.guarantee("K32")
def test_later_work_on_the_branch_does_not_make_a_receipt_wrong(watch):
    watches.verified(watch)
    repositories.write(watch.root, "src/greet.py", "GREETING = 'other'\n")
    repositories.commit_all(watch.root)
    assert verifying.verify(watch).ok


@pytest.mark.guarantee("K32")
def test_an_edited_receipt_is_a_signature_mismatch(watch):
    receipt = watches.verified(watch)
    path = ReceiptStore(watch.receipts).path(receipt)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    assert answers(watch, receipt) == {Answer.SIGNATURE_MISMATCH}


@pytest.mark.guarantee("K32")
def test_a_removed_receipt_that_the_state_stands_on_is_missed(watch):
    receipt = watches.verified(watch)
    ReceiptStore(watch.receipts).path(receipt).unlink()
    seen = verifying.verify(watch)
    assert {one.receipt: one.answer for one in seen.receipts}[receipt] is Answer.EVIDENCE_MISSING
    assert not seen.ok


@pytest.mark.guarantee("K32")
def test_a_receipt_that_another_key_signed_is_not_trusted(watch, tmp_path):
    receipt = watches.verified(watch, key=SigningKey.create(tmp_path / "other"))
    assert answers(watch, receipt) == {Answer.UNTRUSTED_KEY}


@pytest.mark.guarantee("K32")
def test_a_receipt_of_an_attempt_that_never_was_is_not_fresh(watch):
    receipt = watches.verified(watch, nonce="m" * 32)
    assert answers(watch, receipt) == {Answer.NOT_FRESH}


@pytest.mark.guarantee("K32")
def test_a_weaker_policy_is_told(watch):
    receipt = watches.verified(watch)
    watches.configure(watch, "timeout_s = 1800.0", "timeout_s = 1800.0\nfails_before = true")
    assert answers(watch, receipt) == {Answer.POLICY_CHANGED}


@pytest.mark.guarantee("K32")
def test_a_setting_that_decides_nothing_changes_no_policy(watch):
    watches.verified(watch)
    watches.configure(watch, "max_attempts = 3", "max_attempts = 5")
    assert verifying.verify(watch).ok


@pytest.mark.guarantee("K32")
def test_a_commit_that_is_gone_is_a_subject_mismatch(watch):
    receipt = watches.verified(watch)
    head = repositories.git(watch.root, "rev-parse", "HEAD")
    repositories.git(watch.root, "reset", "--hard", "--quiet", "HEAD~1")
    repositories.git(watch.root, "reflog", "expire", "--expire=now", "--all")
    repositories.git(watch.root, "prune", "--expire=now")
    # The configuration went with the commit; the person puts it back.
    assert not watch.config.exists()
    watches.beginning.initialise(
        watch.root, watches.beginning.WorkerChoice(adapter="command", argv=("true",))
    )
    seen = verifying.verify(watch, receipt).receipts[0]
    assert seen.answer is Answer.SUBJECT_MISMATCH
    assert head in seen.detail


def alter(watch: Watch, statement: str) -> None:
    sql = sqlite3.connect(watch.database)
    with sql:
        sql.execute(statement)
    sql.close()


@pytest.mark.guarantee("K33")
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'done', 'fine') AS BLOB) WHERE seq = 4",
            "edited",
        ),
        ("UPDATE events SET at = '2020-01-01T00:00:00.000000Z' WHERE seq = 2", "edited"),
        ("DELETE FROM events WHERE seq = 2", "missing"),
        ("DELETE FROM events WHERE seq = 4", "ends at event 3"),
        ("UPDATE events SET seq = CASE seq WHEN 2 THEN -3 ELSE -2 END WHERE seq IN (2, 3)", "missing"),
    ],
    ids=["edited", "redated", "removed", "cut", "reordered"],
)
def test_any_change_of_the_event_log_is_found(watch, statement, told):
    watches.verified(watch)
    before = watches.longwatch(watch.root, "verify")
    assert before.returncode == 0, before.stdout
    alter(watch, statement)
    after = watches.longwatch(watch.root, "verify", "--json")
    assert after.returncode == 1
    chain = json.loads(after.stdout)["chain"]
    assert chain["answer"] == "chain_broken"
    assert told in chain["detail"]


@pytest.mark.guarantee("K32", "K33")
def test_a_decision_made_in_the_broken_part_of_the_log_does_not_hold(watch):
    receipt = watches.verified(watch)
    alter(watch, 'UPDATE events SET body = CAST(\'{"text":"x","data":{}}\' AS BLOB) WHERE seq = 1')
    assert answers(watch, receipt) == {Answer.CHAIN_BROKEN}


@pytest.mark.guarantee("K32")
@pytest.mark.parametrize("code", [0, 1])
def test_the_exit_code_is_zero_only_if_everything_holds(watch, code):
    receipt = watches.verified(watch)
    if code:
        ReceiptStore(watch.receipts).path(receipt).unlink()
    finished = watches.longwatch(watch.root, "verify", receipt)
    assert finished.returncode == code
    assert ("evidence_missing" in finished.stdout) is bool(code)


@pytest.mark.guarantee("K32")
def test_the_beginning_of_a_digest_must_be_long_enough_and_name_one(watch):
    watches.verified(watch)
    with pytest.raises(ConfigError, match="too short"):
        verifying.verify(watch, "abc")
    assert answers(watch, "f" * 64) == {Answer.EVIDENCE_MISSING}
