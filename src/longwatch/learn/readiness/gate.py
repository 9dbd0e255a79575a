"""Asked before a step that uses the student begins: whether it may, or what it waits for."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from longwatch.kernel.instant import Instant
from longwatch.kernel.line import Decision, Start, Wait
from longwatch.kernel.watch import Watch
from longwatch.learn.line import LearnLine
from longwatch.learn.readiness import turns
from longwatch.learn.readiness.judging import NotReady, Ready, judge
from longwatch.learn.readiness.readings import Probe
from longwatch.learn.settings import LearnSettings
from longwatch.learn.state import LearnState
from longwatch.learn.steps import ACCELERATOR, LearnStep


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


class GatedLine(LearnLine):
    """The line of a real watch: what the pure one would begin waits until the machine is ready for it (L34)."""

    def __init__(
        self, settings: LearnSettings, root: Path, gate: Callable[[int, Instant], Wait | None]
    ) -> None:
        """`gate` says what a step of an experiment waits for that uses the student."""
        super().__init__(settings, root)
        self._gate = gate

    def decide(
        self, state: LearnState, running: Mapping[str, LearnStep], now: Instant
    ) -> Decision[LearnStep]:
        """Return what to do next, as far as the machine allows it."""
        decision = super().decide(state, running, now)
        if not isinstance(decision, Start):
            return decision
        held = (self._gate(step.number, now) for step in decision.steps if step.exclusive & ACCELERATOR)
        return next(filter(None, held), decision)
