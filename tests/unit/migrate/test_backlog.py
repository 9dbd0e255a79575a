"""A backlog as a Markdown table says what the same one in JSON says; damaged it is refused with file, line and mend."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.support import migration

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.queue import authority, backlog
from longwatch.migrate.queue.authority import Authority
from longwatch.migrate.queue.backlog import Listed
from longwatch.migrate.queue.folder import Folder

PROFILE = migration.profile()
PATH = "migration/backlog/shapes.md"
HEAD = "| id | title | owned | priority | units |\n| --- | --- | --- | --: | --- |\n"
BALL = "| ball | Port it | `web/ball.txt` | 0 | ball |\n"
CUBE = "| `cube` | Port it | web/cube.txt | 5 | `cube` |\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return migration.lay_out(tmp_path / "port", tmp_path / "source")


def authorised(root: Path, path: str) -> Authority:
    queue = msgspec.structs.replace(PROFILE.queue, backlog=path)
    return authority.read(msgspec.structs.replace(PROFILE, queue=queue), Folder(root))


def refusal(root: Path, text: str | bytes) -> str:
    (root / PATH).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        authorised(root, "migration/backlog/{task}.md")
    return str(caught.value)


@pytest.mark.guarantee("M3")
def test_a_table_authorises_what_the_same_jobs_in_json_authorise(root: Path) -> None:
    (root / PATH).write_text(f"# Jobs\n\nIn words.\n\n{HEAD}{BALL}{CUBE}\n| other | table |\n| --- | --- |\n")
    table = authorised(root, "migration/backlog/{task}.md").cards
    listed = authorised(root, "migration/backlog/{task}.json").cards
    assert [card.id for card in table] == ["shapes.cube", "shapes.ball", "shapes.handoff"]
    assert [card.digest for card in table] == [card.digest for card in listed]
    assert table[0].path == "migration/backlog/shapes.md: cube"


@pytest.mark.guarantee("M3")
def test_every_key_of_a_job_is_a_column() -> None:
    job = {
        "id": "cube",
        "title": "Port a|b",
        "owned": ["web/**", "tests/*"],
        "text": "With care.",
        "priority": "soon",
        "after": ["ball", "red"],
        "units": ["cube"],
        "checks": ["lint", "positive"],
        "allow": ["change-tests", "skip-tests"],
        "tests": "optional",
    }
    cells = [
        ", ".join(f"`{one}`" for one in value) if isinstance(value, list) else value for value in job.values()
    ]
    rows = [[key.title() for key in job], ["---"] * len(job), [cell.replace("|", "\\|") for cell in cells]]
    text = "\r\n".join("|" + "|".join(row) + "|" for row in rows)
    found = backlog.read("b.md", b"\xef\xbb\xbf" + text.encode(), "shapes")
    assert isinstance(found, Listed)
    assert json.loads(msgspec.json.encode(found.backlog)) == {"task": "shapes", "jobs": [job]}


@pytest.mark.guarantee("M3")
def test_a_table_without_rows_leaves_the_task_its_own_one_job(root: Path) -> None:
    (root / PATH).write_text(HEAD)
    assert [card.id for card in authorised(root, PATH).cards] == ["shapes", "shapes.handoff"]


@pytest.mark.guarantee("M1", "M3")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no table with the columns 'id', 'title', 'owned': exactly one must list the jobs"),
        ("Nothing but words.\n", "no table with the columns"),
        (HEAD.replace("owned", "own"), "no table with the columns"),
        (HEAD.replace("---", "xxx") + CUBE, "no table with the columns"),
        ("```\n" + HEAD + CUBE + "```\n", "no table with the columns"),
        (HEAD + CUBE + "\n" + HEAD + BALL, "2 tables (lines 1, 5) with the columns"),
        (HEAD.replace("units", "unit") + CUBE, "line 1: column 'unit': is no key of a job; did you mean `units`?"),
        (HEAD.replace("units", "") + CUBE, "line 1: column '': is no key of a job"),
        (HEAD.replace("units", "Title") + CUBE, "line 1: column 'title': stands twice"),
        (HEAD + CUBE + "| ball | Port it |\n", "line 4: has 2 cells where the heading has 5"),
        (HEAD + CUBE.replace("Port it", "Port a|b"), "line 3: has 6 cells where the heading has 5"),
        (HEAD + BALL + CUBE.replace("cube", "ball"), f'line 4: id = "ball": is the id of another job too ({PATH}: line 3'),
        (HEAD + CUBE.replace("`cube` | Port", "CUBE | Port"), 'line 3: id = "CUBE": must look like'),
        (HEAD + CUBE.replace("`cube` | Port", " | Port"), 'line 3: id = "": must look like'),
        (HEAD + CUBE.replace("`cube` | Port", "handoff | Port"), "is the name of the job that finishes a task"),
        (HEAD + CUBE.replace("Port it", ""), 'line 3: title = "": must be one line'),
        (HEAD + CUBE.replace("web/cube.txt", ""), "line 3: owned: is empty: list the paths"),
        (HEAD + CUBE.replace("web/cube.txt", "../cube"), 'line 3: owned = "../cube": must not have a `..`'),
        (HEAD + CUBE.replace("web/cube.txt", "migration/routes.json"), "line 3: owned = \"migration/routes.json\": is the queue's"),
        (HEAD + CUBE.replace(" 5 ", " high "), 'line 3: priority = "high": must be a whole number'),
        (HEAD + CUBE.replace(" 5 ", " 1.5 "), 'line 3: priority = "1.5": must be a whole number'),
        (HEAD + CUBE.replace(" 5 ", f" {10**30} "), "line 3: priority ="),
        (HEAD + CUBE.replace("`cube` |\n", "cone |\n"), 'line 3: units = "cone": is no unit of the inventory'),
        (HEAD + CUBE.replace("`cube` |\n", "cube, cube |\n"), 'line 3: units = "cube": stands 2 times'),
        (HEAD + CUBE.replace("`cube` |\n", "|\n"), "line 3: units: is empty: name the units that cube ports"),
        (HEAD.replace("units", "after") + CUBE.replace("`cube` |\n", "cube |\n"), 'line 3: after = "cube": is no other job'),
        (HEAD.replace("units", "tests") + CUBE.replace("`cube` |\n", "none |\n"), 'line 3: tests = "none": is none of the choices'),
        (HEAD.replace("units", "allow") + CUBE.replace("`cube` |\n", "a, b |\n"), 'line 3: allow[0] = "a": is none of the choices'),
        (HEAD + CUBE + "\0", "line 4: has a NUL character"),
        (HEAD.encode() + b"\xff", "line 3: is not UTF-8 text"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_refused_with_file_line_value_and_mend(
    root: Path, text: str | bytes, why: str
) -> None:
    said = refusal(root, text)
    assert why in said
    assert PATH in said


@pytest.mark.guarantee("M3")
def test_everything_that_is_wrong_with_the_jobs_is_told_at_once(root: Path) -> None:
    said = refusal(root, HEAD + BALL.replace("Port it", "") + CUBE.replace("web/cube.txt", "/.git/x"))
    assert "line 3: title" in said
    assert "line 4: owned" in said
