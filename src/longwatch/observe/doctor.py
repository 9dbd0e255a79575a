"""`doctor`: whether this machine and this watch are fit for work, proved by doing (specification K38).

Each finding is one line with its mend. What is tried is tried in throw-away places and taken back; nothing of the
watch changes. Outside a watch, and with a broken configuration, everything else is still looked at.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from longwatch.kernel import lease, markers, service
from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.kernel.finding import Finding, Standing, fine, note, wrong
from longwatch.kernel.settings import KernelSettings
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.observe import host, kinds
from longwatch.observe.kinds import Application
from longwatch.sandbox.choice import Sandboxing

DEFAULT_SANDBOX = Sandboxing()


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What `longwatch doctor --json` prints."""

    watch: str
    """Empty outside a watch."""
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if nothing has to be mended."""
        return all(finding.standing is not Standing.WRONG for finding in self.findings)


def examine(folder: Path) -> Examination:
    """Look at the machine, and at the watch in `folder` or above it, if there is one."""
    try:
        watch = kinds.find(folder)
    except ConfigError as error:
        outside = note("watch", str(error), "go to a watch, or make one: only the machine was looked at")
        return Examination(
            watch="", findings=(*host.examine(folder.resolve(), DEFAULT_SANDBOX, commits=True), outside)
        )
    return Examination(watch=str(watch.root), findings=tuple(_watch_findings(watch)))


def _watch_findings(watch: Watch) -> Iterator[Finding]:
    application: Application | None = None
    try:
        application = kinds.load(watch)
        config = fine("config", f"{watch.config} is read and makes sense")
    except ConfigError as error:
        config = wrong("config", str(error), f"edit {watch.config}; the rest was looked at without it")
    place = watch.hidden if watch.hidden.is_dir() else watch.root
    sandbox = application.sandbox if application else DEFAULT_SANDBOX
    yield from host.examine(place, sandbox, commits=application is None or application.commits)
    yield config
    yield from _state(watch)
    yield from _guarded("key", lambda: host.key(watch.keys))
    yield _lease(watch)
    yield from _service(watch)
    if application is not None:
        yield from _disk(watch, application.settings)
        yield from _markers(watch, application.settings)
        yield from _guarded(application.settings.kind, lambda: application.examine(_line(watch)))


def _guarded(name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Give what a look finds; one that fails with an error of ours becomes a finding, and the others go on."""
    try:
        yield from look()
    except LongwatchError as error:
        yield wrong(name, str(error), "mend this first; what comes after it was not looked at")


def _line(watch: Watch) -> bytes | None:
    try:
        store = Store.read(watch.database)
    except LongwatchError:
        # `_state` has told it already.
        return None
    try:
        return store.snapshot().line
    except LongwatchError:
        return None
    finally:
        store.close()


def _state(watch: Watch) -> Iterator[Finding]:
    try:
        store = Store.read(watch.database)
    except LongwatchError as error:
        yield wrong(
            "state", str(error), "restore .longwatch from a copy, or begin anew with `longwatch init`"
        )
        return
    try:
        broken = store.chain()
        snapshot = store.snapshot()
    except LongwatchError as error:
        yield wrong("state", str(error), "keep a copy of .longwatch; `longwatch verify` says what holds")
        return
    finally:
        store.close()
    if broken:
        yield wrong(
            "state", f"the event log is broken: {broken}", "keep a copy of .longwatch and find out who wrote"
        )
    else:
        yield fine("state", f"{snapshot.lifecycle.phase}; {snapshot.seq} events in an unbroken chain")


def _lease(watch: Watch) -> Finding:
    holder = lease.holder(watch.lease)
    if holder is None:
        return fine("lease", "free; no supervisor has run here yet")
    who = f"process {holder.identity.pid} on {holder.host}, since {holder.since}"
    if holder.living:
        return note("lease", f"held by {who}", "`longwatch stop` ends that supervisor")
    return fine("lease", f"free; the last supervisor was {who}")


def _service(watch: Watch) -> Iterator[Finding]:
    lingers = service.lingering()
    if lingers is None:
        yield note(
            "service", "systemd is not in charge here: after a reboot nothing starts the watch by itself"
        )
        return
    written = host.unit(watch.root).is_file()
    if not written:
        yield note("service", "no unit is written", "`longwatch service --write`, to go on after a reboot")
    elif not lingers:
        yield note("service", "the unit is there, but starts only when you log in", "loginctl enable-linger")
    else:
        yield fine("service", "the unit is there, and starts with the machine")


def _disk(watch: Watch, settings: KernelSettings) -> Iterator[Finding]:
    if not watch.hidden.is_dir():
        return
    free, reserve = host.free_bytes(watch.hidden), settings.host.free_disk_bytes
    if free < reserve:
        mend = "free some space, or lower host.free_disk_bytes"
        yield wrong("disk", f"{host.size(free)} free, less than the reserve of {host.size(reserve)}", mend)
    else:
        yield fine("disk", f"{host.size(free)} free; {host.size(reserve)} of it is the reserve")


def _markers(watch: Watch, settings: KernelSettings) -> Iterator[Finding]:
    for name in settings.host.markers:
        found = markers.inspect(watch.root / name)
        if found is None:
            yield fine("marker", f"{name}: not there")
        elif found.standing is markers.Standing.STALE:
            yield note("marker", found.text)
        else:
            yield wrong("marker", found.text, "`longwatch run` refuses until then")
