"""Active seconds: added up by phase, kept in a file, never twice, never while nothing works (L14)."""

import json
import time

import pytest

from longwatch.kernel.errors import IntegrityError, NotReadyError
from longwatch.learn.experiment import meter
from longwatch.learn.experiment.meter import FILE, TICK_S, Active, Meter, read


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


def metered(folder, clock, phase="train", limit_s=3600.0):
    return Meter(folder, limit_s, lambda: phase, clock=clock)


@pytest.fixture
def clock(monkeypatch):
    # The thread never ticks, so that only what the test does is counted.
    monkeypatch.setattr(meter, "TICK_S", 3600.0)
    return Clock()


@pytest.mark.guarantee("L14")
def test_seconds_are_kept_by_phase_and_go_on_where_an_earlier_run_was(tmp_path, clock):
    with metered(tmp_path, clock, "train") as one:
        clock.now_s += 10
        one.save()
        assert read(tmp_path) == Active({"train": 10.0})
        clock.now_s += 5
    clock.now_s += 1000
    with metered(tmp_path, clock, "generate"):
        clock.now_s += 3
    assert read(tmp_path) == Active({"train": 15.0, "generate": 3.0})
    assert read(tmp_path).total_s == 18.0


@pytest.mark.guarantee("L14")
def test_time_before_it_is_entered_and_without_a_phase_is_told_apart(tmp_path, clock):
    one = metered(tmp_path, clock, "")
    clock.now_s += 100
    with one:
        clock.now_s += 2
    assert read(tmp_path) == Active({"other": 2.0})


@pytest.mark.guarantee("L14")
def test_a_step_of_the_wall_clock_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 4e9)
    with Meter(tmp_path, 3600, lambda: "train") as one:
        monkeypatch.setattr(time, "time", lambda: -4e9)
        one.save()
    assert 0 <= read(tmp_path).total_s < 60


@pytest.mark.guarantee("L14")
def test_at_its_limit_it_says_so_also_over_several_runs(tmp_path, clock):
    with metered(tmp_path, clock, limit_s=10) as one:
        clock.now_s += 6
        one.save()
        assert not one.over
    with metered(tmp_path, clock, limit_s=10) as two:
        clock.now_s += 4
        two.save()
        assert two.over
    assert metered(tmp_path, clock, limit_s=10).over
    assert not metered(tmp_path, clock, limit_s=20).over, "a person gave it more hours"


@pytest.mark.guarantee("L14")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"17.25",
        b'{"by_phase": {"train": 3.5}',
        b'{"by_phase": {"train": "long"}}',
        b'{"by_phase": {"train": -1}}',
        b'{"by_phase": {"train": 1e999}}',
        b'{"by_phase": {"train": NaN}}',
        b"\xff\x00",
    ],
)
def test_a_damaged_file_is_an_integrity_error_that_names_the_mend(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(IntegrityError, match=r"active-seconds.json is damaged .* remove it"):
        Meter(tmp_path, 10, lambda: "train")


@pytest.mark.guarantee("L14")
def test_the_thread_writes_by_itself(tmp_path):
    with Meter(tmp_path, 3600, lambda: "generate"):
        deadline_s = time.monotonic() + 30
        while read(tmp_path).total_s < TICK_S:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    assert set(read(tmp_path).by_phase) == {"generate"}


@pytest.mark.guarantee("L14")
def test_a_full_disk_costs_no_second_and_is_told_at_the_end_of_a_stage(tmp_path, monkeypatch):
    real, calls = meter.files.show, []

    def show(path, data):
        calls.append(data)
        if len(calls) == 1:
            raise NotReadyError("the disk is full")
        real(path, data)

    monkeypatch.setattr(meter.files, "show", show)
    monkeypatch.setattr(meter, "TICK_S", 0.01)
    with Meter(tmp_path, 3600, lambda: "train") as one:
        deadline_s = time.monotonic() + 30
        while not (tmp_path / FILE).exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        first = json.loads(calls[0])["by_phase"]["train"]
        assert read(tmp_path).total_s > first

        def full(path, data):
            raise NotReadyError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(meter.files, "replace", full)
            with pytest.raises(NotReadyError):
                one.save()
