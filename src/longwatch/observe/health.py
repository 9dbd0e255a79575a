"""Is it well, and what does it need from me? One sentence about a status, with the command that helps. Pure."""

from enum import StrEnum

import msgspec

from longwatch.kernel.lifecycle import Phase
from longwatch.observe.status import Status


class Level(StrEnum):
    """How much a person is needed, least first."""

    DONE = "done"
    WELL = "well"
    HELD = "held"
    """Paused or stopped, because a person wished so."""
    STALE = "stale"
    """It should work, and nobody supervises it."""
    NEEDS_YOU = "needs_you"

    @property
    def rank(self) -> int:
        """Return its place in the order in which a person wants to hear of watches: 0 comes first."""
        return len(Level) - 1 - tuple(Level).index(self)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What to tell a person first."""

    level: Level
    sentence: str
    command: str = ""
    """What helps, to be typed in the watch's folder; empty where nothing has to be done."""


_NEEDS = {
    Phase.BLOCKED: ("Blocked", "longwatch reconcile"),
    Phase.NEEDS_RECONCILE: ("Somebody has to look", "longwatch reconcile"),
    Phase.EXHAUSTED: ("A budget is used up", "longwatch run"),
}
_NAMED = 4
_HELD = {
    Phase.PAUSED: ("Paused", "longwatch resume"),
    Phase.STOPPED: ("Stopped", "longwatch resume"),
}


def health(seen: Status) -> Health:
    """Return the one thing that a person should know of a watch."""
    if seen.config_problem:
        return Health(level=Level.NEEDS_YOU, sentence=seen.config_problem, command="longwatch doctor")
    phase = Phase(seen.phase)
    if phase in _NEEDS:
        return _told(Level.NEEDS_YOU, *_NEEDS[phase], seen.reason)
    if phase in _HELD:
        return _told(Level.HELD, *_HELD[phase], seen.reason)
    if phase is Phase.COMPLETE:
        return Health(level=Level.DONE, sentence=seen.reason or "All is done.")
    if seen.supervisor is None or not seen.supervisor.alive:
        return _unsupervised(seen)
    return Health(level=Level.WELL, sentence=_doing(seen, phase))


def _told(level: Level, word: str, command: str, reason: str) -> Health:
    return Health(level=level, sentence=f"{word}: {reason}" if reason else f"{word}.", command=command)


def _unsupervised(seen: Status) -> Health:
    if seen.supervisor is None:
        return Health(level=Level.STALE, sentence="It was never started.", command="longwatch run")
    sentence = f"Nobody supervises it: process {seen.supervisor.pid} is gone. Nothing is lost; it goes on where it was."
    return Health(level=Level.STALE, sentence=sentence, command="longwatch run")


def _doing(seen: Status, phase: Phase) -> str:
    if phase is Phase.WAITING:
        until = f" until {seen.next_retry_at}" if seen.next_retry_at else ""
        return f"Waits{until}: {seen.reason}"
    titles = [step.title or step.id for step in seen.steps]
    more = f"; and {len(titles) - _NAMED} more" if len(titles) > _NAMED else ""
    return "; ".join(titles[:_NAMED]) + more if titles else seen.reason or "Between two steps."
