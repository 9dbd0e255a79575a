"""What NVIDIA's library says of each accelerator. Without it, or without a driver, there is nothing to say.

Every field is asked for by itself: a laptop's accelerator answers "not supported" to most of them.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from longwatch.learn.readiness.readings import Device, Program

T = TypeVar("T")


def library() -> Any | None:
    """Return NVIDIA's own Python library, `nvidia-ml-py`, if it is installed."""
    return import_module("pynvml") if find_spec("pynvml") else None


def devices(nvml: Any | None, ours: frozenset[int], processes: Path = Path("/proc")) -> tuple[Device, ...]:
    """Return all accelerators. `ours` are processes that are nobody else's."""
    if nvml is None:
        return ()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        count = _asked(nvml, nvml.nvmlDeviceGetCount) or 0
        return tuple(_device(nvml, index, ours, processes) for index in range(count))
    finally:
        nvml.nvmlShutdown()


def _asked(nvml: Any, question: Callable[[], T]) -> T | None:
    """Return the answer, or `None` where the driver has none."""
    try:
        return question()
    except nvml.NVMLError:
        return None


def _device(nvml: Any, index: int, ours: frozenset[int], processes: Path) -> Device:
    handle = _asked(nvml, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is None:
        return Device(name=f"accelerator {index}")
    name = _asked(nvml, lambda: nvml.nvmlDeviceGetName(handle)) or f"accelerator {index}"
    found = _asked(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Device(
        name=name.decode() if isinstance(name, bytes) else name,
        others=None if found is None else _others(found, ours, processes),
        free_bytes=_asked(nvml, lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).free)),
        temperature_c=_asked(
            nvml, lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        ),
        power_w=_asked(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        power_limit_w=_asked(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
    )


def _others(found: list[Any], ours: frozenset[int], processes: Path) -> tuple[Program, ...]:
    """Return the programs of others that can be seen from here.

    In a container the driver may name processes by numbers that mean nothing there, our own among them: a number without
    a process is not counted.
    """
    named = [(one, _name(processes / str(one.pid) / "comm")) for one in found if one.pid not in ours]
    return tuple(
        Program(pid=one.pid, name=name, memory_bytes=one.usedGpuMemory)
        for one, name in named
        if name is not None
    )


def _name(comm: Path) -> str | None:
    try:
        return comm.read_text(encoding="utf-8", errors="replace").strip() or "?"
    except OSError:  # it ended, or it is not there for us
        return None
