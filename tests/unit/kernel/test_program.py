"""The frame of a step's program: whatever happens inside, one typed report is its last act."""

import os
import signal
import subprocess
import sys

import msgspec
import pytest
from tests.support import toy

from longwatch.kernel import program
from longwatch.kernel.child import ProcessRecord
from longwatch.kernel.errors import (
    AuthError,
    BudgetError,
    FailureClass,
    IntegrityError,
    InterruptedWorkError,
    LongwatchError,
    NotReadyError,
    QuotaError,
    TransientError,
)
from longwatch.kernel.line import Failed, Progress, Recovery, Report, Stopped, Succeeded
from longwatch.kernel.program import LOG, PROGRESS, REPORT, STEP, Work, main
from longwatch.kernel.redact import Redactor

TOKEN = "tok-0123456789abcdef0123"
DONE = Succeeded(msgspec.Raw(b'"ok"'))


@pytest.fixture(autouse=True)
def _signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def folder(tmp_path):
    step = toy.step("one", recovery=Recovery.RERUN)
    (tmp_path / STEP).write_bytes(msgspec.json.encode(step))
    return tmp_path


def performed(folder, perform):
    assert main(folder, toy.ToyStep, perform) == 0
    return msgspec.json.decode((folder / REPORT).read_bytes(), type=Report)


@pytest.mark.guarantee("K6")
def test_a_report_carries_all_that_was_measured(folder):
    record = ProcessRecord(
        argv=("x",), cwd="/", phase="p", started_at="", ended_at="", duration_s=1, cpu_s=1, peak_memory_bytes=1,
        exit_code=0, signal=None, limit=None, limit_detail="", log="l", log_sha256="", log_bytes=0,
        first_output_s=None, left_behind=0,
    )  # fmt: skip

    def perform(work: Work):
        with work.span("checks", "pytest"):
            work.note("check.passed", "It passed.", seconds=1.5)
        work.record(record)
        return DONE

    report = performed(folder, perform)
    assert report.step == "one"
    assert report.outcome == DONE
    assert report.processes == (record,)
    assert [(span.phase, span.label) for span in report.spans] == [("checks", "pytest")]
    assert report.spans[0].duration_s >= 0
    assert [(note.kind, note.data) for note in report.notes] == [("check.passed", {"seconds": 1.5})]


@pytest.mark.guarantee("K25", "K26")
@pytest.mark.parametrize(
    ("error", "kind", "retry_after_s"),
    [
        (IntegrityError("x"), FailureClass.INTEGRITY, None),
        (TransientError("x", retry_after_s=7.0), FailureClass.TRANSIENT, 7.0),
        (NotReadyError("x"), FailureClass.TRANSIENT, None),
        (QuotaError("x", retry_after_s=3600.0), FailureClass.QUOTA, 3600.0),
        (AuthError("x"), FailureClass.AUTH, None),
        (BudgetError("x"), FailureClass.BUDGET, None),
        (InterruptedWorkError("x"), FailureClass.INTERRUPTED, None),
        (LongwatchError("integrity, quota, auth"), FailureClass.FAULT, None),
        (ValueError("integrity error"), FailureClass.FAULT, None),
        (MemoryError(), FailureClass.FAULT, None),
        (RecursionError("deep"), FailureClass.FAULT, None),
    ],
)
def test_the_class_of_a_failure_stands_on_its_type(error, kind, retry_after_s, folder):
    def perform(work):
        raise error

    outcome = performed(folder, perform).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.failure.kind, outcome.failure.retry_after_s) == (kind, retry_after_s)
    assert str(error) in outcome.failure.message


@pytest.mark.guarantee("K22")
def test_a_failure_of_ours_prints_its_trace_and_names_the_log(folder, capsys):
    def perform(work):
        return {}["missing"]

    outcome = performed(folder, perform).outcome
    assert "KeyError: 'missing'" in outcome.failure.message
    assert str(folder / LOG) in outcome.failure.message
    assert outcome.failure.log == str(folder / LOG)
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.guarantee("K24")
@pytest.mark.parametrize("error", [LongwatchError, RuntimeError])
def test_no_secret_leaves_a_program(error, folder, capsys):
    def perform(work: Work):
        work.redactor = Redactor((TOKEN,))
        work.progress("phase", f"with {TOKEN}")
        work.note("kind", f"said {TOKEN}", value=f"key={TOKEN}", number=7)
        raise error(f"refused {TOKEN}")

    performed(folder, perform)
    for name in (REPORT, PROGRESS):
        assert TOKEN not in (folder / name).read_text()
    printed = capsys.readouterr()
    assert TOKEN not in printed.out + printed.err


def test_a_span_that_fails_is_measured_too(folder):
    def perform(work: Work):
        with work.span("hashing"):
            raise LongwatchError("disk")

    assert [span.phase for span in performed(folder, perform).spans] == ["hashing"]


@pytest.mark.guarantee("K21")
def test_progress_is_shown_at_once(folder):
    def perform(work: Work):
        work.progress("train", "epoch", done=3, total=9, idle_s=1.5)
        shown = msgspec.json.decode((folder / PROGRESS).read_bytes(), type=Progress)
        assert shown == Progress(phase="train", text="epoch", done=3, total=9, idle_s=1.5)
        return DONE

    assert performed(folder, perform).outcome == DONE


@pytest.mark.guarantee("K12", "K16")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_reaches_the_work_and_never_cuts_it(number, folder):
    def perform(work: Work):
        assert not work.should_stop()
        os.kill(os.getpid(), number)
        assert work.should_stop()
        return Stopped("in good order")

    assert performed(folder, perform).outcome == Stopped("in good order")


class _Interrupt(BaseException):
    pass


@pytest.mark.guarantee("K12", "L14")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_ends_a_stretch_that_cannot_ask_at_once(number, folder):
    def perform(work: Work):
        try:
            with work.interruptible(_Interrupt):
                try:
                    os.kill(os.getpid(), number)
                    pytest.fail("it went on")
                except Exception:  # noqa: BLE001 - what libraries do
                    pytest.fail("a library took it for its own error")
        except _Interrupt:
            return Stopped("at once")

    assert performed(folder, perform).outcome == Stopped("at once")


@pytest.mark.guarantee("K12", "L14")
def test_a_request_to_stop_is_raised_where_it_was_allowed_only(folder):
    def perform(work: Work):
        with work.interruptible(_Interrupt):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        assert work.stop_requested
        with pytest.raises(_Interrupt), work.interruptible(_Interrupt):
            pytest.fail("it began although it was asked to stop")
        return DONE

    assert performed(folder, perform).outcome == DONE


@pytest.mark.guarantee("L14")
def test_beyond_its_own_bound_a_step_ends_without_a_person(folder):
    def perform(work: Work):
        assert not work.should_stop()
        work.over = lambda: True
        assert work.should_stop()
        assert not work.stop_requested
        return DONE

    assert performed(folder, perform).outcome == DONE


@pytest.mark.guarantee("K6")
def test_a_program_that_is_killed_leaves_no_report(folder):
    step = toy.step("one", "die")
    (folder / STEP).write_bytes(msgspec.json.encode(step))
    process = subprocess.run(
        [sys.executable, "-m", "tests.support.toy", str(folder)], cwd=toy.PROJECT, check=False
    )
    assert process.returncode == -signal.SIGKILL
    assert not (folder / REPORT).exists()
    assert (folder / PROGRESS).exists()


@pytest.mark.guarantee("K5", "K6")
def test_a_report_is_whole_or_not_there(folder, monkeypatch):
    """Killed between the write and the rename, the program leaves nothing that counts."""
    monkeypatch.setattr(
        program.files.os, "replace", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        main(folder, toy.ToyStep, lambda work: DONE)
    assert [file.name for file in folder.iterdir()] == [STEP]


@pytest.mark.guarantee("L35")
@pytest.mark.parametrize(
    ("done", "total", "left_s"),
    [(6, 10, 4.0), (None, 10, None), (4, None, None), (2, 10, None), (12, 10, 0.0)],
)
def test_the_rest_of_a_phase_is_estimated_from_its_own_speed(done, total, left_s):
    # Two were done when the phase began, a hundred seconds after the program's first sign of life.
    assert program.Pace("train", total, 2, 100.0).left_s(done, 104.0) == left_s
