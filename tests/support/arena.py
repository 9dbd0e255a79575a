"""A person's repository that a watch works on, made and run through the real command line.

The worker is one program of ours. Each task card names in its body what the worker does at its first attempt
(`cheat: NAME`, a function in one of the programs below `cheats/`); at a later attempt at the same card it is honest.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tomlkit

from tests.support import repositories

RUN_S = 850.0
"""Longer than any run here needs, shorter than the limit of a test that waits for it."""
_CHEATS = Path(__file__).parent / "cheats"
_LONGWATCH = (sys.executable, "-m", "longwatch.cli.main")


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of the command line."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Arena:
    """A watch in a repository of its own."""

    root: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def call(self, *arguments: str, timeout_s: float = RUN_S) -> Ran:
        """Run `longwatch` here."""
        finished = subprocess.run(
            [*_LONGWATCH, *arguments],
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            check=False,
            timeout=timeout_s,
        )
        return Ran(
            finished.returncode,
            finished.stdout.decode("utf-8", "replace"),
            finished.stderr.decode("utf-8", "replace"),
        )

    def environment(self) -> dict[str, str]:
        """What the person's shell has: the tools of the environment that the tests run in come first."""
        own = str(Path(sys.executable).parent)
        return {
            **os.environ,
            "PATH": f"{own}:{os.environ.get('PATH', '')}",
            "COLUMNS": "200",
            **self.variables,
        }

    def configure(self, **tables: Mapping[str, object]) -> None:
        """Set keys in tables of longwatch.toml, as a person does with an editor."""
        path = self.root / "longwatch.toml"
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
        for name, values in tables.items():
            if name not in document:
                document[name] = tomlkit.table()
            for key, value in values.items():
                document[name][key] = value  # type: ignore[index]
        path.write_text(tomlkit.dumps(document), encoding="utf-8")

    def checks(self, *checks: Mapping[str, object]) -> None:
        """Replace the checks that were found."""
        path = self.root / "longwatch.toml"
        document = tomlkit.parse(path.read_text(encoding="utf-8"))
        document["checks"] = tomlkit.aot()
        for check in checks:
            table = tomlkit.table()
            table.update(check)
            document["checks"].append(table)  # type: ignore[union-attr]
        path.write_text(tomlkit.dumps(document), encoding="utf-8")

    def card(self, name: str, cheat: str = "honest", *lines: str) -> None:
        """Write a task card; `lines` are further lines of its front matter."""
        head = "\n".join((f"id: {name}", f"title: Do {name}", *lines))
        repositories.write(self.root, f"tasks/{name}.md", f"---\n{head}\n---\n\ncheat: {cheat}\n")

    def commit(self, message: str = "The watch") -> str:
        """Commit everything that is there, as the person."""
        return repositories.commit_all(self.root, message)

    def head(self) -> str:
        """The commit that is checked out."""
        return repositories.git(self.root, "rev-parse", "HEAD")

    def subjects(self) -> list[str]:
        """The first lines of all commits, oldest first."""
        return repositories.git(self.root, "log", "--reverse", "--format=%s").splitlines()

    def events(self) -> list[dict[str, str]]:
        """Everything that the watch says happened."""
        ran = self.call("events", "--json")
        assert ran.code == 0, ran.err
        return [json.loads(line) for line in ran.out.splitlines()]

    def status(self) -> dict[str, object]:
        """The status, as other programs read it."""
        ran = self.call("status", "--json")
        return dict(json.loads(ran.out))

    def told(self, job: str) -> list[tuple[str, str]]:
        """Kind and text of the events about one job."""
        mine = re.compile(rf"(?<![\w.-]){re.escape(job)}(?![\w-])")
        return [(event["kind"], event["text"]) for event in self.events() if mine.search(event["text"])]


def make(
    root: Path,
    files: Mapping[str, str | bytes],
    cheats: str = "honest",
    *,
    variables: Mapping[str, str] | None = None,
    **told: str,
) -> Arena:
    """Make a repository with these files, committed, and a watch in it whose worker knows this set of cheats.

    What the worker is `told` stands on its command line.
    """
    repositories.new_repository(root / "repo")
    for path, content in files.items():
        repositories.write(root / "repo", path, content, 0o755 if path.endswith(".sh") else 0o644)
    repositories.commit_all(root / "repo", "As it was")
    arena = Arena(root / "repo", variables or {})
    words = (f"{key}={value}" for key, value in {"real": str(arena.root), **told}.items())
    argv = ("python3", str(_CHEATS / f"{cheats}.py"), str(_CHEATS / "honest.py"), *words)
    ran = arena.call(
        "init", "migrate", "--worker", "command", *(word for one in argv for word in ("--argv", one))
    )
    assert ran.code == 0, ran.err
    arena.configure(worker={"retry_delay_s": 0.0})
    return arena


def living(word: str) -> list[str]:
    """Command lines of all processes that have this word in theirs, zombies left out."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if word in line:
            found.append(f"{process.name}: {line}")
    return found


def of_cookies(root: Path) -> list[str]:
    """Processes that carry an owner's mark and stand in this folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            marked = process.name.isdigit() and b"LONGWATCH_COOKIE=" in (process / "environ").read_bytes()
            if marked and str((process / "cwd").readlink()).startswith(str(root)):
                found.append(process.name)
        except OSError:
            continue
    return found


# Plugins that happen to be installed beside pytest cost more than everything else in a run of a few tests.
_PLUGINS = ("anyio", "hypothesispytest", "timeout", "xdist", "xdist.looponfail")
_PYTEST_OPTIONS = " ".join(f"-p no:{plugin}" for plugin in _PLUGINS)
PYTEST: Mapping[str, str | bytes] = {
    "shop/__init__.py": "",
    "shop/prices.py": "def total(prices):\n    return sum(prices)\n\n\ndef highest(prices):\n    return max(prices)\n",
    "tests/test_prices.py": """import pytest

from shop import prices


def test_total():
    assert prices.total([1, 2]) == 3


def test_total_of_nothing():
    assert prices.total([]) == 0


def test_highest():
    assert prices.highest([1, 3, 2]) == 3


def test_highest_of_nothing():
    with pytest.raises(ValueError):
        prices.highest([])
""",
    "conftest.py": "",
    "pyproject.toml": f"[tool.pytest.ini_options]\npythonpath = ['.']\naddopts = '{_PYTEST_OPTIONS}'\n",
    "Makefile": "test:\n\tpytest -q\n",
    ".github/workflows/ci.yml": "on: push\n",
    "notes.txt": "first\n",
}
"""A small Python project with pytest."""


def _alike(name: str, body: str) -> str:
    return f"import pytest\n\nfrom shop import prices\n\n\ndef test_{name}():\n{body}"


_WAYS = (
    "deleted",
    "emptied",
    "skip_mark",
    "xfail_mark",
    "skip_call",
    "if_false",
    "returns",
    "renamed",
    "loosened",
)
_MANY = (*_WAYS, "swallowed", "or_true", "mocked")
_FILES = ("gone", "moved", "empty", "skipped", "missing", "marked", "uncollected")
_BODY = "    assert prices.total([1, 2]) == 3\n"

PYTEST_MANY: Mapping[str, str | bytes] = {
    **PYTEST,
    "tests/test_many.py": "import pytest\n\nfrom shop import prices\n"
    + "".join(f"\n\ndef test_{way}():\n{_BODY}" for way in _MANY),
    **{f"tests/test_{name}.py": _alike(name, _BODY) for name in _FILES},
    "tests/test_raises.py": _alike(
        "raises", "    with pytest.raises(ValueError):\n        prices.highest([])\n"
    ),
}
"""The same with a test for each way to make one harmless."""

UNITTEST: Mapping[str, str | bytes] = {
    "shop/__init__.py": "",
    "shop/prices.py": "def total(prices):\n    return sum(prices)\n",
    "tests/__init__.py": "",
    "tests/test_prices.py": (
        "import unittest\n\nfrom shop import prices\n\n\nclass TestPrices(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(prices.total([1, 2]), 3)\n"
    ),
    "run_tests.py": (
        "import sys\nimport unittest\n\nsuite = unittest.defaultTestLoader.discover('tests', top_level_dir='.')\n"
        "sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())\n"
    ),
}
NPM: Mapping[str, str | bytes] = {
    "package.json": '{"name": "shop", "version": "1.0.0", "private": true, "scripts": {"test": "node --test test/"}}\n',
    "lib/prices.js": "exports.total = (prices) => prices.reduce((a, b) => a + b, 0);\n",
    "test/prices.test.js": (
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "test('total', () => assert.strictEqual(require('../lib/prices.js').total([1, 2]), 3));\n"
    ),
}
MAKE: Mapping[str, str | bytes] = {
    "Makefile": "test:\n\t@sh tests/all.sh\n",
    "bin/total.sh": "echo $(($1 + $2))\n",
    "tests/all.sh": (
        'number=0\nfailed=0\nfor case in tests/cases/*.sh; do\n  number=$((number + 1))\n  name=$(basename "$case" .sh)\n'
        '  if sh "$case"; then echo "ok $number - $name"; else echo "not ok $number - $name"; failed=1; fi\ndone\n'
        'echo "1..$number"\nexit $failed\n'
    ),
    "tests/cases/total.sh": '[ "$(sh bin/total.sh 1 2)" = 3 ]\n',
}
