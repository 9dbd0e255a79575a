"""Receipts that no longer stand are named, whatever was done to them: by the doctor, and before work is built on them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.support import receipts, repositories, watches

from longwatch.kernel.attestation import Descriptor, DigestSet
from longwatch.kernel.digest import Digest
from longwatch.kernel.finding import Finding, Standing
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.migrate import holding, settings
from longwatch.migrate.place import Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.kept import Kept
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import Job, MigrateState, Status

CARD = "---\nid: greeting\ntitle: Greet\n---\nGreet.\n"


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    found = watches.migrate(tmp_path / "repo")
    repositories.write(found.root, "tasks/greeting.md", CARD)
    return found


def decided(watch: Watch) -> tuple[str, str, str]:
    """A decision, the receipt of a check that it cites, and what that check left."""
    store, key = ReceiptStore(watch.receipts), SigningKey.load(watch.keys)
    content = b"the state that a case saw"
    sha256 = Digest(hashlib.sha256(content).hexdigest())
    left = repositories.write(watch.hidden, f"evidence/{sha256}", content)
    evidence = Descriptor(
        name="cube.case.json", uri=str(left.relative_to(watch.root)), digest=DigestSet(sha256=sha256)
    )
    result = receipts.check_result()
    facts = msgspec.structs.replace(result.facts, evidence=(evidence,))
    check = sign_test_result(store, key, receipts.DECIDED, msgspec.structs.replace(result, facts=facts))
    decision = sign_summary(store, key, receipts.DECIDED, receipts.summary(check))
    return str(decision), str(check), str(left)


def told(watch: Watch, receipt: str, card: str | None = None, job: str = "greeting") -> Finding:
    place = Place(watch, settings.load(watch.root))
    digest = hashlib.sha256(CARD.encode()).hexdigest() if card is None else card
    commit = Git.open(watch.root).head() or ""
    done = Job(status=Status.DONE, receipt=receipt, commit=commit, paths=("src/greet.py",), card=digest)
    state = MigrateState(jobs={job: done})
    [found] = holding.examine(place, survey.read(place), state)
    return found


@pytest.mark.guarantee("M36", "M4")
def test_the_doctor_tells_what_has_to_be_done_again(watch: Watch) -> None:
    decision, _, _ = decided(watch)
    fine = told(watch, decision)
    assert (fine.standing, fine.text) == (
        Standing.FINE,
        "those of all 1 done jobs hold (`longwatch verify` looks closer)",
    )
    assert "greeting: its card changed" in told(watch, decision, card="other").text
    repositories.write(watch.root, "src/greet.py", "GREETING = 'changed by hand'\n")
    repositories.commit_all(watch.root)
    # The job was verified at the commit before.
    place = Place(watch, settings.load(watch.root))
    before = repositories.git(watch.root, "rev-parse", "HEAD~1")
    job = Job(
        status=Status.DONE,
        receipt=decision,
        commit=before,
        paths=("src/greet.py",),
        card=hashlib.sha256(CARD.encode()).hexdigest(),
    )
    [found] = holding.examine(place, survey.read(place), MigrateState(jobs={"greeting": job}))
    assert found.standing is Standing.NOTE
    assert (
        found.text
        == "1 of 1 done jobs will be done again: greeting: src/greet.py changed since it was verified"
    )
    [none] = holding.examine(place, survey.read(place), MigrateState())
    assert none.text == "none yet: no job is done"


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def flipped(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(17 * 1024**2)


def linked(path: Path) -> None:
    copy = path.with_suffix(".copy")
    path.rename(copy)
    path.symlink_to(copy)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


Damage = Callable[[Path], object]


@pytest.mark.guarantee("M26", "M4", "M36")
@pytest.mark.parametrize("damage", [Path.unlink, emptied, longer, flipped, huge, linked, piped, folder])
@pytest.mark.parametrize("what", ["decision", "check", "evidence"])
def test_each_damage_is_named_and_the_job_is_done_again(watch: Watch, what: str, damage: Damage) -> None:
    decision, check, left = decided(watch)
    names = {"decision": decision, "check": check}
    path = watch.root / left if what == "evidence" else watch.receipts / f"{names[what]}.json"
    damage(path)
    reason = Kept(watch).fault(decision)
    assert (names[what][:12] if what in names else "cube.case.json") in reason
    assert f"greeting: {reason}" in told(watch, decision).text
    over = told(watch, decision, job="of-an-earlier-task")
    assert over.standing is Standing.WRONG
    assert f"of-an-earlier-task: {reason}" in over.text
    assert "longwatch verify" in over.mend


@pytest.mark.guarantee("M36")
def test_the_command_line_tells_it_for_a_folder_of_cards(watch: Watch) -> None:
    receipt = watches.verified(watch)
    assert "1 of 1 done jobs will be done again: greeting: its card changed" in doctor(watch)
    (watch.root / "tasks/greeting.md").unlink()
    assert "those of all 1 done jobs hold" in doctor(watch)
    longer(watch.receipts / f"{receipt}.json")
    assert f"greeting: its receipt {receipt[:12]} is damaged" in doctor(watch)


def doctor(watch: Watch) -> str:
    return watches.longwatch(watch.root, "doctor").stdout
