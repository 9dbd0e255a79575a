import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from longwatch.kernel.limits import LimitHit
from longwatch.kernel.program import Work
from longwatch.migrate.bench import Bench
from longwatch.migrate.checks import census
from longwatch.migrate.checks.running import Checking, CheckRun, run_all
from longwatch.migrate.settings import Census, Check, MigrateSettings, Repository, WorkerSettings
from longwatch.migrate.steps import MigrateStep, Survey
from longwatch.sandbox import SANDBOXES
from longwatch.sandbox.toolchain import find

Run = Callable[..., CheckRun]
SETTINGS = MigrateSettings(
    kind="migrate", repository=Repository(branch="main"), worker=WorkerSettings(adapter="command")
)
PASSING = "def test_a():\n    assert 1 == 1\n"


def checking_in(tmp_path: Path, sandbox: str = "none") -> Checking:
    for name in ("checkout", "evidence", "step"):
        (tmp_path / name).mkdir(exist_ok=True)
    tools = find((sys.executable, "sh"), f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    bench = Bench(
        sandbox=SANDBOXES[sandbox](),
        tools=tools,
        expose=tools.folders,
        share=(),
        objects=(),
        tmp_bytes=64 * 1024**2,
    )
    work: Work[MigrateStep] = Work(tmp_path / "step", Survey(id="s"))
    return Checking(
        bench=bench,
        checkout=tmp_path / "checkout",
        evidence=tmp_path / "evidence",
        settings=SETTINGS,
        work=work,
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def one(*argv: str, files: dict[str, str] | None = None, **fields: object) -> CheckRun:
        checking = checking_in(tmp_path)
        for name, text in (files or {}).items():
            (checking.checkout / name).write_text(text)
        check = Check(name="it", argv=argv, **fields)  # type: ignore[arg-type]
        return run_all((check,), checking)["it"]

    return one


def python(text: str) -> dict[str, str]:
    return {"script.py": text}


SCRIPT = (sys.executable, "script.py")
PYTEST = (sys.executable, "-m", "pytest")


def test_a_passing_check_names_its_tests(run: Run) -> None:
    result = run(*PYTEST, files={"test_a.py": PASSING})
    assert result.passed, result.reason
    assert result.tests is not None
    assert dict(result.tests.outcomes) == {"test_a.py::test_a": census.Outcome.PASSED}
    assert Path(result.log).is_file()


@pytest.mark.guarantee("M19")
def test_a_failing_check_says_how_it_ended_and_shows_its_last_lines(run: Run) -> None:
    result = run(*SCRIPT, files=python("print('the reason')\nraise SystemExit(3)"), kind="lint")
    assert not result.passed
    assert "exit code 3" in result.reason
    assert "the reason" in result.reason


@pytest.mark.guarantee("M19")
def test_a_check_over_its_time_fails_by_that_name(run: Run) -> None:
    result = run(*SCRIPT, files=python("import time\ntime.sleep(600)"), kind="lint", timeout_s=1.0)
    assert not result.passed
    assert result.record.limit is LimitHit.WALL


@pytest.mark.guarantee("M23", "K31")
@pytest.mark.parametrize(
    "text",
    [
        "print('all fine')",
        "print('no tests ran in 0.01s')",
        "print('2 skipped in 0.01s')",
        "print('1..0')",
        "print('\\nRan 0 tests in 0.000s\\n\\nOK')",
    ],
)
def test_a_test_check_that_ran_no_test_is_empty_evidence(run: Run, text: str) -> None:
    result = run(*SCRIPT, files=python(text))
    assert not result.passed
    assert result.reason.startswith("empty evidence")


@pytest.mark.guarantee("M23")
def test_a_check_that_only_skips_is_empty_evidence(run: Run) -> None:
    result = run(*PYTEST, files={"test_a.py": "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"})
    assert result.reason.startswith("empty evidence")


def test_a_linter_needs_no_tests(run: Run) -> None:
    assert run(*SCRIPT, files=python("print('fine')"), kind="lint").passed


@pytest.mark.guarantee("M23")
def test_failures_count_although_the_exit_code_is_0(run: Run) -> None:
    result = run(*SCRIPT, files=python("print('1..2\\nok 1 - a\\nnot ok 2 - b')"))
    assert not result.passed
    assert "1 failed" in result.reason


@pytest.mark.guarantee("M23")
def test_a_report_that_contradicts_itself_fails_a_test_check_and_no_linter(run: Run) -> None:
    forged = python("print('1..1\\nok 1 - a\\nok 2 - b')")
    assert "plan of 1" in run(*SCRIPT, files=forged).reason
    assert run(*SCRIPT, files=forged, kind="lint").passed
    assert not run(*SCRIPT, files=forged, kind="lint", census=Census.TAP).passed


@pytest.mark.guarantee("M23")
@pytest.mark.parametrize("trick", ["os.mkfifo(path)", "os.symlink('/etc/passwd', path)", "os.mkdir(path)"])
def test_a_report_that_is_no_file_is_refused_and_blocks_nothing(run: Run, trick: str) -> None:
    ending = f"import os\npath = os.path.join(os.path.dirname(os.getcwd()), 'evidence', 'it', 'reports', 'junit.xml')\n{trick}\n"
    result = run(*SCRIPT, files=python(ending + "print('1 passed in 0.01s')"))
    assert not result.passed
    assert "junit.xml" in result.reason


@pytest.mark.guarantee("M24")
def test_a_report_of_an_earlier_run_does_not_count(run: Run, tmp_path: Path) -> None:
    reports = tmp_path / "evidence" / "it" / "reports"
    reports.mkdir(parents=True)
    (reports / "junit.xml").write_text("<testsuite tests='1'><testcase name='a'/></testsuite>")
    assert run(*SCRIPT, files=python("print('fine')")).reason.startswith("empty evidence")


@pytest.mark.guarantee("M19")
def test_the_same_command_runs_once_and_the_saved_time_is_told(tmp_path: Path) -> None:
    checking = checking_in(tmp_path)
    (checking.checkout / "script.py").write_text(
        "print('1 passed in 0.01s', file=open('count', 'a'))\nprint('1 passed in 0.01s')"
    )
    (checking.checkout / "sub").mkdir()
    (checking.checkout / "sub" / "script.py").write_text("print('1 passed in 0.01s')")
    checks = (
        Check(name="a", argv=SCRIPT),
        Check(name="b", argv=SCRIPT),
        Check(name="c", argv=SCRIPT, cwd="sub"),
    )
    runs = run_all(checks, checking)
    assert all(run.passed for run in runs.values())
    assert len((checking.checkout / "count").read_text().splitlines()) == 1
    assert runs["b"].record == runs["a"].record
    assert runs["b"].saved_s == runs["a"].record.duration_s > 0
    assert runs["a"].saved_s == runs["c"].saved_s == 0


@pytest.mark.guarantee("M19", "M23")
def test_a_reused_run_is_judged_by_the_check_that_uses_it(tmp_path: Path) -> None:
    checking = checking_in(tmp_path)
    (checking.checkout / "script.py").write_text("print('fine')")
    checks = (Check(name="lint", argv=SCRIPT, kind="lint"), Check(name="tests", argv=SCRIPT))
    runs = run_all(checks, checking)
    assert runs["lint"].passed
    assert runs["tests"].reason.startswith("empty evidence")


@pytest.mark.guarantee("M19")
def test_a_stop_ends_the_checks(tmp_path: Path) -> None:
    checking = checking_in(tmp_path)
    checking.work.stop_requested = True
    assert run_all((Check(name="a", argv=SCRIPT),), checking) == {}


@pytest.mark.guarantee("M15")
def test_a_check_sees_a_small_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PERSONS_TOKEN", "hunter2")
    result = run(
        *SCRIPT, files=python("import os\nprint(sorted(os.environ), os.environ.get('CI'))"), kind="lint"
    )
    printed = Path(result.log).read_text()
    assert result.passed
    assert "A_PERSONS_TOKEN" not in printed
    assert "PYTHONDONTWRITEBYTECODE" in printed
    assert printed.rstrip().endswith("1")


@pytest.mark.guarantee("K18")
def test_what_a_check_leaves_behind_is_ended_and_reported(run: Run) -> None:
    text = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)"
    result = run(*SCRIPT, files=python(text), kind="lint")
    assert result.passed
    assert result.record.left_behind >= 1


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap isn't installed")
@pytest.mark.guarantee("M15", "M23")
def test_in_the_sandbox_a_check_reports_its_tests_and_reaches_no_log(tmp_path: Path) -> None:
    checking = checking_in(tmp_path, "bubblewrap")
    hostile = f"import pathlib\ndef test_b():\n    assert not pathlib.Path({str(tmp_path)!r}, 'evidence').exists()\n"
    (checking.checkout / "test_a.py").write_text(PASSING + hostile)
    result = run_all((Check(name="it", argv=PYTEST),), checking)["it"]
    assert result.passed, result.reason
    assert result.tests is not None
    assert set(result.tests.outcomes) == {"test_a.py::test_a", "test_a.py::test_b"}


@pytest.mark.guarantee("M19")
def test_the_last_lines_of_a_failed_run_are_shown_by_the_check_that_ran(tmp_path: Path) -> None:
    checking = checking_in(tmp_path)
    (checking.checkout / "script.py").write_text("import sys\nsys.exit('what went wrong')")
    checks = tuple(Check(name=name, argv=SCRIPT, kind=name) for name in ("lint", "types"))
    runs = run_all(checks, checking)
    assert "what went wrong" in runs["lint"].reason
    assert runs["types"].reason == "exit code 1, in the run of lint"
