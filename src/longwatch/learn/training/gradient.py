"""The gradient of one step, whatever the size of its micro-batches, and the loss of a probe (L11, L12)."""

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch
from torch.nn.functional import cross_entropy

from longwatch.learn.training.rows import Tokens, micro_batches

IGNORED = -100


class StopAskedError(Exception):
    """Control flow of this package: a stop was asked for between two micro-batches. The gradient is not whole."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a gradient that now stands in the parameters."""

    loss: float
    """Nats per answer token over the whole step."""
    norm: float
    """Before clipping."""


def accumulate(
    model: torch.nn.Module,
    rows: Sequence[Tokens],
    micro_tokens: int,
    before_each: Callable[[], None],
) -> float:
    """Add the gradient of all rows to the parameters, and return the loss per answer token.

    Each token weighs the same in the whole step, so the size of micro-batches changes rounding only. `before_each` runs
    before every micro-batch, and may raise.
    """
    learned = sum(row.learned for row in rows)
    total = 0.0
    for part in micro_batches(rows, micro_tokens):
        before_each()
        loss = summed_loss(model, part) / learned
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


def summed_loss(model: torch.nn.Module, rows: Sequence[Tokens]) -> torch.Tensor:
    """Return the loss of one micro-batch, summed over its answer tokens.

    Rows are padded on the right. A causal model never looks to the right, so it needs no mask, and padding changes nothing.
    Logits are made only where some row has an answer: over a large vocabulary they are what fills the memory.
    """
    device = next(model.parameters()).device
    width = max(len(row.ids) for row in rows)
    ids = torch.tensor([row.ids + (0,) * (width - len(row.ids)) for row in rows], device=device)
    targets = torch.tensor([_targets(row, width) for row in rows], device=device)
    places = (targets != IGNORED).any(dim=0).nonzero().flatten()
    logits = _logits(model, ids, places)
    wanted = targets[:, places]
    told = wanted != IGNORED
    return cross_entropy(logits[told].float(), wanted[told], reduction="sum")


@torch.no_grad()
def probe_loss(model: torch.nn.Module, rows: Sequence[Tokens]) -> float:
    """Return the loss per answer token, without a gradient: the proof that a resumed model is the one that was saved."""
    return float(summed_loss(model, rows).item()) / sum(row.learned for row in rows)


def clip(parameters: Sequence[torch.nn.Parameter], largest: float) -> float:
    """Scale the gradient down to this norm at most, and return the norm that it had."""
    return float(torch.nn.utils.clip_grad_norm_(parameters, largest).item())


def trouble(measured: Measured, bound: float) -> str | None:
    """Pure: say what is wrong with a step, or `None` where it may count."""
    if not math.isfinite(measured.loss):
        return f"the loss is {measured.loss}"
    if not math.isfinite(measured.norm):
        return f"the gradient's norm is {measured.norm}"
    if measured.loss > bound:
        return f"the loss {measured.loss:.3f} is above {bound:.3f}: training diverges"
    return None


def _targets(row: Tokens, width: int) -> list[int]:
    """At each place the token that comes next, where it is the answer's."""
    answer = row.ids[row.prompt :]
    return [IGNORED] * (row.prompt - 1) + list(answer) + [IGNORED] * (width - len(row.ids) + 1)


def _logits(model: torch.nn.Module, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    if _keeps(model):
        logits: torch.Tensor = model(input_ids=ids, use_cache=False, logits_to_keep=places).logits
        return logits
    whole: torch.Tensor = model(input_ids=ids, use_cache=False).logits
    return whole[:, places]


def _keeps(model: Any) -> bool:
    """Whether the model can leave out the logits that nobody needs."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "logits_to_keep" in inspect.signature(base.forward).parameters
