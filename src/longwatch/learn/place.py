"""Where the parts of a learn watch lie. Paths only."""

from dataclasses import dataclass, replace
from pathlib import Path

from longwatch.kernel.watch import Watch
from longwatch.learn.settings import LearnSettings
from longwatch.learn.steps import BASE


@dataclass(frozen=True, slots=True)
class Place:
    """A learn watch's folders."""

    watch: Watch
    settings: LearnSettings
    exams_of: int | None = None
    """The experiment whose own tasks are asked, so that their grades go with it; `None`: of tasks that stay."""

    @property
    def windows(self) -> Path:
        """Return the folder of prepared windows of the curriculum."""
        return self.watch.hidden / "windows"

    @property
    def experiments(self) -> Path:
        """Return the folder with one folder per experiment: collected answers, checkpoints, grades."""
        return self.watch.hidden / "experiments"

    @property
    def adapters(self) -> Path:
        """Return the store of accepted adapters."""
        return self.watch.hidden / "adapters"

    @property
    def replay(self) -> Path:
        """Return the folder of verified teaching data: one file, named by its digest, for each accepted adapter."""
        return self.watch.hidden / "replay"

    @property
    def grades(self) -> Path:
        """Return what answers were graded, by everything that they depend on: equal work is never done twice."""
        home = self.watch.hidden if self.exams_of is None else self.experiment(self.exams_of)
        return home / "grades"

    @property
    def teacher(self) -> Path:
        """Return what the teacher has cost, and its answers that were paid for: they are never pruned."""
        return self.watch.hidden / "teacher"

    @property
    def audits(self) -> Path:
        """Return the records of audits. Only the audit reads them (L25)."""
        return self.watch.hidden / "audits"

    @property
    def generations(self) -> Path:
        """Return the archive of the source generations that experiments are bound to."""
        return self.archive_of(self.watch)

    @staticmethod
    def archive_of(watch: Watch) -> Path:
        """Return the same, before any settings are read."""
        return watch.hidden / "generations"

    def within(self, number: int) -> "Place":
        """Return the same place for exams on an experiment's own tasks."""
        return replace(self, exams_of=number)

    def experiment(self, number: int) -> Path:
        """Return one experiment's folder."""
        return self.experiments / str(number)

    def adapter(self, adapter: str, number: int) -> Path | None:
        """Return where an adapter lies: in the store, or still in the experiment that trained it; `None` for base."""
        if adapter == BASE:
            return None
        stored = self.adapters / adapter
        return stored if stored.is_dir() else self.experiment(number) / "nominated" / adapter
