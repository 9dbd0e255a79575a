"""What is fixed before the first step (L11)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from longwatch.kernel.digest import Digest, of_bytes
from longwatch.learn import adapters
from longwatch.learn.settings import Recipe
from longwatch.learn.training.checkpoints import Place
from longwatch.learn.training.order import (
    effective_batch,
    planned_steps,
    rate_at,
    rows_of_step,
)
from longwatch.learn.training.results import Setback
from longwatch.learn.training.rows import Row, Tokens, encode

LOWERED = 0.5
"""What a setback does to the rate."""
PROBED = 1
"""So many rows make the probe: the shortest, because reading it is most of what a checkpoint costs."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to train, and where."""

    rows: tuple[Row, ...]
    recipe: Recipe
    folder: Path
    """Checkpoints, and at the end `adapter/`. One training each."""
    base: Digest
    """Of the base model: a checkpoint fits no other."""
    start: Path | None = None
    """The adapter to begin with; `None`: a new one."""
    threads: int = 2
    """Threads of the processor. Other sums come out with another number, so it is part of the binding."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that follows from the job."""

    folder: Path
    rows: tuple[Tokens, ...]
    dropped: int
    recipe: Recipe
    batch: int
    """Rows of one step."""
    steps: int
    probe: tuple[Tokens, ...]
    run: Digest
    """Of everything that the result depends on."""
    guess: float
    """The loss of a model that knows nothing: ln(size of the vocabulary)."""

    def rows_of(self, step: int) -> tuple[Tokens, ...]:
        """The rows of one step."""
        chosen = rows_of_step(self.recipe.seed, step, len(self.rows), self.batch)
        return tuple(self.rows[row] for row in chosen)

    def rate_of(self, place: Place) -> float:
        """The rate of the next step."""
        return rate_at(place.step, self.steps, self.recipe.learning_rate) * LOWERED ** len(place.setbacks)

    def bound_of(self, place: Place) -> float:
        """The loss above which training diverges: as much worse than at the beginning as half of guessing blindly."""
        return place.first_probe + self.guess / 2

    def is_due(self, step: int) -> bool:
        """True if the state before this step is saved."""
        return step % self.recipe.checkpoint_steps == 0 or step == self.steps

    def setback(self, step: int, place: Place, why: str) -> Setback:
        """Write down that a step went wrong."""
        return Setback(step=step, why=why, rate=self.rate_of(place))


def make_plan(job: Job, model: torch.nn.Module, tokenizer: Any) -> Plan:
    """Encode the rows, and fix everything that follows from them and the recipe.

    Raises:
        ConfigError: the model has no chat template.
    """
    encoded = encode(tokenizer, job.rows, job.recipe.max_tokens)
    config: Any = model.config
    return Plan(
        folder=job.folder,
        rows=encoded.rows,
        dropped=encoded.dropped,
        recipe=job.recipe,
        batch=effective_batch(job.recipe, len(encoded.rows)),
        steps=planned_steps(job.recipe, len(encoded.rows)),
        probe=tuple(sorted(encoded.rows, key=lambda row: len(row.ids))[:PROBED]),
        run=_run_digest(job, model, encoded.rows),
        guess=math.log(config.vocab_size),
    )


def _run_digest(job: Job, model: torch.nn.Module, rows: Sequence[Tokens]) -> Digest:
    """Bind everything that the result depends on."""
    weight = next(model.parameters())
    start = None if job.start is None else adapters.digest_of(job.start)
    environment = (str(torch.__version__), weight.device.type, str(weight.dtype), job.threads)
    return of_bytes(msgspec.json.encode((job.base, start, job.recipe, rows, environment)))
