"""A small repository with independent jobs, made a watch, driven by the real command line, and the means to disturb it.

Job `a` adds `shop/a.py` and a test of its own. The default worker replays the recorded change; a test that needs a
worker with other manners gives a script.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import tomlkit

from longwatch.cli import beginning
from longwatch.kernel.identity import find_by_cookie
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import status
from longwatch.observe.status import Status
from tests.support import repositories
from tests.support.repositories import git

PROGRAM = (sys.executable, "-m", "longwatch.cli.main")
PROJECT = Path(__file__).parents[2]
QUICK = {"first_s": 0.2, "max_s": 0.5}
RUN_TESTS = """import os
import sys
import time
import unittest

while os.path.exists("FLAGS/check"):
    time.sleep(0.05)
suite = unittest.defaultTestLoader.discover("tests", top_level_dir=".")
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
sys.exit(0 if result.wasSuccessful() else 1)
"""
WORKER = """import json
import os
import re
import signal
import sys
import time

job = re.search(r"Bring (\\w+)", sys.stdin.read())[1]
if os.path.exists("FLAGS/deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("at work", flush=True)
while os.path.exists("FLAGS/worker"):
    time.sleep(0.05)
changed = {
    f"shop/{job}.py": "VALUE = 1\\n",
    f"tests/test_{job}.py": f'''import unittest


class {job.title()}Test(unittest.TestCase):
    def test_{job}(self):
        from shop.{job} import VALUE

        self.assertEqual(VALUE, 1)
''',
}
for path, text in changed.items():
    with open(path, "w") as file:
        file.write(text)
answer = {"nonce": os.environ["LONGWATCH_NONCE"], "status": "done", "summary": f"Brought {job}.",
          "changed": sorted(changed), "reason": ""}
with open(os.environ["LONGWATCH_RESULT"], "w") as file:
    json.dump(answer, file)
"""
"""Works as the recordings do, but can be held, and made deaf to TERM, while a flag is up."""
OLD_TEST = """import unittest


class OldTest(unittest.TestCase):
    def test_old(self):
        self.assertEqual(1 + 1, 2)
"""
Finished = subprocess.CompletedProcess[str]


@dataclass
class Shop:
    """One watch in one repository."""

    root: Path
    attempts: Path
    flags: Path
    """What lies here holds what runs: `worker`, `check`, `commit`."""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def watch(self) -> Watch:
        return Watch(self.root)

    # -- the command line

    def call(self, *arguments: str, cwd: Path | None = None, timeout_s: float = 120) -> Finished:
        """Run one command to its end."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=cwd or self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def json(self, *arguments: str) -> dict[str, object]:
        finished = self.call(*arguments, "--json")
        assert finished.returncode == 0, finished
        value: dict[str, object] = json.loads(finished.stdout)
        return value

    def begin(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Begin a command, `run` by default; what it prints goes to a file beside the watch."""
        with self.printed.open("ab") as out:
            return subprocess.Popen(
                [*PROGRAM, *(arguments or ("run",))],
                cwd=self.root,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def printed(self) -> Path:
        return self.root.with_name(f"{self.root.name}.printed")

    def environment(self) -> dict[str, str]:
        return {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(PROJECT / "src"), **self.variables}

    # -- shaping

    def configure(self, **tables: Mapping[str, object]) -> None:
        """Set keys of tables in longwatch.toml."""
        document = tomlkit.parse(self.watch.config.read_text())
        for name, values in tables.items():
            table = document.setdefault(name, tomlkit.table())
            for key, value in values.items():
                table[key] = value
        self.watch.config.write_text(tomlkit.dumps(document))

    def card(self, job: str, text: str = "Bring it.", **head: object) -> Path:
        """Write a job's card; every job owns its own two files."""
        lines = {
            "id": job,
            "title": f"Bring {job}",
            "owned": [f"shop/{job}.py", f"tests/test_{job}.py"],
            **head,
        }
        front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in lines.items())
        return repositories.write(self.root, f"tasks/{job}.md", f"---\n{front}\n---\n\n{text}\n")

    def record(
        self, job: str, number: int = 1, *, patch: str | None = None, value: int = 1, **behaviour: object
    ) -> None:
        """Record what the worker does in an attempt: by default, what the card asks for."""
        folder = self.attempts / job / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        text = change(job, value) if patch is None else patch
        patched = folder / "change.patch"
        patched.write_text(text) if text else patched.unlink(missing_ok=True)
        (folder / "attempt.toml").write_text(tomlkit.dumps({"claim": "done", **behaviour}))

    def job(self, job: str, *, head: Mapping[str, object] | None = None, **behaviour: object) -> None:
        """A card and the recorded attempt that does it."""
        self.card(job, **(head or {}))
        self.record(job, **behaviour)

    def raise_flag(self, name: str) -> None:
        (self.flags / name).touch()

    def lower_flag(self, name: str) -> None:
        (self.flags / name).unlink()

    # -- looking

    def status(self) -> Status:
        return status.read(self.watch)

    def events(self) -> list[tuple[str, str]]:
        store = Store.read(self.watch.database)
        try:
            return [(event.kind, event.text) for event in store.events()]
        finally:
            store.close()

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events()]

    def wait(self, what: str, condition: Callable[[Status], bool], *, timeout_s: float = 30) -> Status:
        """Return the first status that fulfils a condition."""
        end = time.monotonic() + timeout_s
        while True:
            seen = self.status()
            if condition(seen):
                return seen
            assert time.monotonic() < end, f"never {what}: {seen}\n{self.said()}"
            time.sleep(0.05)

    def in_step(self, name: str, phase: str = "", *, timeout_s: float = 30) -> str:
        """Wait until a step of this name is under way (and shows this phase), and return its id."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            begun = [folder.name for folder in self.watch.steps.iterdir() if name in folder.name]
            shown = [step for step in begun if not phase or self.shown(step) == phase]
            if shown and (there := [step for step in self.open_steps() if step in shown]):
                return there[0]
            time.sleep(0.01)
        message = f"never in {name} {phase}: {self.status()}\n{self.said()}"
        raise AssertionError(message)

    def open_steps(self) -> list[str]:
        store = Store.read(self.watch.database)
        try:
            return [step.id for step in store.open_steps()]
        finally:
            store.close()

    def shown(self, step: str) -> str:
        try:
            return str(json.loads((self.watch.step(step) / "progress.json").read_bytes())["phase"])
        except (FileNotFoundError, ValueError):
            return ""

    def said(self) -> str:
        printed = self.printed.read_text(errors="replace")[-2000:] if self.printed.exists() else ""
        return printed + "\n" + "\n".join(f"{kind}: {text}" for kind, text in self.events()[-20:])

    def commits(self) -> list[str]:
        """The attempts that stand on the branch, oldest first, by the trailer of their commits."""
        log = git(
            self.root,
            "log",
            "--reverse",
            "--format=%(trailers:key=Longwatch-Attempt,valueonly,separator=%x2C)",
        )
        return [line for line in log.splitlines() if line]

    def done(self) -> list[str]:
        """The jobs whose commits stand on the branch, oldest first."""
        return [attempt.removesuffix(".merged").rsplit(".", 1)[0] for attempt in self.commits()]

    def tree(self, revision: str = "HEAD") -> str:
        return git(self.root, "rev-parse", f"{revision}^{{tree}}")

    # -- processes

    def programs(self) -> list[psutil.Process]:
        """The programs of steps that live."""
        return [one for one in psutil.process_iter() if self._is_program(one)]

    def _is_program(self, process: psutil.Process) -> bool:
        try:
            words = process.cmdline()
            return (
                any(word.startswith(str(self.watch.steps) + "/") for word in words)
                and "longwatch.migrate.program" in words
            )
        except psutil.Error:
            return False

    def workers(self) -> list[psutil.Process]:
        """Whatever the programs of steps started: sandboxes, workers, checks, git."""
        found = []
        for program in self.programs():
            try:
                found += program.children(recursive=True)
            except psutil.Error:
                continue
        return found

    def living(self) -> list[str]:
        """Every process that carries an owner mark of this watch."""
        store = Store.read(self.watch.database)
        try:
            cookies = [row[0] for row in store._sql.execute("SELECT cookie FROM steps")]
        finally:
            store.close()
        marks = [found.pid for cookie in cookies for found in find_by_cookie(cookie)]
        return [_named(pid) for pid in marks]


def _named(pid: int) -> str:
    try:
        return f"{pid} {' '.join(psutil.Process(pid).cmdline())[:200]}"
    except psutil.Error:
        return str(pid)


def change(job: str, value: int = 1) -> str:
    """A patch that brings a module and a test that needs it."""
    module = [f"VALUE = {value}"]
    test = [
        "import unittest",
        "",
        "",
        f"class {job.title()}Test(unittest.TestCase):",
        f"    def test_{job}(self):",
        f"        from shop.{job} import VALUE",
        "",
        f"        self.assertEqual(VALUE, {value})",
    ]
    return new_file(f"shop/{job}.py", module) + new_file(f"tests/test_{job}.py", test)


def brought(job: str) -> dict[str, str]:
    """The files of `change`, by their paths."""
    files = {}
    for part in change(job).split("+++ b/")[1:]:
        path, *lines = part.split("\n")
        files[path] = "".join(line[1:] + "\n" for line in lines if line.startswith("+"))
    return files


def new_file(path: str, lines: Sequence[str]) -> str:
    body = "\n".join("+" + line for line in lines)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1,{len(lines)} @@\n{body}\n"
    )


def repository(root: Path, flags: Path) -> Path:
    repositories.new_repository(root)
    repositories.write(root, "shop/__init__.py", "")
    repositories.write(root, "tests/__init__.py", "")
    repositories.write(root, "tests/test_old.py", OLD_TEST)
    repositories.write(root, "run_tests.py", RUN_TESTS.replace("FLAGS", str(flags)))
    repositories.write(root, ".gitignore", "__pycache__/\n")
    repositories.commit_all(root, "The shop as it was")
    holding = f'#!/bin/sh\nwhile test -e "{flags}/commit"; do sleep 0.05; done\n'
    repositories.write(root / ".git", "hooks/pre-commit", holding, 0o755)
    return root


def open_shop(
    folder: Path,
    jobs: Sequence[str] = (),
    *,
    worker: str = "",
    adapter: str = "",
    argv: Sequence[str] = (),
    **behaviour: object,
) -> Shop:
    """Make a repository a watch with these jobs, done by the recordings, or by a `worker`: a script in Python."""
    for name in ("attempts", "flags"):
        (folder / name).mkdir()
    shop = Shop(repository(folder / "shop", folder / "flags"), folder / "attempts", folder / "flags")
    if adapter:
        beginning.migrate(shop.root, adapter=adapter, argv=tuple(argv))
    elif worker:
        script = repositories.write(folder, "worker.py", worker.replace("FLAGS", str(shop.flags)))
        beginning.migrate(shop.root, adapter="command", argv=("python3", str(script)))
    else:
        beginning.migrate(shop.root, adapter="replay", argv=(str(shop.attempts),))
    document = tomlkit.parse(shop.watch.config.read_text())
    checks = tomlkit.aot()
    checks.append(
        tomlkit.item(
            {"name": "tests", "kind": "test", "argv": ["python3", "run_tests.py"], "census": "unittest"}
        )
    )
    document["checks"] = checks
    shop.watch.config.write_text(tomlkit.dumps(document))
    shop.configure(backoff=QUICK, worker={"retry_delay_s": 0.2}, sandbox={"expose": [str(shop.flags)]})
    for job in jobs:
        shop.job(job, **behaviour)
    return shop


def settle(shop: Shop, process: "subprocess.Popen[bytes]", *, timeout_s: float = 60) -> int:
    """Wait for a supervisor to end, and return its exit code."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        message = f"it did not end: {shop.status()}\n{shop.said()}"
        raise AssertionError(message) from None


def kill(processes: Sequence[psutil.Process]) -> int:
    """SIGKILL what still lives of these, and return how many there were."""
    count = 0
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
            count += 1
        except psutil.Error:
            continue
    return count
