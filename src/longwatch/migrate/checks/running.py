"""Runs checks in a sandboxed checkout and says what each one showed (specification M19, M23)."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from longwatch.kernel import files
from longwatch.kernel.child import Command, ProcessRecord
from longwatch.kernel.errors import PathError
from longwatch.kernel.limits import Limits
from longwatch.kernel.process import run, tail
from longwatch.kernel.program import Work
from longwatch.migrate.bench import Bench
from longwatch.migrate.checks import cases, census
from longwatch.migrate.checks.census import DisagreementError, Outcome, Tests
from longwatch.migrate.place import INSIDE
from longwatch.migrate.profiles import Profile
from longwatch.migrate.settings import Census, Check, MigrateSettings
from longwatch.migrate.steps import MigrateStep

_LOG_BYTES = 256 * 1024**2
_REPORT_BYTES = 64 * 1024**2
_NAMED = 20
_KILLS = 3
"""So often is a run made again that was killed from outside."""
_NONCE = "nonce"


class CheckRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one check showed on one tree."""

    name: str
    kind: str
    argv: tuple[str, ...]
    passed: bool
    reason: str
    """Why it did not pass; empty if it did."""
    tests: Tests | None
    record: ProcessRecord
    seen: tuple[cases.Seen, ...] = ()
    """The case receipts that it left, of its own kind."""
    saved_s: float = 0.0
    """Time that was not spent because the same command had run on the same tree already."""

    @property
    def exit_code(self) -> int | None:
        """How the command ended."""
        return self.record.exit_code

    @property
    def log(self) -> str:
        """Where its output stands."""
        return self.record.log


class Checking(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how a set of checks runs."""

    bench: Bench
    checkout: Path
    evidence: Path
    """Of logs and reports; the checkout's code writes only into the folder of its own check there."""
    settings: MigrateSettings
    work: Work[MigrateStep]


def run_all(checks: tuple[Check, ...], checking: Checking) -> Mapping[str, CheckRun]:
    """Run each distinct command once, by check name; a repeat uses the run, and the log says what that saved (M19)."""
    runs: dict[str, CheckRun] = {}
    profile = checking.settings.policy_in_force()
    done: dict[tuple[tuple[str, ...], str], CheckRun] = {}
    reused: dict[str, list[str]] = {}
    for check in checks:
        if checking.work.should_stop():
            break
        known = done.get((check.argv, check.cwd))
        if known is not None:
            reused.setdefault(known.name, []).append(check.name)
            # Judged afresh: a linter's run that counted no tests is no evidence for a check that must run some.
            runs[check.name] = msgspec.structs.replace(
                _judged(check, known.record, profile, ran_as=known.name), saved_s=known.record.duration_s
            )
            continue
        with checking.work.span(f"check:{check.kind}", f"{check.name} on {checking.checkout.parent.name}"):
            runs[check.name] = done[check.argv, check.cwd] = run_check(check, checking, profile)
    for name, others in reused.items():
        saved_s = sum(runs[other].saved_s for other in others)
        text = f"{name}: its one run counts for {', '.join(others)} too; {saved_s:.1f} s saved."
        checking.work.note("check.reused", text)
    return runs


def run_check(check: Check, checking: Checking, profile: Profile) -> CheckRun:
    """Run one check and judge it by exit code, limits and the tests that it ran.

    A run whose sandbox was killed from outside says nothing about the code: it is made again, a few times.
    """
    for _ in range(_KILLS):
        ran = _run_once(check, checking, profile)
        if not checking.bench.killed(ran.record) or checking.work.should_stop():
            return ran
        text = f"{check.name} was killed from outside after {ran.record.duration_s:.1f} s, and runs again."
        checking.work.note("check.killed", text)
    return _run_once(check, checking, profile)


def _run_once(check: Check, checking: Checking, profile: Profile) -> CheckRun:
    folder = _fresh(checking.evidence / check.name)
    reports, inside = _mount(folder, "reports", checking)
    receipts = (_mount(folder, "receipts", checking),) if profile.has_cases else ()
    argv = census.instrumented(check.census, check.argv, PurePosixPath(inside))
    limits = _limits(check, checking.settings)
    plan = checking.bench.plan(
        checking.checkout,
        environment=_case_environment(folder, receipts),
        writable=((reports, inside), *receipts),
        network=checking.settings.sandbox.check_network,
        workdir=check.cwd,
        limits=limits,
    )
    command = Command(
        argv=checking.bench.sandbox.wrap(argv, plan),
        cwd=checking.checkout / check.cwd,
        environment={**plan.environment, **_environment(), **census.environment(check.census, check.argv)},
        log=folder / "log.txt",
        limits=limits,
        phase=f"check:{check.kind}",
        contained=checking.bench.sandbox.contained,
    )
    record = run(command, should_stop=checking.work.should_stop)
    checking.work.record(record)
    return _judged(check, record, profile)


def _mount(folder: Path, name: str, checking: Checking) -> tuple[Path, Path]:
    """Return a folder that the check may write in, and where it stands inside."""
    host = files.make_folder(folder / name)
    return host, (INSIDE.parent / name if checking.bench.sandbox.confines else host)


def _case_environment(folder: Path, receipts: tuple[tuple[Path, Path], ...]) -> dict[str, str]:
    """Give the run a random word of its own, which a receipt that was written beforehand cannot have."""
    if not receipts:
        return {}
    nonce = secrets.token_hex(16)
    files.replace(folder / _NONCE, nonce.encode())
    return {cases.FOLDER: str(receipts[0][1]), cases.NONCE: nonce}


def _judged_by_cases(check: Check, record: ProcessRecord, profile: Profile, ran_as: str) -> CheckRun:
    """The cases of its kind are the tests of this check (specification M21)."""
    folder = Path(record.log).parent
    nonce = files.read_bounded(folder / _NONCE, 100).decode()
    found = cases.read(folder / "receipts", nonce, profile)
    tests = cases.tests(found, check.kind)
    reasons = (_failing(tests), cases.reason(found, profile, check.kind), _exit_reason(record, ran_as))
    reason = " ".join(part for part in reasons if part) or _empty_reason(check, tests)
    return msgspec.structs.replace(_run_of(check, record, tests, reason), seen=found.of(check.kind))


def _judged(check: Check, record: ProcessRecord, profile: Profile, ran_as: str = "") -> CheckRun:
    """Judge a run; `ran_as` names the check whose run it was, if this one did not run by itself."""
    if profile.case_kind(check.kind) is not None:
        return _judged_by_cases(check, record, profile, ran_as)
    tests: Tests | None = None
    reason = ""
    try:
        tests = _count(check, record)
    except (DisagreementError, PathError) as error:
        # What only looks like a report matters where a report is asked for.
        reason = str(error) if check.kind == "test" or check.census is not Census.AUTO else ""
    exit_reason = _exit_reason(record, ran_as)
    reason = f"{_failing(tests)}{exit_reason}" if exit_reason else reason or _empty_reason(check, tests)
    return _run_of(check, record, tests, reason)


def _run_of(check: Check, record: ProcessRecord, tests: Tests | None, reason: str) -> CheckRun:
    return CheckRun(
        name=check.name,
        kind=check.kind,
        argv=check.argv,
        passed=not reason,
        reason=reason,
        tests=tests,
        record=record,
    )


def _count(check: Check, record: ProcessRecord) -> Tests | None:
    if check.census is Census.NONE:
        return None
    printed = files.read_bounded(Path(record.log), _LOG_BYTES + 1024 * 1024).decode("utf-8", "replace")
    try:
        document: bytes | None = files.read_bounded(_reports(record) / census.JUNIT_NAME, _REPORT_BYTES)
    except FileNotFoundError:
        document = None
    return census.count(census.resolved(check.census, check.argv), printed, document)


def _reports(record: ProcessRecord) -> Path:
    return Path(record.log).with_name("reports")


def _exit_reason(record: ProcessRecord, ran_as: str) -> str:
    if record.limit is not None:
        return f"it was ended: {record.limit_detail or record.limit}"
    if record.exit_code == 0:
        return ""
    how = f"signal {record.signal}" if record.exit_code is None else f"exit code {record.exit_code}"
    if ran_as:
        # The check that ran shows the lines: said once for each kind, they would crowd out what the kinds have to say.
        return f"{how}, in the run of {ran_as}"
    return f"{how}. Its last lines:\n{tail(Path(record.log), 20)}"


def _failing(tests: Tests | None) -> str:
    """Name what failed: the last lines of a long report may name something else."""
    outcomes = tests.outcomes.items() if tests is not None else ()
    names = sorted(name for name, ended in outcomes if ended in {Outcome.FAILED, Outcome.ERROR})
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"failing tests: {', '.join(names[:_NAMED])}{more}; "


def _empty_reason(check: Check, tests: Tests | None) -> str:
    """A check of kind `test` that ran no test is no evidence, whatever it exits with (specification M23, K31)."""
    if check.kind != "test" and tests is None:
        return ""
    if tests is None:
        return "empty evidence: nothing that a test runner says was recognised in its output; set the check's `census`"
    if tests.counts.failed or tests.counts.errors:
        return f"{tests.counts} although it exits with 0"
    return "" if tests.counts.passed else f"empty evidence: no test passed ({tests.counts})"


def _fresh(folder: Path) -> Path:
    """A folder in which nothing of an earlier run can count (specification M24)."""
    files.remove_recorded(folder, folder.parent)
    return files.make_folder(folder)


def _environment() -> dict[str, str]:
    jobs = str(os.cpu_count() or 1)
    return {
        "CI": "1",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "CARGO_BUILD_JOBS": jobs,
        "CMAKE_BUILD_PARALLEL_LEVEL": jobs,
        "LONGWATCH_CHECK": "1",
    }


def _limits(check: Check, settings: MigrateSettings) -> Limits:
    return Limits(
        wall_s=check.timeout_s,
        log_bytes=_LOG_BYTES,
        memory_bytes=settings.sandbox.check_memory_bytes,
        processes=settings.sandbox.check_processes,
        free_disk_bytes=settings.host.free_disk_bytes // 2,
    )
