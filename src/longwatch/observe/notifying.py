"""Tells a person's own command what happened, once, as JSON on its standard input. Nothing waits for it, and nothing fails with it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence

import msgspec

from longwatch.kernel import files
from longwatch.kernel.clock import now, stamp
from longwatch.kernel.config import Problem
from longwatch.kernel.journal import Note
from longwatch.kernel.settings import Observe
from longwatch.kernel.watch import Watch

WHAT = {
    "watch.blocked": "blocked",
    "watch.needs_reconcile": "needs_reconcile",
    "watch.exhausted": "exhausted",
    "watch.complete": "complete",
    "job.done": "accepted",
    "champion.accepted": "accepted",
}
"""Events that a person may want to hear of, by the words of `observe.notify_on`."""
WORDS = tuple(dict.fromkeys(WHAT.values()))
LOG = "notify.log"
LONGEST_S = 60.0
FAREWELL_S = 5.0


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """What the command reads."""

    what: str
    """`blocked`, `needs_reconcile`, `exhausted`, `complete` or `accepted`."""
    watch: str
    """Its folder."""
    text: str
    """A sentence for a person."""
    at: str
    """UTC, ISO 8601."""
    data: dict[str, str | int | float | bool | None]
    """What the event holds for machines: a job, a receipt, a commit."""


def payloads(watch: Watch, settings: Observe, notes: Sequence[Note], at: str) -> Iterator[Payload]:
    """Pure: yield what is told of these notes."""
    for note in notes:
        what = WHAT.get(note.kind, "")
        if what in settings.notify_on:
            yield Payload(what=what, watch=str(watch.root), text=note.text, at=at, data=dict(note.data))


def problems(settings: Observe) -> Iterator[Problem]:
    """Yield what keeps the command from being told anything."""
    if settings.notify and shutil.which(settings.notify[0]) is None:
        yield Problem(
            f"observe.notify[0] = {settings.notify[0]!r}", "is no program here: give its whole path"
        )
    for word in settings.notify_on:
        if word not in WORDS:
            yield Problem(f"observe.notify_on: {word!r}", f"is unknown: use {', '.join(WORDS)}")


class Notifier:
    """Starts the command for each thing that is told; what it prints goes to `.longwatch/notify.log`."""

    def __init__(self, watch: Watch, settings: Observe) -> None:
        self._watch, self._settings = watch, settings
        self._begun: list[tuple[float, subprocess.Popen[bytes]]] = []

    def changed(self, notes: Sequence[Note]) -> None:
        """Tell what is worth telling of new notes."""
        if not self._settings.notify:
            return
        self._clear(LONGEST_S)
        for payload in payloads(self._watch, self._settings, notes, stamp(now().wall_s)):
            self._tell(payload)

    def farewell(self) -> None:
        """Give what still runs a few seconds, so that the last word is heard."""
        end = time.monotonic() + FAREWELL_S
        while self._begun and time.monotonic() < end:
            self._clear(FAREWELL_S)
            time.sleep(0.05)
        self._clear(0.0)

    def _tell(self, payload: Payload) -> None:
        with files.log(self._watch.hidden / LOG) as log, tempfile.TemporaryFile() as told:
            told.write(msgspec.json.encode(payload) + b"\n")
            told.seek(0)
            try:
                process = subprocess.Popen(
                    self._settings.notify,
                    cwd=self._watch.root,
                    stdin=told,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            except OSError as error:
                os.write(log, f"{payload.at} {self._settings.notify[0]}: {error}\n".encode())
                return
        self._begun.append((time.monotonic(), process))

    def _clear(self, longest_s: float) -> None:
        """Forget what ended, and end what takes too long."""
        for begun_s, process in self._begun:
            if process.poll() is None and time.monotonic() - begun_s > longest_s:
                process.kill()
                process.wait()
        self._begun = [one for one in self._begun if one[1].returncode is None]
