"""What `doctor` says of an authoritative queue, and when what was verified no longer holds. On files and a real git."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.support import migration, receipts, repositories

from longwatch.kernel.finding import Standing
from longwatch.kernel.receipt import ReceiptStore, sign_summary, sign_test_result
from longwatch.kernel.signing import SigningKey
from longwatch.kernel.watch import Watch
from longwatch.migrate import pointed, preflight, settings
from longwatch.migrate.declared import Bound
from longwatch.migrate.place import Place
from longwatch.migrate.queue import staleness, survey
from longwatch.migrate.queue.folder import Folder
from longwatch.migrate.repository.git import Git
from longwatch.migrate.state import Job, MigrateState, Status
from longwatch.migrate.steps import CardRef, Done


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = repositories.new_repository(tmp_path / "port")
    migration.lay_out(root, tmp_path / "source")
    (root / "longwatch.toml").write_text(migration.settings_text(tmp_path / "source"))
    repositories.commit_all(root)
    return Place(Watch(root), settings.load(root))


def told(place: Place, **jobs: Job) -> dict[str, tuple[Standing, str]]:
    known = MigrateState(jobs={name.replace("_", "."): job for name, job in jobs.items()}, task="shapes")
    found = pointed.examine(place, survey.read(place), known)
    return {one.name: (one.standing, one.text) for one in found}


@pytest.mark.guarantee("M36")
def test_the_doctor_tells_of_queue_completion_and_inventory(place: Place) -> None:
    fresh = told(place)
    assert fresh["queue"][1] == "shapes: 3 jobs with the handoff, 0 done; next is shapes.cube"
    assert "its manifest migration/manifests/shapes.json: not written yet" in fresh["completion"][1]
    assert fresh["inventory"][1] == "3 units: 0 verified, 3 unverified, 0 drifted, 0 invalid references"
    assert "1 done; next is shapes.ball" in told(place, shapes_cube=Job(status=Status.DONE))["queue"][1]
    written = place.repository / "migration/manifests/shapes.json"
    written.write_text(json.dumps(migration.manifest("shapes", "colors", status="open")))
    assert 'status = "open": is not "done"' in told(place)["completion"][1]
    written.write_text(json.dumps(migration.manifest("shapes", "colors")))
    assert "it is accepted" in told(place)["completion"][1]


@pytest.mark.guarantee("M36", "M32")
def test_the_doctor_names_references_that_do_not_hold(place: Place) -> None:
    assert place.source_root is not None
    (place.source_root / "cube.txt").write_text("another cube")
    (place.source_root / "red.txt").unlink()
    standing, text = told(place)["inventory"]
    assert standing is Standing.WRONG
    assert "2 invalid references" in text
    assert "source of cube: cube.txt" in text
    assert "source of red: red.txt" in text


@pytest.mark.guarantee("M4", "M26")
def test_a_receipt_no_longer_holds_when_a_source_drifts(place: Place) -> None:
    git, source = Git.open(place.repository), Folder(place.source_root or Path())
    key = SigningKey.create(place.watch.keys)
    store = ReceiptStore(place.watch.receipts)
    check = sign_test_result(store, key, receipts.DECIDED, receipts.check_result())
    decision = sign_summary(store, key, receipts.DECIDED, receipts.summary(check))
    head = git.head() or ""
    done = Done(
        job="shapes.cube",
        card="1",
        receipt=decision,
        commit=head,
        paths=("web/README",),
        references=(Bound(path="cube.txt", sha256=migration.sha(migration.SOURCES["cube"])),),
    )
    cards = (CardRef(id="shapes.cube", title="t", digest="1"),)
    looked = staleness.Sources(git=git, watch=place.watch, source=source, head=head)
    assert staleness.stale(looked, (done,), cards) == ()
    (source.root / "cube.txt").write_text("another cube")
    ((job, why),) = staleness.stale(looked, (done,), cards)
    assert job == "shapes.cube"
    assert "cube.txt" in why
    assert "its digest differs" in why
    other = msgspec.structs.replace(done, card="2")
    assert staleness.stale(looked, (other,), cards) == (("shapes.cube", "its card changed"),)


@pytest.mark.guarantee("M14", "M23")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('[["python3", "tools/handoff.py"]]', '[["python3", "-c", "pass"]]', "queue.handoff[0]"),
        (
            '[["python3", "tools/handoff.py"]]',
            '[["python3", "tools/nothing.py"]]',
            "is no file of the repository",
        ),
        ('[["python3", "tools/handoff.py"]]', '[["sh", "-c", "true"]]', "queue.handoff[0]"),
        ("source_root = ", 'source_root = "/nowhere" #', "queue.source_root = '/nowhere': is no folder here"),
        ('["python3", "tools/build.py"]', '["./firefox-tests.sh"]', "contains the word 'firefox'"),
    ],
)
def test_what_could_never_end_well_is_told_before_a_token_is_spent(
    place: Place, old: str, new: str, why: str
) -> None:
    repositories.write(place.repository, "prompt.md", "")
    path = place.watch.config
    path.write_text(path.read_text().replace(old, new, 1))
    found = preflight.problems(Place(place.watch, settings.load(place.repository)))
    assert why in "\n".join(f"{one.where}: {one.mend}" for one in found)
