import msgspec
import pytest

from longwatch.kernel.meter import Meter, Usage

ONE = Usage(processes=frozenset({(1, 1)}), cpu_s=1.0, memory_bytes=10, io_bytes=100)


def measured(rate_cpu: float, rate_io: float, *, seconds: int = 1000) -> Meter:
    meter = Meter()
    for tick in range(seconds * 5):
        now_s = tick / 5
        usage = msgspec.structs.replace(ONE, cpu_s=rate_cpu * now_s, io_bytes=int(rate_io * now_s))
        meter.measure(usage, now_s)
    return meter


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize(("cpu", "io"), [(0, 0), (0.002, 0), (0, 50), (0.005, 100)])
def test_housekeeping_does_not_hide_a_stall(cpu: float, io: float) -> None:
    assert measured(cpu, io).idle_s(1000) > 990


@pytest.mark.guarantee("K17")
@pytest.mark.parametrize(("cpu", "io"), [(0.05, 0), (0, 1000), (1, 1_000_000)])
def test_work_is_activity(cpu: float, io: float) -> None:
    assert measured(cpu, io).idle_s(1000) < 10


@pytest.mark.guarantee("K17")
def test_a_change_of_children_is_activity() -> None:
    meter = Meter()
    meter.measure(ONE, 0)
    meter.measure(ONE, 50)
    assert meter.idle_s(50) == 50
    meter.measure(msgspec.structs.replace(ONE, processes=frozenset({(1, 1), (2, 5)})), 60)
    assert meter.idle_s(60) == 0
    meter.measure(ONE, 70)
    assert meter.idle_s(75) == 5


def test_output_is_activity_and_the_first_one_is_remembered() -> None:
    meter = Meter()
    assert meter.first_output_s is None
    meter.output(3)
    meter.output(8)
    assert (meter.first_output_s, meter.idle_s(10)) == (3, 2)


def test_peaks_stay() -> None:
    meter = Meter()
    meter.measure(ONE, 1)
    meter.measure(Usage(), 2)
    assert (meter.peak_bytes, meter.cpu_s) == (10, 1.0)
