"""Where the parts of a migrate watch lie. Paths only."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from longwatch.kernel.watch import Watch
from longwatch.migrate.profiles import Profile
from longwatch.migrate.settings import MigrateSettings

INSIDE = Path("/work/repo")
"""Where a checkout stands inside the sandbox: the same in every attempt and check, so results compare."""


@dataclass(frozen=True)
class Place:
    """A migrate watch's folders."""

    watch: Watch
    settings: MigrateSettings

    @property
    def repository(self) -> Path:
        """Return the person's repository."""
        return (self.watch.root / self.settings.repository.path).resolve()

    @cached_property
    def profile(self) -> Profile:
        """Return the policy in force."""
        return self.settings.policy_in_force()

    @property
    def source_root(self) -> Path | None:
        """Return the folder of the source system, where the queue names one."""
        root = self.profile.queue.source_root
        return self.repository / Path(root).expanduser() if root else None

    @property
    def cards(self) -> Path:
        """Return the folder of task cards."""
        return self.repository / self.settings.repository.tasks

    @property
    def prompt(self) -> Path:
        """Return the prompt template."""
        return self.watch.root / self.settings.worker.prompt

    @property
    def attempts(self) -> Path:
        """Return the folder of what is kept of every attempt."""
        return self.watch.hidden / "attempts"

    @property
    def work(self) -> Path:
        """Return the folder of clones and checkouts: all of it may be thrown away when no step runs."""
        return self.watch.hidden / "work"

    @property
    def baselines(self) -> Path:
        """Return the folder of what the checks said of a tree, by its digest."""
        return self.watch.hidden / "baselines"

    @property
    def turn(self) -> Path:
        """Return the lock of the person's repository: one step at a time writes there, or reads what must hold still."""
        return self.watch.hidden / "repository.lock"

    @property
    def evidence(self) -> Path:
        """Return the folder of what cases left, each file named by its digest; receipts cite it."""
        return self.watch.hidden / "evidence"

    def attempt(self, name: str) -> Path:
        """Return the folder of one attempt: prompt, answer, log, salvaged work."""
        return self.attempts / name
