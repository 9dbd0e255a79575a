"""The probe of the machine that this program runs on."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from longwatch.kernel import files, lease
from longwatch.kernel.identity import Stat, snapshot
from longwatch.kernel.tree import family
from longwatch.kernel.watch import Watch
from longwatch.learn.place import Place
from longwatch.learn.readiness import host, nvml, turns
from longwatch.learn.readiness.readings import Readings
from longwatch.learn.settings import LearnSettings

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Machine:
    """Reads what the settings ask for; with `everything`, whatever there is."""

    def __init__(
        self,
        watch: Watch,
        settings: LearnSettings,
        *,
        everything: bool = False,
        library: Any | None = None,
        sys: Path = host.SYS,
        proc: Path = host.PROC,
    ) -> None:
        """`library` stands for NVIDIA's, `sys` and `proc` for the kernel's folders."""
        self._place, self._settings, self._everything = Place(watch, settings), settings, everything
        self._library, self._sys, self._proc = library, sys, proc
        self._load = host.Load(lambda: computed_s(self._ours(snapshot())), proc)

    def read(self, number: int | None = None) -> Readings:
        """Look now."""
        wished, every = self._settings.readiness, self._everything
        ours = self._ours(snapshot())
        lock = turns.path(self._settings.student.device)
        other, following = turns.taken(lock), turns.wished(lock, self._place.watch.root)
        available = host.available_bytes(self._proc)
        return Readings(
            devices=nvml.devices(self._nvml(), frozenset(one.pid for one in ours)),
            holder=other.sentence if other else None,
            following=following.sentence if following else None,
            memory_bytes=None
            if available is None
            else available + PAGE_BYTES * sum(one.rss_pages for one in ours),
            free_disk_bytes=files.free_bytes(self._place.watch.root),
            next_bytes=None if number is None else to_come(self._place.experiments, number),
            load_cores=self._load.cores() if every or wished.load_cores else None,
            temperature_c=host.temperature_c(self._sys) if every or wished.temperature_c else None,
            on_ac=host.on_ac(self._sys) if every or wished.on_ac else None,
        )

    def _nvml(self) -> Any | None:
        wished = self._settings.readiness
        asked = (
            wished.accelerator_bytes,
            wished.temperature_c,
            wished.power_limit_w,
            not wished.share_accelerator,
        )
        if self._settings.student.device == "cpu" or not (self._everything or any(asked)):
            return None
        return self._library or nvml.library()

    def _ours(self, stats: Iterable[Stat]) -> tuple[Stat, ...]:
        """Return this process and what it started, and the same of this watch's supervisor."""
        holder = lease.holder(self._place.watch.lease)
        supervisor = {holder.identity.pid} if holder is not None and holder.living else set[int]()
        return family(stats, frozenset({os.getpid(), *supervisor}), strangers=frozenset())


def computed_s(ours: Iterable[Stat]) -> float:
    """Return the seconds of processor that our processes have used, with those of their ended children."""
    return sum(one.cpu_ticks + one.ended_ticks for one in ours) / host.TICKS_PER_S


def to_come(experiments: Path, number: int) -> int | None:
    """Return what experiment `number` is still going to write, if it becomes as large as the largest of the others."""
    sizes = {int(folder.name): _size(folder) for folder in _numbered(experiments)}
    written = sizes.pop(number, 0)
    return max(0, max(sizes.values()) - written) if sizes else None


def _numbered(experiments: Path) -> list[Path]:
    try:
        return [folder for folder in experiments.iterdir() if folder.name.isdecimal()]
    except FileNotFoundError:
        return []


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue  # a temporary file that has its name by now
    return total
