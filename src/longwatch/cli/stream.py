"""What `run` prints: a line per event, and on a terminal one live line of what is being done."""

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from zoneinfo import ZoneInfo

import msgspec

from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import ExitCode
from longwatch.kernel.journal import Note
from longwatch.kernel.watch import Watch
from longwatch.observe import render, status

_COLOURS = (
    (("job.done", "job.verified", "job.committed", "watch.complete"), "32"),
    (("attempt.refused", "job.blocked", "step.failed", "watch.blocked", "attempt.lost", "watch.needs"), "31"),
    (("watch.waiting", "request", "watch.halting", "step.died"), "33"),
)
_QUIET = ("step.started", "watch.drained", "watch.begun", "supervisor.ended")
"""Kept in the log, not printed: the live line and the outcomes say it."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as `run --json` prints it."""

    at: str
    kind: str
    text: str
    data: dict[str, str | int | float | bool | None]


class Stream:
    """Prints events as they become durable. Colours and the live line only on a terminal."""

    def __init__(self, watch: Watch, *, as_json: bool, zone: str) -> None:
        """`zone` is the time zone of what is shown."""
        self._watch, self._json = watch, as_json
        self._zone = ZoneInfo(zone)
        self._live = sys.stdout.isatty() and not as_json
        self._shown = 0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the live line away."""
        self._clear()

    def changed(self, notes: Sequence[Note]) -> None:
        """Print what a durable move said, and show what is being done."""
        self._clear()
        for note in notes:
            if self._json:
                self._print(msgspec.json.encode(_line(note)).decode())
            elif note.kind not in _QUIET:
                self._print(f"{self._time()} {self._coloured(note)}")
        if self._live:
            self._show_live()
        sys.stdout.flush()

    def farewell(self, code: ExitCode) -> None:
        """Say how it ended, and what a person does next."""
        if self._json:
            return
        shown = status.read(self._watch)
        reason = f": {shown.reason}" if shown.reason else ""
        self._print(f"{shown.phase}{reason} (exit code {int(code)})")
        hint = _HINTS.get(shown.phase)
        if hint:
            self._print(hint)

    def _show_live(self) -> None:
        shown = status.read(self._watch)
        line = (" | ".join(map(render.step_line, shown.steps)) or shown.phase)[
            : shutil.get_terminal_size().columns - 1
        ]
        sys.stdout.write(f"\033[2m{line}\033[0m")
        self._shown = len(line)

    def _clear(self) -> None:
        if self._shown:
            sys.stdout.write("\r\033[K")
            self._shown = 0

    def _time(self) -> str:
        return datetime.now(UTC).astimezone(self._zone).strftime("%H:%M:%S")

    def _coloured(self, note: Note) -> str:
        colour = next((code for kinds, code in _COLOURS if note.kind.startswith(kinds)), "")
        return f"\033[{colour}m{note.text}\033[0m" if colour and self._live else note.text

    def _print(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


_HINTS = {
    "blocked": "Look with `longwatch reconcile`; then `longwatch resume --accept` and `longwatch run` go on.",
    "needs_reconcile": "Look with `longwatch reconcile`; then `longwatch resume --accept` and `longwatch run` go on.",
    "paused": "`longwatch resume` and `longwatch run` go on.",
    "stopped": "`longwatch run` goes on; after a `longwatch stop`, `longwatch resume` comes first.",
    "idle": "`longwatch run` goes on.",
    "waiting": "`longwatch run` waits on and then goes on; `longwatch resume` ends the wait.",
    "exhausted": "Raise in longwatch.toml what is spent, or wait until the limit lifts; then `longwatch run` goes on.",
    "complete": "`longwatch verify` checks every receipt again.",
}


def _line(note: Note) -> Line:
    return Line(at=stamp(now().wall_s), kind=note.kind, text=note.text, data=dict(note.data))
