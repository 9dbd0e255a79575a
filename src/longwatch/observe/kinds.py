"""The kinds of watches, by name. The one place that knows all applications."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from longwatch.kernel import config
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.finding import Finding, Section
from longwatch.kernel.line import Line
from longwatch.kernel.settings import KernelSettings
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.sandbox.choice import Sandboxing

if TYPE_CHECKING:
    # Signatures take time to load, and `status` has none to check.
    from longwatch.kernel.verification import World


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The application's part of a status."""

    rows: tuple[tuple[str, str], ...]
    details: msgspec.Struct | None = None
    """The same as values, where the application has more to say than rows."""


class Application(Protocol):
    """What the command line needs of an application, besides its line of work."""

    @property
    def settings(self) -> KernelSettings:
        """Return the part of the settings that every kind shares."""

    @property
    def line(self) -> Line[Any, Any]:
        """Return the application's line of work."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the names of the environment variables that its steps need, besides those that every step gets."""

    def ready(self) -> None:
        """Prove that work can begin, or raise what keeps it from beginning; before anything is spent."""

    def shown(self, state: bytes, store: Store) -> "Shown":
        """Return what a status shows of the application: rows for a person, and values for programs."""

    def board(self, state: bytes) -> msgspec.Struct:
        """Return all pieces of work with their standing, as values that a page draws."""

    def patch(self, state: bytes, name: str) -> msgspec.Struct | None:
        """Return what a piece of work changed, where the application has such a thing."""

    @property
    def sandbox(self) -> Sandboxing:
        """Return the sandbox that untrusted programs run in."""

    @property
    def commits(self) -> bool:
        """Return whether it commits with the person's git."""

    def world(self, store: Store) -> "World":
        """Return what receipts are held against (specification K32)."""

    def relied_on(self, state: bytes) -> tuple[str, ...]:
        """Return the receipts that the stored state stands on."""

    def examine(self, state: bytes | None) -> Iterator[Finding]:
        """Yield the application's lines of `doctor`; `None` where no state can be read. Changes nothing."""

    def since_verified(self, state: bytes) -> tuple[Section, ...]:
        """Return what changed since the last verified point, for `reconcile`. Changes nothing."""


class _Migrate:
    def __init__(self, watch: Watch) -> None:
        from longwatch.migrate import settings  # noqa: PLC0415 - a watch loads one application only
        from longwatch.migrate.line import MigrateLine  # noqa: PLC0415 - the same

        self._watch = watch
        self.settings = settings.load(watch.root)
        self.line = MigrateLine(self.settings, watch.root)

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.settings.observe.secrets, *self.settings.worker.environment, *self.sandbox.variables)

    def ready(self) -> None:
        from longwatch.migrate import preflight  # noqa: PLC0415 - only a run needs it

        preflight.prove(self._watch, self.settings)

    def shown(self, state: bytes, store: Store) -> Shown:  # noqa: ARG002 - the protocol's signature
        return Shown(rows=self.line.summary(msgspec.json.decode(state, type=self.line.state_type)))

    def board(self, state: bytes) -> msgspec.Struct:
        from longwatch.migrate import board  # noqa: PLC0415 - only a page needs it

        return board.board(self.settings, msgspec.json.decode(state, type=self.line.state_type))

    def patch(self, state: bytes, name: str) -> msgspec.Struct | None:
        from longwatch.migrate import board  # noqa: PLC0415 - only a page needs it

        known = msgspec.json.decode(state, type=self.line.state_type)
        return board.patch(self._watch, self.settings, known, name)

    @property
    def sandbox(self) -> Sandboxing:
        return self.settings.where

    @property
    def commits(self) -> bool:
        return True

    def world(self, store: Store) -> "World":
        from longwatch.migrate import witness  # noqa: PLC0415 - only a verification needs it

        return witness.world(self._watch, self.settings, store)

    def relied_on(self, state: bytes) -> tuple[str, ...]:
        jobs = msgspec.json.decode(state, type=self.line.state_type).jobs
        return tuple(job.receipt for job in jobs.values() if job.receipt)

    def examine(self, state: bytes | None) -> Iterator[Finding]:
        from longwatch.migrate import doctor  # noqa: PLC0415 - only `doctor` needs it

        known = None if state is None else msgspec.json.decode(state, type=self.line.state_type)
        return doctor.examine(self._watch, self.settings, known)

    def since_verified(self, state: bytes) -> tuple[Section, ...]:
        from longwatch.migrate import reconcile  # noqa: PLC0415 - only `reconcile` needs it

        known = msgspec.json.decode(state, type=self.line.state_type)
        return reconcile.since_verified(self._watch, self.settings, known)


class _Learn:
    def __init__(self, watch: Watch) -> None:
        from longwatch.learn import settings  # noqa: PLC0415 - a watch loads one application only
        from longwatch.learn.readiness.gate import Gate, GatedLine  # noqa: PLC0415 - the same
        from longwatch.learn.readiness.machine import Machine  # noqa: PLC0415 - the same

        self._watch = watch
        self.settings = settings.load(watch.root)
        self.line = GatedLine(
            self.settings, watch.root, Gate(Machine(watch, self.settings), self.settings, watch)
        )

    @property
    def variables(self) -> tuple[str, ...]:
        return (*self.settings.variables, *self.sandbox.variables)

    def ready(self) -> None:
        from longwatch.learn import preflight  # noqa: PLC0415 - only a run needs it
        from longwatch.learn.generations import entering  # noqa: PLC0415 - the same

        preflight.prove(self._watch, self.settings)
        entering.ready(self._watch, self.settings)

    def shown(self, state: bytes, store: Store) -> Shown:
        from longwatch.learn import standing  # noqa: PLC0415 - a watch loads one application only

        known = msgspec.json.decode(state, type=self.line.state_type)
        found = standing.look(self._watch, self.settings, known, store)
        return Shown(rows=standing.rows(found), details=found)

    def board(self, state: bytes) -> msgspec.Struct:
        from longwatch.learn import board, history  # noqa: PLC0415 - only a page needs it

        store = Store.read(self._watch.database)
        try:
            log = tuple(store.told(history.KINDS))
        finally:
            store.close()
        return board.board(msgspec.json.decode(state, type=self.line.state_type), log)

    def patch(self, state: bytes, name: str) -> None:
        """An adapter is no text."""

    @property
    def sandbox(self) -> Sandboxing:
        return self.settings.where

    @property
    def commits(self) -> bool:
        return False

    def world(self, store: Store) -> "World":
        from longwatch.learn import witness  # noqa: PLC0415 - only a verification needs it

        return witness.world(self._watch, self.settings, store)

    def relied_on(self, state: bytes) -> tuple[str, ...]:
        history = msgspec.json.decode(state, type=self.line.state_type).history
        return tuple(one.receipt for one in history if one.receipt)

    def examine(self, state: bytes | None) -> Iterator[Finding]:
        from longwatch.kernel.clock import now  # noqa: PLC0415 - only `doctor` needs it
        from longwatch.learn import preflight  # noqa: PLC0415 - the same
        from longwatch.learn.generations import entering  # noqa: PLC0415 - the same
        from longwatch.learn.readiness import telling  # noqa: PLC0415 - the same
        from longwatch.learn.readiness.machine import Machine  # noqa: PLC0415 - the same

        yield from preflight.findings(self.settings, self._watch.root)
        known = self.line.begin() if state is None else msgspec.json.decode(state, type=self.line.state_type)
        seen = Machine(self._watch, self.settings, everything=True).read(known.experiment.number)
        yield from telling.findings(seen, self.settings, now())
        yield from entering.findings(self._watch, self.settings, known)

    def since_verified(self, state: bytes) -> tuple[Section, ...]:
        known = msgspec.json.decode(state, type=self.line.state_type)
        lines = tuple(f"experiment {one.number}: {one.decision}" for one in known.history[-5:])
        return (Section(title="decided experiments", lines=lines),)


KINDS: dict[str, Callable[[Watch], Application]] = {"learn": _Learn, "migrate": _Migrate}


def find(folder: Path) -> Watch:
    """Return the watch in a folder or in the nearest one above it."""
    start = folder.resolve()
    for candidate in (start, *start.parents):
        watch = Watch(candidate)
        if watch.config.is_file():
            return watch
    raise ConfigError(
        f"There is no longwatch.toml in {start} or above it. `longwatch init migrate` or `longwatch init learn` makes one."
    )


def load(watch: Watch) -> Application:
    """Return the application of a watch, with its settings."""
    kind = config.kind_of(watch.config)
    if kind not in KINDS:
        raise ConfigError(f'{watch.config}: kind "{kind}" is unknown; this program knows {", ".join(KINDS)}.')
    return KINDS[kind](watch)


def zone(watch: Watch) -> str:
    """Return the time zone that a person wants to see; UTC where the settings cannot be read."""
    try:
        return load(watch).settings.observe.zone
    except ConfigError:
        return "UTC"
