"""Reads watches for a report."""

from collections.abc import Sequence
from pathlib import Path

from longwatch.kernel.clock import now, stamp
from longwatch.kernel.errors import ConfigError
from longwatch.kernel.store import Store
from longwatch.kernel.watch import Watch
from longwatch.learn.board import LearnBoard
from longwatch.migrate.board import MigrateBoard
from longwatch.observe import finding, kinds, status, timings, verifying
from longwatch.observe.report import telling
from longwatch.observe.report.story import Story
from longwatch.observe.report.telling import Facts, story


def read(folders: Sequence[Path]) -> tuple[Story, ...]:
    """Return the stories of all watches in these folders and below, those that need somebody first.

    Raises:
        ConfigError: a folder is not there, or there is no watch.
        LongwatchError: a watch cannot be read.
    """
    found = finding.watches(folders)
    if not found:
        raise ConfigError(f"there is no watch in {', '.join(map(str, folders))} or below")
    stories = [story(facts(watch)) for watch in found.values()]
    return tuple(sorted(stories, key=lambda one: (one.health.level.rank, one.watch)))


def facts(watch: Watch) -> Facts:
    """Return what a report is made from. Everything is verified now."""
    seen = status.read(watch)
    store = Store.read(watch.database)
    try:
        events, line = tuple(store.told(telling.KINDS)), store.snapshot().line
    finally:
        store.close()
    fit = not seen.config_problem
    return Facts(
        status=seen,
        board=_board(watch, line) if fit else None,
        events=events,
        timings=timings.read(watch),
        verification=verifying.verify(watch) if fit else None,
        at=stamp(now().wall_s),
    )


def _board(watch: Watch, line: bytes) -> MigrateBoard | LearnBoard | None:
    found = kinds.load(watch).board(line)
    return found if isinstance(found, MigrateBoard | LearnBoard) else None
