"""The kinds of watches, by name. The one place that knows all applications."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from longwatch.kernel import config
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.line import Line
from longwatch.kernel.settings import KernelSettings
from longwatch.kernel.watch import Watch


class Application(Protocol):
    """What the command line needs of an application, besides its line of work."""

    @property
    def settings(self) -> KernelSettings:
        """Return the part of the settings that every kind shares."""

    @property
    def line(self) -> Line[Any, Any]:
        """Return the application's line of work."""

    def ready(self) -> None:
        """Prove that work can begin, or raise what keeps it from beginning; before anything is spent."""

    def summary(self, state: bytes) -> tuple[tuple[str, str], ...]:
        """Return rows for a person's status from the stored state."""


class _Migrate:
    def __init__(self, watch: Watch) -> None:
        from longwatch.migrate import settings  # noqa: PLC0415 - a watch loads one application only
        from longwatch.migrate.line import MigrateLine  # noqa: PLC0415 - the same

        self._watch = watch
        self.settings = settings.load(watch.root)
        self.line = MigrateLine(self.settings, watch.root)

    def ready(self) -> None:
        from longwatch.migrate import preflight  # noqa: PLC0415 - only a run needs it

        preflight.prove(self._watch, self.settings)

    def summary(self, state: bytes) -> tuple[tuple[str, str], ...]:
        return self.line.summary(msgspec.json.decode(state, type=self.line.state_type))


KINDS: dict[str, Callable[[Watch], Application]] = {"migrate": _Migrate}


def find(folder: Path) -> Watch:
    """Return the watch in a folder or in the nearest one above it."""
    start = folder.resolve()
    for candidate in (start, *start.parents):
        watch = Watch(candidate)
        if watch.config.is_file():
            return watch
    raise ConfigError(
        f"There is no longwatch.toml in {start} or above it. `longwatch init migrate` makes one."
    )


def load(watch: Watch) -> Application:
    """Return the application of a watch, with its settings."""
    kind = config.kind_of(watch.config)
    if kind not in KINDS:
        raise ConfigError(f'{watch.config}: kind "{kind}" is unknown; this program knows {", ".join(KINDS)}.')
    return KINDS[kind](watch)
