"""Asked before a step that uses the student begins: whether it may, or what it waits for."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Wait
from longwatch.kernel.watch import Watch
from longwatch.learn.readiness import turns
from longwatch.learn.readiness.judging import NotReady, Ready, judge
from longwatch.learn.readiness.readings import Probe
from longwatch.learn.settings import LearnSettings


class Gate:
    """Remembers since when the machine is not ready. Nothing of it is durable: a new supervisor looks afresh."""

    def __init__(self, probe: Probe, settings: LearnSettings, watch: Watch) -> None:
        self._probe, self._settings, self._watch = probe, settings, watch
        self._before: NotReady | None = None

    def __call__(self, number: int, now: Instant) -> Wait | None:
        """Return what a step of experiment `number` waits for, or `None`: it may begin."""
        readings = self._probe.read(number)
        verdict = judge(readings, self._settings, self._before, now)
        self._before = verdict if isinstance(verdict, NotReady) else None
        if isinstance(verdict, Ready):
            return None
        if verdict.reasons == (readings.holder,):
            turns.wish(turns.path(self._settings.student.device), self._watch.root)
        return Wait(sentence(verdict, self._settings.observe.zone), verdict.again_s)


def sentence(verdict: NotReady, zone: str) -> str:
    """Return why the machine is not ready, and since when, for a person in a time zone."""
    place = UTC if zone == "UTC" else ZoneInfo(zone)
    since = datetime.fromtimestamp(verdict.since.wall_s, place).strftime("%Y-%m-%d %H:%M %Z")
    return f"the machine is not ready since {since}: {'; '.join(verdict.reasons)}"
