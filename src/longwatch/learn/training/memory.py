"""What to do when memory runs out: smaller micro-batches, the same gradient (L11)."""

from collections.abc import Callable, Sequence

import torch

from longwatch.learn.training.rows import Tokens, micro_batches

CPU_MICRO_TOKENS = 512
"""On a processor larger micro-batches are hardly faster, and a pause would have to wait for them."""


class MemoryExhaustedError(Exception):
    """Control flow of this package: not even one row at a time fits."""


def first_micro_tokens(device: torch.device, rows: Sequence[Tokens], batch: int) -> int:
    """Return the size to begin with: the whole step at once on an accelerator, little on a processor."""
    longest = max(len(row.ids) for row in rows)
    return max(longest, CPU_MICRO_TOKENS) if device.type == "cpu" else longest * batch


def heaviest(rows: Sequence[Tokens], batch: int) -> tuple[Tokens, ...]:
    """Pure: the longest rows, as many as a step has. If they fit, every step does."""
    return tuple(sorted(rows, key=lambda row: -len(row.ids))[:batch])


def first_part(rows: Sequence[Tokens], micro_tokens: int) -> tuple[Tokens, ...]:
    """Pure: the heaviest micro-batch of these rows."""
    return micro_batches(rows, micro_tokens)[0]


def fitting(
    attempt: Callable[[int], float],
    rows: Sequence[Tokens],
    micro_tokens: int,
    halved: Callable[[int], None],
) -> tuple[float, int]:
    """Call `attempt(micro_tokens)` with smaller and smaller micro-batches until memory suffices.

    Returns what it returned, and the size that fitted. `attempt` begins anew each time.

    Raises:
        MemoryExhaustedError: single rows do not fit either.
    """
    while True:
        try:
            return attempt(micro_tokens), micro_tokens
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            reason = str(error)
        # Outside of the handler, whose traceback would keep the tensors of the failed attempt alive.
        micro_tokens = _half(rows, micro_tokens, reason)
        release()
        halved(micro_tokens)


def is_out_of_memory(error: BaseException) -> bool:
    """True for an allocation that failed, on an accelerator or on the processor."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    # torch has no type for the processor's allocator; this is its message.
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def release() -> None:
    """Give memory that nobody uses back to the accelerator's other users."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _half(rows: Sequence[Tokens], micro_tokens: int, reason: str) -> int:
    """The next size that makes the largest micro-batch smaller."""
    first = first_part(rows, micro_tokens)
    width = len(first[0].ids)
    if len(first) == 1:
        raise MemoryExhaustedError(
            f"a single row of {width} tokens does not fit into memory: lower [training] max_tokens"
            f" or take a smaller student ({reason.splitlines()[0] if reason else 'no memory'})"
        )
    return width * (len(first) // 2)
