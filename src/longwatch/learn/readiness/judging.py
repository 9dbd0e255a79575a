"""Readings, settings and the verdict before make the verdict now. Pure.

A machine that is ready stays ready within wider bounds than those in which it becomes ready, and one that was not has to
hold for a while: work does not begin and end with each small change.
"""

from collections.abc import Iterator

import msgspec

from longwatch.kernel.instant import Deadline, Instant, remaining_s
from longwatch.learn.readiness import hours
from longwatch.learn.readiness.readings import Device, Readings
from longwatch.learn.settings import FILE, LearnSettings

AGAIN_S = 60.0
"""Between two looks while the machine is not ready."""
LONGEST_S = 900.0
"""Between two looks while nothing but the time of day is waited for."""
COOLER_C = 5.0
CALMER = 0.8
SLACK = 0.8
"""Of the memory that it takes to begin, this share is enough to go on."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """Work may begin, or go on."""


class NotReady(msgspec.Struct, frozen=True, kw_only=True, tag="not ready"):
    """It may not, and why."""

    reasons: tuple[str, ...]
    since: Instant
    again_s: float
    """When to look again."""
    settling: Deadline | None = None
    """Nothing is wrong any more, but only for a short time."""
    unsteady: bool = False
    """Some of what was wrong may change from one moment to the next."""


Verdict = Ready | NotReady


class _Reason(msgspec.Struct, frozen=True):
    text: str
    unsteady: bool = True
    again_s: float = AGAIN_S


def judge(readings: Readings, settings: LearnSettings, before: Verdict | None, now: Instant) -> Verdict:
    """Return whether the machine is ready. `before` is the last verdict; `None` if there is none that still counts."""
    found = tuple(_reasons(readings, settings, now, going=isinstance(before, Ready)))
    since = before.since if isinstance(before, NotReady) else now
    unsteady = isinstance(before, NotReady) and before.unsteady
    if found:
        return NotReady(
            reasons=tuple(one.text for one in found),
            since=since,
            again_s=min(one.again_s for one in found),
            unsteady=unsteady or any(one.unsteady for one in found),
        )
    if not isinstance(before, NotReady) or not unsteady:
        return Ready()
    settling = before.settling or Deadline(since=now, delay_s=settings.readiness.settle_s)
    left_s = remaining_s(settling, now)
    if left_s <= 0:
        return Ready()
    text = f"all is well again, but only just: [readiness] settle_s = {settings.readiness.settle_s:g}"
    return NotReady(reasons=(text,), since=since, again_s=left_s, settling=settling, unsteady=True)


def _reasons(readings: Readings, settings: LearnSettings, now: Instant, *, going: bool) -> Iterator[_Reason]:
    wished = settings.readiness
    if wished.one_watch:
        yield from _turn(readings, going=going)
    for device in readings.devices:
        yield from _device(device, settings, going=going)
    factor = SLACK if going else 1.0
    if _less(readings.memory_bytes, factor * wished.memory_bytes):
        yield _Reason(
            f"{_size(readings.memory_bytes)} of memory are available, {_wish('memory_bytes', wished)}"
        )
    yield from _disk(readings, settings)
    if _more(readings.temperature_c, _ceiling(wished.temperature_c, going=going)):
        yield _Reason(
            f"the processor has {readings.temperature_c:.0f} degrees, {_wish('temperature_c', wished)}"
        )
    if _more(readings.load_cores, wished.load_cores * (1.0 if going else CALMER)):
        yield _Reason(f"other programs use {readings.load_cores:.1f} cores, {_wish('load_cores', wished)}")
    if wished.on_ac and readings.on_ac is False:
        yield _Reason("the machine runs on its battery, [readiness] on_ac = true")
    yield from _quiet(settings, now)


def _turn(readings: Readings, *, going: bool) -> Iterator[_Reason]:
    if readings.holder is not None:
        yield _Reason(readings.holder, unsteady=False)
    elif readings.following is not None and not going:
        yield _Reason(readings.following, unsteady=False)


def _device(device: Device, settings: LearnSettings, *, going: bool) -> Iterator[_Reason]:
    wished, name = settings.readiness, device.name
    if device.others and not wished.share_accelerator:
        who = ", ".join(f"{one.name} (process {one.pid})" for one in device.others)
        yield _Reason(f"{who} computes on {name}, [readiness] share_accelerator = false")
    if not going and _less(device.free_bytes, wished.accelerator_bytes):
        text = (
            f"{_size(device.free_bytes)} of memory are free on {name}, {_wish('accelerator_bytes', wished)}"
        )
        yield _Reason(text)
    if _more(device.temperature_c, _ceiling(wished.temperature_c, going=going)):
        yield _Reason(f"{name} has {device.temperature_c:.0f} degrees, {_wish('temperature_c', wished)}")
    if _more(device.power_limit_w, wished.power_limit_w):
        text = f"{name} may draw {device.power_limit_w:.0f} W, {_wish('power_limit_w', wished)}: `nvidia-smi -pl` caps it"
        yield _Reason(text, unsteady=False)


def _disk(readings: Readings, settings: LearnSettings) -> Iterator[_Reason]:
    reserve_bytes, needed_bytes = settings.host.free_disk_bytes, readings.next_bytes
    if needed_bytes is not None and _less(readings.free_disk_bytes, reserve_bytes + needed_bytes):
        yield _Reason(
            f"{_size(readings.free_disk_bytes)} are free on the disk and the experiment needs about {_size(needed_bytes)} "
            f"beside [host] free_disk_bytes = {reserve_bytes}: free some space",
            unsteady=False,
        )


def _quiet(settings: LearnSettings, now: Instant) -> Iterator[_Reason]:
    spans = hours.parse(settings.readiness.quiet_hours)
    left_s = hours.quiet_for_s(spans, now.wall_s, settings.observe.zone)
    if left_s is not None:
        text = f"it is quiet time, [readiness] quiet_hours = {settings.readiness.quiet_hours!r} ({settings.observe.zone})"
        yield _Reason(text, unsteady=False, again_s=min(left_s, LONGEST_S))


def _ceiling(limit: float, *, going: bool) -> float:
    return limit if going or not limit else max(limit - COOLER_C, 1.0)


def _less(found: float | None, wanted: float) -> bool:
    return found is not None and found < wanted


def _more(found: float | None, allowed: float) -> bool:
    return found is not None and allowed > 0 and found > allowed


def _size(size_bytes: float | None) -> str:
    return f"{(size_bytes or 0) / 1e9:.1f} GB"


def _wish(key: str, wished: msgspec.Struct) -> str:
    return f"[readiness] {key} = {getattr(wished, key):.15g} in {FILE}"
