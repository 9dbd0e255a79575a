"""On which side a problem is (L4), and draws that treat languages and families alike (L6). Pure."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, zip_longest

from longwatch.kernel.errors import IntegrityError
from longwatch.learn.tasks import Split, Task

_SHARES = (
    (0.50, Split.TRAIN),
    (0.65, Split.DEV),
    (0.88, Split.CONFIRM),
    (1.00, Split.SEALED),
)
"""Upper ends of the shares."""


def side_of(origin: str) -> Split:
    """The side of everything with this origin, the same for ever: half for training, 15, 23 and 12 % for the rest."""
    share = int.from_bytes(sha256(origin.encode()).digest()[:8]) / 2**64
    return next(split for end, split in _SHARES if share < end)


def check(tasks: Iterable[Task]) -> None:
    """Return if no problem and no repository has tasks on two sides.

    Raises:
        IntegrityError: one has; the message names it and both tasks.
    """
    first: dict[tuple[str, str], Task] = {}
    for task in tasks:
        for kind, origin in (("problem", task.problem), ("repository", task.repository)):
            known = first.setdefault((kind, origin), task)
            if known.split is not task.split:
                raise IntegrityError(
                    f"{kind} {origin!r} is on two sides: {known.id!r} is {known.split} and {task.id!r} is {task.split}; "
                    "give all its tasks one split"
                )


def draw(tasks: Sequence[Task], count: int, seed: int) -> tuple[Task, ...]:
    """Up to `count` tasks, balanced by language and family: whatever their order, the same seed draws the same.

    Of each kind as many as of any other, unless it has no more; no problem comes twice in one language.
    """
    kinds: dict[tuple[str, str], list[Task]] = {}
    for task in sorted(tasks, key=lambda task: _rank(seed, task.id)):
        kinds.setdefault((task.language.value, task.family), []).append(task)
    order = sorted(kinds, key=lambda kind: _rank(seed, "/".join(kind)))
    turns = zip_longest(*(_once(kinds[kind]) for kind in order))
    drawn = (task for task in chain.from_iterable(turns) if task is not None)
    return tuple(task for task, _ in zip(drawn, range(count), strict=False))


def _once(tasks: Sequence[Task]) -> Iterator[Task]:
    first: dict[str, Task] = {}
    for task in tasks:
        first.setdefault(task.problem, task)
    return iter(first.values())


def _rank(seed: int, name: str) -> bytes:
    return sha256(f"{seed}/{name}".encode()).digest()
