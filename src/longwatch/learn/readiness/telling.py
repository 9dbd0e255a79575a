"""What `doctor` says of the machine: each thing that it reports, what is asked of it, and whether a step may begin. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from longwatch.kernel.finding import Finding, fine, note
from longwatch.kernel.instant import Instant
from longwatch.learn.readiness.judging import NotReady, judge
from longwatch.learn.readiness.readings import Device, Readings
from longwatch.learn.settings import LearnSettings, Readiness


def findings(readings: Readings, settings: LearnSettings, now: Instant) -> Iterator[Finding]:
    """Yield one finding for each reading. None of them is wrong: a machine that is not ready may be so later."""
    for device in readings.devices:
        yield _device(device)
    if readings.memory_bytes is not None:
        yield fine("memory", f"{readings.memory_bytes / 1e9:.1f} GB available")
    said = _said(_processor(readings))
    if said:
        yield fine("processor", said)
    if readings.on_ac is not None:
        yield fine("power", "mains" if readings.on_ac else "battery")
    if readings.next_bytes is not None:
        yield fine("next experiment", f"is going to write about {readings.next_bytes / 1e9:.2f} GB")
    unknown = tuple(_unknown(readings, settings))
    if unknown:
        text = f"this machine does not report what [readiness] {', '.join(unknown)} asks for"
        yield note(
            "not reported",
            text,
            _INSTALL if _of_device(unknown) else "it keeps no step waiting: leave it out",
        )
    verdict = judge(readings, settings, None, now)
    if isinstance(verdict, NotReady):
        yield note("ready", f"not now: {'; '.join(verdict.reasons)}", "the watch waits for it by itself")
    else:
        yield fine("ready", "a step may begin now")


_INSTALL = (
    "pip install 'longwatch[nvidia]' for an accelerator of NVIDIA; until it answers, no step waits for it"
)


def _device(device: Device) -> Finding:
    others = ", ".join(f"{one.name} (process {one.pid})" for one in device.others or ())
    parts = (
        None if device.free_bytes is None else f"{device.free_bytes / 1e9:.1f} GB free",
        None if device.temperature_c is None else f"{device.temperature_c:.0f} degrees",
        None if device.power_w is None else f"draws {device.power_w:.0f} W",
        None if device.power_limit_w is None else f"may draw {device.power_limit_w:.0f} W",
        None if device.others is None else f"used by {others}" if others else "used by nobody else",
    )
    return fine("accelerator", f"{device.name}: {_said(parts) or 'reports nothing more'}")


def _processor(readings: Readings) -> Iterator[str | None]:
    if readings.load_cores is not None:
        yield f"other programs use {readings.load_cores:.1f} cores"
    if readings.temperature_c is not None:
        yield f"{readings.temperature_c:.0f} degrees"


def _said(parts: Iterable[str | None]) -> str:
    return ", ".join(part for part in parts if part)


def _unknown(readings: Readings, settings: LearnSettings) -> Iterator[str]:
    """Yield the keys that are set and that nothing answers."""
    wished, devices = settings.readiness, readings.devices
    heat = [readings.temperature_c, *(one.temperature_c for one in devices)]
    answers: dict[str, Sequence[object]] = {
        "accelerator_bytes": [one.free_bytes for one in devices],
        "share_accelerator": [one.others for one in devices],
        "power_limit_w": [one.power_limit_w for one in devices],
        "temperature_c": heat,
        "load_cores": [readings.load_cores],
        "on_ac": [readings.on_ac],
    }
    for key, found in answers.items():
        if getattr(wished, key) != getattr(Readiness(), key) and all(one is None for one in found):
            yield key


def _of_device(keys: tuple[str, ...]) -> bool:
    return not set(keys).isdisjoint({"accelerator_bytes", "share_accelerator", "power_limit_w"})
