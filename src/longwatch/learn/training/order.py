"""Which rows make a step, how many steps there are, and how fast each one learns (L11). Pure, without any state.

The rows of all epochs stand in one endless line, each epoch shuffled anew by hashes of (seed, epoch, row): the same on
every machine and in every version of Python. Step k takes its places from that line, so a resume needs no more than k.
"""

import hashlib
import math
from functools import lru_cache

from longwatch.learn.settings import Recipe

WARM_UP = 0.05
"""The share of steps in which the rate rises."""
FLOOR = 0.1
"""The share of the full rate at which the cosine ends."""


def effective_batch(recipe: Recipe, rows: int) -> int:
    """How many rows one step takes: never more than there are, so that no row counts twice in a small set."""
    return min(recipe.batch, rows)


def planned_steps(recipe: Recipe, rows: int) -> int:
    """How many steps the recipe takes on so many rows: whole steps inside its epochs, and inside its bound."""
    if rows == 0:
        return 0
    return min(recipe.max_steps, recipe.epochs * rows // effective_batch(recipe, rows))


def rows_of_step(seed: int, step: int, rows: int, batch: int) -> tuple[int, ...]:
    """Return the row numbers of a step, 0-based. Each epoch holds each row once; a step may cross two epochs."""
    first = step * batch
    return tuple(_epoch(seed, place // rows, rows)[place % rows] for place in range(first, first + batch))


def rate_at(step: int, steps: int, peak: float) -> float:
    """Return the learning rate of a step: a linear rise to `peak`, then half a cosine down to a tenth of it."""
    rise = max(1, math.ceil(WARM_UP * steps))
    if step < rise:
        return peak * (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return peak * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2)


@lru_cache(maxsize=4)
def _epoch(seed: int, epoch: int, rows: int) -> tuple[int, ...]:
    return tuple(
        sorted(range(rows), key=lambda row: hashlib.sha256(f"{seed}:{epoch}:{row}".encode()).digest())
    )
