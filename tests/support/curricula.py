"""Small sources and tasks for tests of what is made of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from longwatch.kernel import digest
from longwatch.learn.curriculum.generated import Generated
from longwatch.learn.grading.screening import Finding, Screened
from longwatch.learn.sources.source import Row
from longwatch.learn.tasks import Case, Cases, Language, Split, Task

PUBLIC = Path(__file__).parents[3] / "shared/data"
BOTH = (Language.PYTHON, Language.JAVASCRIPT)


def task(name: str, split: Split = Split.TRAIN, **changed: object) -> Task:
    values: dict[str, object] = {
        "id": name,
        "problem": name,
        "repository": name,
        "family": "lists",
        "language": Language.PYTHON,
        "split": split,
        "prompt": f"Return {name}.",
        "entry_point": "f",
        "tests": Cases(cases=(Case((1,), 2),)),
        "reference": "def f(a):\n    return a + 1\n",
        **changed,
    }
    return Task(**values)  # type: ignore[arg-type]  # msgspec checks them when they are written and read


def generated(rows: int = 60, seed: int = 1) -> list[Task]:
    return [one for row in Generated(seed, BOTH).rows(0, rows) for one in row.tasks]


class Listed:
    """A source that ends."""

    name = "listed"
    revision = "1"
    digest = digest.of_bytes(b"listed")
    provenance = "made for a test; no person's prompts, files or conversations are read"

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @property
    def length(self) -> int:
        return len(self._rows)

    def rows(self, start: int, end: int) -> Iterator[Row]:
        return iter(self._rows[start:end])


def usable(tasks: Sequence[Task]) -> Iterator[Screened]:
    return (Screened(task=one.id, finding=Finding.USABLE) for one in tasks)
