"""The reference pages say what the source says."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from longwatch.cli import main
from longwatch.kernel.errors import ExitCode
from longwatch.kernel.lifecycle import EXIT_CODES, Verdict
from longwatch.learn.settings import LearnSettings
from longwatch.learn.training.results import Progress, Report
from longwatch.migrate.commands.refusals import refusals
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.steps import Refusal

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / "docs/reference"
SOURCES = sorted((ROOT / "src/longwatch").rglob("*.py"))
FILLED = {
    "watch.{halt.verdict}": [f"watch.{verdict}" for verdict in Verdict],
    "watch.{verdict}": [f"watch.{verdict}" for verdict in Verdict],
    "training.{type(report).__name__.lower()}": [
        f"training.{kind.__name__.lower()}" for kind in get_args(Report) if kind is not Progress
    ],
    "attempt.refused.{found.kind}": [f"attempt.refused.{kind}" for kind in Refusal],
}
"""Kinds that are put together: what they can become."""


def written(node: ast.expr) -> str:
    """The text of a constant or of an f-string."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def kinds_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            function = ast.unparse(node.func)
            if function in {"Note", "journal.Note"} or function.endswith("work.note"):
                kind = written(node.args[0])
                yield from FILLED.get(kind, [kind] if kind else [])


def documented() -> set[str]:
    page = (REFERENCE / "events.md").read_text()
    return set(re.findall(r"^\| `([a-z_.]+)` \|", page, re.MULTILINE))


def test_the_search_for_kinds_can_find_them():
    code = "Note('a.b', 'x')\nwork.note('c.d', 'y')\nself.work.note('e.f', f'z')\nNote(f'watch.{verdict}', r)"
    found = set(kinds_in(ast.parse(code)))
    assert {"a.b", "c.d", "e.f", "watch.complete"} <= found


@pytest.mark.guarantee("K10")
def test_every_kind_of_event_stands_in_the_page_and_no_other():
    found = {kind for path in SOURCES for kind in kinds_in(ast.parse(path.read_text()))}
    assert "{" not in "".join(found)
    assert found == documented()


@pytest.mark.guarantee("K15")
def test_every_exit_code_stands_in_the_page_and_no_other():
    page = (REFERENCE / "exit-codes.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([A-Z_]+) \|", page, re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(code.value, code.name) for code in ExitCode}
    phases = re.findall(r"^\| `([a-z_]+)` \| (\d+) \|", page, re.MULTILINE)
    assert {(phase, int(code)) for phase, code in phases} == {
        (p.value, c.value) for p, c in EXIT_CODES.items()
    }


@pytest.mark.guarantee("K10")
def test_the_guide_names_only_commands_that_there_are():
    guide = (ROOT / "docs/guide.md").read_text()
    named = set(re.findall(r"^ {4}longwatch ([a-z]+)|`longwatch ([a-z]+)", guide, re.MULTILINE))
    verbs = {one or other for one, other in named}
    registered = {command.callback.__name__ for command in main.app.registered_commands if command.callback}
    assert {"doctor", "run", "status", "reconcile", "verify", "events"} <= verbs
    assert verbs <= registered | {"init"}


@pytest.mark.guarantee("K10")
def test_the_guide_names_only_options_that_there_are():
    guide = (ROOT / "docs/guide.md").read_text()
    source = "".join(path.read_text() for path in (ROOT / "src/longwatch/cli").glob("*.py"))
    options = set(re.findall(r"longwatch [a-z ]*(--[a-z-]+)", guide))
    assert "--accept" in options
    assert [option for option in options if f'"{option}"' not in source] == []


def phases() -> Iterator[str]:
    for path in (ROOT / "src/longwatch/migrate").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("work.span"):
                yield written(node.args[0]).replace("check:{check.kind}", "check:KIND")


@pytest.mark.guarantee("M36")
def test_every_phase_of_a_migrate_watch_is_in_the_page_about_timings():
    page = (REFERENCE / "timings.md").read_text()
    found = set(phases())
    assert {"worker", "handoff", "check:KIND", "digest"} <= found
    assert [phase for phase in sorted(found) if f"`{phase}`" not in page] == []


class WithEverything:
    """A repository that has every file that a page names."""

    def is_file(self, path: str) -> bool:
        return "." in path

    def exists(self, path: str) -> bool:
        return "." in path

    def leads_outside(self, path: str) -> bool:
        return path.startswith("..")

    def package_scripts(self, folder: str) -> frozenset[str]:
        return frozenset({"test", "check"} if folder == "" else ())


def settings_in_pages() -> Iterator[tuple[str, dict[str, Any]]]:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^ *```toml\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL):
            yield page.name, tomllib.loads(block)


@pytest.mark.guarantee("M14")
def test_every_check_in_the_pages_may_be_a_check_and_every_table_is_one_of_the_settings():
    found = tuple(settings_in_pages())
    checks = [(page, one["argv"]) for page, tables in found for one in tables.get("checks", ())]
    assert len(checks) >= 2
    refused = [(page, refusals(tuple(argv), "", repository=WithEverything())) for page, argv in checks]
    assert [(page, why) for page, why in refused if why] == []
    known = {*MigrateSettings.__struct_fields__, *LearnSettings.__struct_fields__}
    tables = {name for page, tables in found for name, value in tables.items() if isinstance(value, dict)}
    assert {"readiness", "student", "curriculum", "profile"} <= tables <= known
