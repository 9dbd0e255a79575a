"""An authoritative queue that is whole is understood; damaged in any small way it is refused by name."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.support import migration
from tests.support.migration import manifest

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.queue import accounting, authority
from longwatch.migrate.queue.authority import Authority
from longwatch.migrate.queue.folder import Folder

PROFILE = migration.profile()
START, SHAPES = "migration/manifests/start.json", "migration/manifests/shapes.json"
BACKLOG, INVENTORY = "migration/backlog/shapes.json", "migration/inventory.json"
ROUTES, PARITY, QUEUE = "migration/routes.json", "migration/parity.json", "migration/QUEUE.md"
CARD = "migration/tasks/shapes.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return migration.lay_out(tmp_path / "port", tmp_path / "source")


def read(root: Path, before: str = "", **queue: object) -> Authority:
    changed = msgspec.structs.replace(PROFILE.queue, **queue)
    return authority.read(msgspec.structs.replace(PROFILE, queue=changed), Folder(root), before=before)


def refusal(root: Path, before: str = "", **queue: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read(root, before, **queue)
    return str(caught.value)


def change(root: Path, path: str, edit: Callable[[dict], object]) -> None:
    value = json.loads((root / path).read_text())
    edit(value)
    (root / path).write_text(json.dumps(value))


@pytest.mark.guarantee("M1", "M2", "M3")
def test_the_current_task_becomes_jobs_by_priority_and_a_handoff(root: Path) -> None:
    found = read(root)
    assert found.pointer.task == "shapes"
    assert [card.id for card in found.cards] == ["shapes.cube", "shapes.ball", "shapes.handoff"]
    cube, _, last = found.cards
    assert (cube.owned, cube.units, cube.body) == (("web/cube.txt",), ("cube",), "Port the shapes.")
    assert last.finishes == "shapes"
    assert last.after == ("shapes.cube", "shapes.ball")
    assert found.account.units == {"cube", "ball", "red"}


@pytest.mark.guarantee("M3")
def test_a_task_without_jobs_is_its_own_one_job(root: Path) -> None:
    change(root, BACKLOG, lambda value: value.update(jobs=[]))
    assert [card.id for card in read(root).cards] == ["shapes", "shapes.handoff"]
    assert [card.id for card in read(root, backlog="").cards] == ["shapes", "shapes.handoff"]


@pytest.mark.guarantee("M3")
def test_priorities_may_be_words(root: Path) -> None:
    words = ("now", "later")
    change(
        root,
        BACKLOG,
        lambda value: [job.update(priority=w) for job, w in zip(value["jobs"], words, strict=True)],
    )
    assert [card.id for card in read(root, priorities=words).cards][:2] == ["shapes.ball", "shapes.cube"]
    assert "must be one of queue.priorities: soon" in refusal(root, priorities=("soon",))
    assert "must be a whole number, or set queue.priorities" in refusal(root)


@pytest.mark.guarantee("M17", "M4")
@pytest.mark.parametrize("path", [CARD, START, BACKLOG])
def test_the_digest_of_a_job_binds_card_parent_and_its_entry(root: Path, path: str) -> None:
    before = read(root).cards
    if path == CARD:
        (root / CARD).write_text((root / CARD).read_text() + "More.\n")
    elif path == START:
        change(root, START, lambda value: value["acceptance"][0].update(criterion="other"))
    else:
        change(root, BACKLOG, lambda value: value["jobs"][0].update(title="Other"))
    after = read(root).cards
    differing = [a.id for a, b in zip(before, after, strict=True) if a.digest != b.digest]
    assert differing == (["shapes.ball", "shapes.handoff"] if path == BACKLOG else [a.id for a in before])


HEAD = "| Current task | Card | Parent manifest |\n| --- | --- | --- |\n"
ROW = f"| shapes | {CARD} | {START} |\n"


@pytest.mark.guarantee("M1", "M2")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no table with the columns 'Current task', 'Card', 'Parent manifest'"),
        (HEAD.replace("Card", "Cards") + ROW, "no table with the columns"),
        (HEAD, "line 1: the table has no row"),
        (HEAD + ROW + ROW, "line 4: is a second row"),
        (HEAD + ROW + "\n" + HEAD + ROW, "2 tables (lines 1, 5)"),
        (HEAD.replace("| Card", "| Card | Card") + ROW, "column 'Card': stands twice"),
        (HEAD + f"| shapes | {CARD} |\n", "line 3: has 2 cells where the heading has 3"),
        (HEAD + ROW.replace("shapes |", "Sha/pes |", 1), 'line 3: Current task = "Sha/pes": must look like'),
        (HEAD + ROW.replace("| shapes |", "| |"), 'line 3: Current task = ""'),
        (HEAD + ROW.replace(CARD, "../card.md"), 'line 3: Card = "../card.md"'),
        (HEAD + ROW.replace(CARD, "/etc/passwd"), 'line 3: Card = "/etc/passwd"'),
        (HEAD + ROW.replace(CARD, "none"), "must be `none` together with 'Current task'"),
        (HEAD + ROW.replace("| shapes |", "| none |"), "must be `none` together with 'Current task'"),
        (HEAD + ROW.replace(START, ".git/config"), "reaches into the git folder"),
        (HEAD + ROW.replace(START, "migration/none.json"), "none.json: is missing"),
        (HEAD + ROW.replace(CARD, "migration/tasks/none.md"), "migration/tasks/none.md: is missing"),
        (
            HEAD + ROW.replace(CARD, "migration/tasks/colors.md"),
            'id = "colors": is not the current task shapes',
        ),
        (HEAD + ROW.replace("| shapes |", "| colors |"), "does not authorise colors"),
        ("```\n" + HEAD + ROW + "```\n", "no table with the columns"),
        (HEAD.replace("---", "xxx") + ROW, "no table with the columns"),
        (HEAD + ROW.replace("shapes", "sha\0pes"), "line 3: has a NUL character"),
        (HEAD + "\udcff" + ROW, "line 3: is not UTF-8"),
    ],
)
def test_a_damaged_pointer_is_refused_with_line_value_and_mend(root: Path, text: str, why: str) -> None:
    (root / QUEUE).write_bytes(text.encode("utf-8", "surrogateescape"))
    said = refusal(root)
    assert why in said
    assert "migration/" in said


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("path", [QUEUE, CARD, START, BACKLOG, INVENTORY, ROUTES, PARITY])
def test_a_file_of_the_queue_that_is_missing_or_no_file_is_refused(root: Path, path: str) -> None:
    (root / path).unlink()
    assert f"{path}: is missing" in refusal(root)
    (root / path).mkdir()
    assert path in refusal(root)
    (root / path).rmdir()
    (root / path).symlink_to("/etc/hostname")
    assert path in refusal(root)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(16 * 1024**2 + 1)


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def copied(path: Path) -> None:
    """A link to the very file, elsewhere in the repository."""
    path.symlink_to(path.with_suffix(".whole"))


@pytest.mark.guarantee("M1", "M16", "K34")
@pytest.mark.parametrize("path", [QUEUE, CARD, START, BACKLOG, INVENTORY, ROUTES, PARITY])
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (fifo, "is a FIFO: a regular file is needed there"),
        (huge, "has 16777217 bytes, more than the allowed"),
        (circle, "is a circle of symbolic links"),
        (dangling, "is a symbolic link: a regular file is needed there"),
        (copied, "is a symbolic link: a regular file is needed there"),
        (Path.mkdir, "is a folder: a regular file is needed there"),
    ],
)
def test_what_is_no_plain_file_is_never_read(
    root: Path, path: str, place: Callable[[Path], object], why: str
) -> None:
    (root / path).rename((root / path).with_suffix(".whole"))
    place(root / path)
    said = refusal(root)
    assert why in said
    assert f"{path}: cannot be read" in said


@pytest.mark.guarantee("M1")
@pytest.mark.parametrize("path", [START, BACKLOG, INVENTORY, ROUTES, PARITY])
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "is no JSON"),
        (b"{", "line 1, column 2: is no JSON"),
        (b"[]", "all of it = []: must be a table: write its keys in { }"),
        (b"null", "all of it = null: must be a table"),
        (b"\xef\xbb\xbf{}", "line 1: begins with a byte order mark: save it without"),
        (b'{"x": ' + b"1" * 5000 + b"}", "holds a number with too many digits"),
        (b'{"x": 1e999}', "x ="),
        (b'{"\\ud800": "\\udfff"}', "is no known key"),
        (b"{}", "is missing: add it"),
        (b'{"x": 1, "x": 2}', "has the key 'x' twice"),
        (b'{"x": NaN}', "holds NaN"),
        (b'{"surprise": 1}', "surprise = 1: is no known key"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'"\xff"', "line 1: is not UTF-8"),
    ],
)
def test_a_document_that_has_no_form_is_refused(root: Path, path: str, raw: bytes, why: str) -> None:
    (root / path).write_bytes(raw)
    said = refusal(root)
    assert path in said
    assert why in said


@pytest.mark.guarantee("M1", "M32")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"status": "open"}, 'status = "open": is not "done"'),
        ({"status": "deferred"}, 'is not "done"'),
        ({"status": "finished"}, "is none of the choices"),
        ({"nextTask": "colors"}, "does not authorise shapes"),
        ({"nextTask": None}, "does not authorise shapes"),
        ({"nextTask": "start"}, "is the task itself"),
        ({"nextTask": 7}, "nextTask = 7"),
        ({"task": "first"}, "is the manifest of first, which belongs at migration/manifests/first.json"),
        ({"task": "../start"}, 'task = "../start"'),
        ({"acceptance": []}, "acceptance: is empty"),
        ({"acceptance": [{"criterion": "it works", "met": False}]}, "acceptance[0]: is not met: it works"),
        ({"acceptance": [{"criterion": "it works", "met": "yes"}]}, "must be true or false"),
        ({"acceptance": [{"criterion": " ", "met": True}]}, "say what was to be met"),
        ({"deferred": ["edges"]}, "puts something off"),
        ({"artifacts": [{"path": "../x", "sha256": "0" * 64, "kind": "a"}]}, "artifacts[0].path"),
        ({"artifacts": [{"path": "x", "sha256": "0", "kind": "a"}]}, "must be a SHA-256"),
        ({"artifacts": [{"path": "x", "sha256": "A" * 64, "kind": "a"}]}, "must be a SHA-256"),
        ({"artifacts": [{"path": "x", "sha256": "0" * 64, "kind": "a"}] * 2}, '"x": stands 2 times'),
        ({"nexttask": "shapes"}, "did you mean `nextTask`?"),
    ],
)
def test_a_damaged_parent_manifest_is_refused(root: Path, changed: dict[str, object], why: str) -> None:
    change(root, START, lambda value: value.update(changed))
    said = refusal(root)
    assert START in said
    assert why in said


def job(**changed: object) -> Callable[[dict], object]:
    return lambda value: value["jobs"][0].update(changed)


@pytest.mark.guarantee("M1", "M3")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda value: value.update(task="colors"), 'task = "colors": is not the current task shapes'),
        (
            job(id="cube"),
            'jobs[1].id = "cube": is the id of another job too (migration/backlog/shapes.json: jobs[0].id)',
        ),
        (job(id="CUBE"), "must look like"),
        (job(id="a/b"), "must look like"),
        (job(id="handoff"), "is the name of the job that finishes a task"),
        (job(title=""), "must be one line"),
        (job(title="a\nb"), "must be one line"),
        (job(owned=[]), "owned: is empty"),
        (job(owned=["../x"]), "must not have a `..`"),
        (job(owned=[".git/config"]), "must not name .git"),
        (job(owned=["a["]), "cannot be understood"),
        (job(owned=["migration/inventory.json"]), "is the queue's or the policy's"),
        (job(owned=["Migration/Inventory.json"]), "is the queue's or the policy's"),
        (job(owned=["oracle/harness.py"]), "is the queue's or the policy's"),
        (job(after=["nobody"]), '"nobody": is no other job'),
        (job(after=["ball"]), '"ball": is no other job'),
        (
            lambda value: [
                one.update(after=[{"ball": "cube", "cube": "ball"}[one["id"]]]) for one in value["jobs"]
            ],
            "wait for each other",
        ),
        (job(units=[]), "units: is empty"),
        (job(units=["sphere"]), '"sphere": is no unit of the inventory'),
        (job(units=["ball", "ball"]), '"ball": stands 2 times'),
        (job(priority="high"), "must be a whole number"),
        (job(priority=1.5), "must be"),
        (job(tests="none"), "is none of the choices"),
        (job(allow=["everything"]), "is none of the choices"),
        (job(owner="me"), "owner"),
    ],
)
def test_a_damaged_backlog_is_refused(root: Path, edit: Callable[[dict], object], why: str) -> None:
    change(root, BACKLOG, edit)
    assert why in refusal(root)


def unit(**changed: object) -> Callable[[dict], object]:
    return lambda value: value["units"][0].update(changed)


@pytest.mark.guarantee("M13", "M16")
@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda value: value.update(units=[]), "units: is empty"),
        (lambda value: value["units"].append(value["units"][0]), '"cube": stands 2 times'),
        (unit(id=""), "units[0].id"),
        (unit(id="a b"), "units[0].id"),
        (unit(status="done"), "is none of the choices"),
        (unit(status="verified"), "is said to be verified: nothing shows it"),
        (unit(references=[]), "name the sources of cube"),
        (unit(references=[{"path": "/etc/passwd", "sha256": "0" * 64}]), "references[0].path"),
        (unit(references=[{"path": "a", "sha256": "0" * 63}]), "must be a SHA-256"),
        (unit(references=[{"path": "a"}]), "sha256: is missing"),
        (unit(evidence=[{"path": "a\nb", "sha256": "0" * 64}]), "evidence[0].path"),
        (unit(verified=True), "verified"),
    ],
)
def test_a_damaged_inventory_is_refused(root: Path, edit: Callable[[dict], object], why: str) -> None:
    change(root, INVENTORY, edit)
    said = refusal(root)
    assert INVENTORY in said
    assert why in said


@pytest.mark.guarantee("M13")
@pytest.mark.parametrize(
    ("path", "edit", "why"),
    [
        (ROUTES, lambda value: value["routes"].append(value["routes"][0]), '"/add/cube": stands 2 times'),
        (ROUTES, lambda value: value["routes"][0].update(route="add"), "must begin with /"),
        (ROUTES, lambda value: value["routes"][0].update(route="/a b"), "must begin with /"),
        (ROUTES, lambda value: value["routes"][0].update(units=[]), "name the units behind /add/cube"),
        (ROUTES, lambda value: value["routes"][0].update(units=["cone"]), '"cone": is no unit'),
        (ROUTES, lambda value: value["routes"][0].update(units=["cube", "cube"]), "stands 2 times"),
        (PARITY, lambda value: value["ports"].append({"unit": "cone", "files": ["a"]}), '"cone": is no unit'),
        (PARITY, lambda value: value["ports"].append({"unit": "cube", "files": []}), "name the files"),
        (PARITY, lambda value: value["ports"].append({"unit": "cube", "files": ["../a"]}), "ports[0].files"),
        (
            PARITY,
            lambda value: value["ports"].extend([{"unit": "cube", "files": ["a"]}] * 2),
            "stands 2 times",
        ),
    ],
)
def test_a_damaged_catalog_or_parity_map_is_refused(
    root: Path, path: str, edit: Callable[[dict], object], why: str
) -> None:
    change(root, path, edit)
    said = refusal(root)
    assert path in said
    assert why in said


@pytest.mark.guarantee("M1", "M13")
def test_everything_that_is_wrong_is_told_at_once(root: Path) -> None:
    change(root, START, lambda value: value.update(status="open"))
    change(root, BACKLOG, job(title=""))
    change(root, INVENTORY, unit(status="verified"))
    (root / CARD).unlink()
    said = refusal(root)
    assert all(path in said for path in (START, BACKLOG, INVENTORY, CARD))


@pytest.mark.guarantee("M5")
def test_the_queue_moves_only_through_an_accepted_handoff(root: Path) -> None:
    def point(task: str, parent: str) -> None:
        card = f"migration/tasks/{task}.md" if task != "none" else task
        (root / QUEUE).write_text(f"{HEAD}| {task} | {card} | {parent} |\n")

    assert read(root, before="shapes").pointer.task == "shapes"
    # Another parent that authorises the successor is not the task that was current.
    (root / START).write_text(json.dumps(manifest("start", "colors")))
    point("colors", START)
    assert "moved from shapes to colors without an accepted handoff" in refusal(root, "shapes")
    for broken in ({"status": "open"}, {"deferred": ["x"]}, {"acceptance": []}, {"nextTask": "other"}):
        (root / SHAPES).write_text(json.dumps(manifest("shapes", "colors") | broken))
        point("colors", SHAPES)
        assert SHAPES in refusal(root, "shapes")
    (root / SHAPES).write_text(json.dumps(manifest("shapes", "colors")))
    assert read(root, before="shapes").pointer.task == "colors"
    # The end of the queue has to be authorised as well.
    point("none", SHAPES)
    assert "does not authorise the end of the queue" in refusal(root, "shapes")
    (root / SHAPES).write_text(json.dumps(manifest("shapes", None)))
    ended = read(root, before="shapes")
    assert ended.pointer.ended
    assert ended.cards == ()


@pytest.mark.guarantee("M32", "M36")
def test_the_inventory_proves_only_what_is_there(root: Path) -> None:
    repository, source = Folder(root), Folder(root.parent / "source")

    def proof() -> accounting.InventoryProof:
        return accounting.prove(read(root).account.inventory, repository, source)

    assert (proof().unverified, proof().complete) == (("cube", "ball", "red"), False)
    (root / "shown.txt").write_text("shown")
    shown = [{"path": "shown.txt", "sha256": migration.sha("shown")}]
    change(
        root,
        INVENTORY,
        lambda value: [one.update(status="verified", evidence=shown) for one in value["units"]],
    )
    assert proof().complete
    (source.root / "cube.txt").write_text("another cube\n")
    assert proof().drifted == ("cube",)
    assert "source of cube: cube.txt" in proof().open_units()
    (root / "shown.txt").unlink()
    assert proof().drifted == ("cube", "ball", "red")
    assert any("evidence of red: shown.txt is no file" in one for one in proof().invalid)
