"""Any JSONL file of tasks in our own format as a source: each problem is a row."""

from collections.abc import Iterator
from pathlib import Path

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import ConfigError
from longwatch.learn import registry, splits
from longwatch.learn.sources import licence
from longwatch.learn.sources.source import Row
from longwatch.learn.tasks import Split, Task


class TaskFile:
    """The rows of a file, read once; a change of it afterwards is another revision."""

    name = "file"
    provenance = (
        "from the one file that the configuration names as curriculum; no person's prompts, files or conversations "
        "are read"
    )

    def __init__(self, path: Path) -> None:
        """Read the file at `path`.

        Raises:
            ConfigError: it is not there, or a line is no task, or a task is of a benchmark.
            RefusedError: a record's licence forbids training.
            IntegrityError: an id is there twice, or a problem or repository is on two sides.
        """
        data = _content(path)
        for number, line in enumerate(data.splitlines(), 1):
            licence.check(line, f"{path}, line {number}")
        tasks = registry.decode(data, str(path))
        registry.check_ids(tasks)
        splits.check(tasks)
        _refuse_audits(tasks, path)
        self.digest: Digest = digest.of_bytes(data)
        self.revision = self.digest
        self._problems = _by_problem(tasks)

    @property
    def length(self) -> int:
        """How many problems there are."""
        return len(self._problems)

    def rows(self, start: int, end: int) -> Iterator[Row]:
        """The rows from `start` up to, not including, `end`."""
        for number, tasks in enumerate(self._problems[start:end], start):
            yield Row(number=number, tasks=tasks)


def _content(path: Path) -> bytes:
    try:
        return files.read_bounded(path, registry.MAX_BYTES)
    except FileNotFoundError:
        raise ConfigError(
            f"[curriculum] source: there is no file {path}; name one, or write `generated`, `mbpp` or `mbxp`"
        ) from None


def _refuse_audits(tasks: tuple[Task, ...], path: Path) -> None:
    for task in tasks:
        if task.split is Split.AUDIT:
            raise ConfigError(
                f"{path}: task {task.id!r} is of a benchmark and never enters the curriculum (L4)"
            )


def _by_problem(tasks: tuple[Task, ...]) -> tuple[tuple[Task, ...], ...]:
    problems: dict[str, list[Task]] = {}
    for task in tasks:
        problems.setdefault(task.problem, []).append(task)
    return tuple(map(tuple, problems.values()))
