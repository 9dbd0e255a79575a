"""The tutorials, typed in as they are written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longwatch.learn.student.cache import cache_folder
from longwatch.learn.student.fetch import SMOLLM2

pytestmark = pytest.mark.e2e

DOCS = Path(__file__).parents[2] / "docs" / "tutorials"
BLOCK = re.compile(
    r"^(?:<!-- exit code (?P<code>\d+) -->\n)?```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(name: str) -> Iterator[tuple[str, int]]:
    text = (DOCS / name).read_text(encoding="utf-8")
    found = [(match["text"], int(match["code"] or 0)) for match in BLOCK.finditer(text)]
    assert len(found) == text.count("\n```sh"), "a block is not read"
    yield from found


class Terminal:
    """One shell after another, each where the last one ended."""

    def __init__(self, home: Path) -> None:
        self.home, self.where = home, home
        program = home / "bin" / "longwatch"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m longwatch.cli.main "$@"\n')
        program.chmod(0o755)

    def type(self, text: str, *, timeout_s: float) -> tuple[int, str]:
        """Return the exit code of the first command that fails, or 0, and what was printed."""
        script = f"set -e\ntrap 'pwd > {self.home}/where' EXIT\n{text}"
        finished = subprocess.run(
            ["sh", "-c", script],
            cwd=self.where,
            env={
                **os.environ,
                "HOME": str(self.home),
                "PATH": f"{self.home}/bin:{os.environ['PATH']}",
                "COLUMNS": "160",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        here = self.home / "where"
        assert here.exists(), finished
        self.where = Path(here.read_text().strip())
        return finished.returncode, finished.stdout + finished.stderr


def follow(terminal: Terminal, name: str, *, timeout_s: float) -> str:
    """Type in a tutorial, and return everything that was printed."""
    printed = ""
    for text, expected in blocks(name):
        code, said = terminal.type(text, timeout_s=timeout_s)
        assert code == expected, f"{text}\n{said}"
        printed += said
    return printed


@pytest.mark.guarantee("M6", "M22", "M27")
def test_an_agent_that_cannot_be_trusted(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    printed = follow(terminal, "migrate.md", timeout_s=240)
    assert "tax: verified" in printed
    assert "stock: attempt 1 refused" in printed
    assert "Longwatch-Receipt" in printed
    assert "everything holds" in printed
    assert (terminal.where / "report.html").is_file()
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=terminal.where, capture_output=True, text=True, check=True
    )
    assert log.stdout.splitlines() == ["Tell the price with tax", "A shop"]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_model_that_has_to_prove_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_folder()
    if not (cache / f"{SMOLLM2.member_sha256}.gguf").is_file():
        pytest.skip("`longwatch fetch` brings the student, 92 MB")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    terminal = Terminal(tmp_path)
    printed = follow(terminal, "learn.md", timeout_s=3000)
    assert "bound before training" in printed
    assert "Round 1: " in printed
    assert "Experiment 1: " in printed
    assert "everything holds" in printed
    assert "Experiment 1" in (terminal.where / "report.html").read_text()
