"""Machines that are not here: a laptop, a workstation, and one that says what a test wants."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from longwatch.learn.readiness.readings import Readings


class Scripted:
    """A probe that gives one reading after the other, and the last one for ever."""

    def __init__(self, *readings: Readings) -> None:
        self._readings = list(readings)
        self.looks = 0

    def read(self, number: int | None = None) -> Readings:
        self.looks += 1
        return self._readings[min(self.looks, len(self._readings)) - 1]


class NVMLError(Exception):
    pass


class Nvml:
    """NVIDIA's library with one device; what it is not given it answers with "not supported", as drivers do."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = 0
    FIELDS = (
        "Name",
        "ComputeRunningProcesses",
        "MemoryInfo",
        "Temperature",
        "PowerUsage",
        "EnforcedPowerLimit",
    )

    def __init__(self, *, driver: bool = True, **answers: object) -> None:
        self._driver, self._answers = driver, answers
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        if not self._driver:
            raise NVMLError("driver not loaded")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802 - the library's name
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - the library's name
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802 - the library's name
        return index

    def __getattr__(self, name: str) -> Callable[..., object]:
        field = name.removeprefix("nvmlDeviceGet")
        assert field in self.FIELDS, f"nothing of the library is called {name}"

        def answer(_handle: int, *_more: int) -> object:
            if field not in self._answers:
                raise NVMLError("not supported")
            return self._answers[field]

        return answer


def process(pid: int, used: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def workstation(*processes: SimpleNamespace, **answers: object) -> Nvml:
    known = {
        "Name": "RTX",
        "ComputeRunningProcesses": list(processes),
        "MemoryInfo": SimpleNamespace(total=24 * 10**9, free=20 * 10**9, used=4 * 10**9),
        "Temperature": 50,
        "PowerUsage": 30_000,
        "EnforcedPowerLimit": 350_000,
    }
    return Nvml(**{**known, **answers})


def laptop_nvml() -> Nvml:
    return Nvml(Name=b"a laptop's")


def put(root: Path, **files: object) -> Path:
    """Write the kernel's files; names have `__` for `/` and `_` for `-` stays."""
    for name, value in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


def battery(root: Path, *, online: str = "1", status: str = "Charging") -> Path:
    return put(
        root,
        class__power_supply__AC__type="Mains",
        class__power_supply__AC__online=online,
        class__power_supply__BAT0__type="Battery",
        class__power_supply__BAT0__status=status,
        class__power_supply__mouse__type="Battery",
        class__power_supply__mouse__scope="Device",
        class__power_supply__mouse__status="Discharging",
    )
