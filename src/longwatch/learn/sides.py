"""The tasks of one side of a prepared window, held against the digest that was bound before training (L7)."""

from pathlib import Path

from longwatch.kernel.digest import digest
from longwatch.learn import windows
from longwatch.learn.steps import Window
from longwatch.learn.tasks import Split, Task


def tasks_of(root: Path, window: Window, split: Split) -> tuple[Task, ...]:
    """Return a side's tasks in their pre-committed order.

    Raises:
        IntegrityError: the window is not what was bound.
    """
    _, sides = windows.load(root / str(window.number), digest(window.manifest))
    return sides.get(split, ())
