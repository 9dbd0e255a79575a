"""Which program of the person's a `git commit` ran last, from git's own trace (Trace2 event format).

Git does not say which hook refused: only the trace does. It is used for messages alone, never for decisions.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from longwatch.migrate.repository.git_process import Finished


class _Event(msgspec.Struct, frozen=True):
    event: str
    sid: str
    child_id: int = -1
    child_class: str = ""
    hook_name: str = ""
    argv: tuple[str, ...] = ()
    code: int = 0


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that has ended, and the programs that git started for it, in order."""

    finished: Finished
    hooks: tuple[str, ...] = ()
    failed: str = ""
    """The last one that ended with another exit code than 0."""
    running: str = ""
    """The last one that had not ended."""

    @property
    def blame(self) -> str:
        """Who kept git from ending well."""
        if self.finished.ended_by and self.running:
            return f"{self.running} did not end in time and was ended"
        if self.failed and not self.finished.ended_by:
            return f"{self.failed} refused"
        return f"git commit {self.finished.ending}"


def traced(path: Path, finished: Finished) -> Traced:
    """Read the trace of a commit; lines of other programs, and cut ones, count for nothing."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    events = [event for event in map(_event, lines) if event is not None and "/" not in event.sid]
    started = {event.child_id: _name(event) for event in events if event.event == "child_start"}
    ended = {event.child_id: event.code for event in events if event.event == "child_exit"}
    return Traced(
        finished=finished,
        hooks=tuple(_name(event) for event in events if event.hook_name),
        failed=_last(name for child, name in started.items() if ended.get(child, 0)),
        running=_last(name for child, name in started.items() if child not in ended),
    )


def _event(line: bytes) -> _Event | None:
    try:
        return msgspec.json.decode(line, type=_Event)
    except msgspec.DecodeError:
        return None


def _name(event: _Event) -> str:
    if event.hook_name:
        return f"the hook {event.hook_name}"
    return Path(event.argv[0]).name if event.argv else "a program"


def _last(names: Iterable[str]) -> str:
    return next(reversed(list(names)), "")
