"""One run of a supervisor, from the command line's side: ownership, what is printed, and the way out."""

import os
import sys
from collections.abc import Mapping, Sequence

import msgspec

from longwatch.cli.stream import Stream
from longwatch.executors.local import LocalExecutor
from longwatch.kernel import files
from longwatch.kernel.config import refuse
from longwatch.kernel.errors import ExitCode
from longwatch.kernel.journal import Note
from longwatch.kernel.lifecycle import Phase
from longwatch.kernel.ownership import owned
from longwatch.kernel.request import Request, Verb
from longwatch.kernel.store import Store
from longwatch.kernel.supervisor import Supervisor
from longwatch.kernel.watch import Watch
from longwatch.observe import asking, kinds, notifying, status
from longwatch.observe.notifying import Notifier

PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "OMP_NUM_THREADS",
    "LONGWATCH_LOCKS",
)
"""What our own step programs see of the environment, besides what the settings name."""
GIT_NEEDS = ("SSH_AUTH_SOCK", "GNUPGHOME", "GPG_AGENT_INFO", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL")
"""So that commits are signed and pushes authenticated as the person's own would be. The worker sees none of it."""


class Session:
    """Everything between the lease and its release."""

    def __init__(self, watch: Watch, *, as_json: bool, inherited: int | None, ready: int | None) -> None:
        """`inherited` is a lease handed over by a parent, `ready` the pipe that waits to hear that we own it."""
        self._watch, self._inherited, self._ready = watch, inherited, ready
        self._application = kinds.load(watch)
        observe = self._application.settings.observe
        self._stream = Stream(watch, as_json=as_json, zone=observe.zone)
        self._notifier = Notifier(watch, observe)

    def refresh(self) -> None:
        """Take the world as it is now for the new starting point: the person's word."""
        asking.ask(self._watch, Request(verb=Verb.RESUME, accept=True, refresh=True))

    def run(self, *, max_cycles: int | None, ends: Mapping[Phase, ExitCode]) -> ExitCode:
        """Supervise until the watch is in a phase of `ends`."""
        settings = self._application.settings
        with owned(self._watch, settings.host, inherited=self._inherited):
            refuse(self._watch.config, notifying.problems(settings.observe))
            self._application.ready()
            store = Store.open(self._watch.database)
            self._say_ready()
            supervisor = Supervisor(
                self._watch,
                settings,
                self._application.line,
                LocalExecutor(environment(os.environ, self._application.variables)),
                store,
                changed=self._changed,
            )
            with self._stream:
                code = supervisor.run(max_cycles=max_cycles, ends=ends)
            store.close()
        self._notifier.farewell()
        self._stream.farewell(code)
        return code

    def _say_ready(self) -> None:
        if self._ready is not None:
            os.write(self._ready, b"1")
            os.close(self._ready)

    def _changed(self, notes: Sequence[Note]) -> None:
        self._stream.changed(notes)
        self._notifier.changed(notes)
        mirror = self._application.settings.observe.status_file
        if mirror:
            shown = status.read(self._watch)
            files.show(self._watch.root / mirror, msgspec.json.encode(shown) + b"\n", mode=0o644)


def environment(ours: Mapping[str, str], named: Sequence[str]) -> dict[str, str]:
    """Return what step programs may see: an allow-list, and what the settings name (specification K17)."""
    passed = {name: ours[name] for name in (*PASSED, *GIT_NEEDS, *named) if name in ours}
    return {**passed, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "LONGWATCH_PYTHON": sys.executable}
