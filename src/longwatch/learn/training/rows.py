"""Teaching data as token ids: the student sees the prompt, and learns the answer only (L11)."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from longwatch.learn.student import chat


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One example: what the student is asked, and an answer that passed its tests."""

    prompt: str
    answer: str


class Tokens(msgspec.Struct, frozen=True):
    """One example as token ids."""

    ids: tuple[int, ...]
    prompt: int
    """So many tokens at the start carry no loss."""

    @property
    def learned(self) -> int:
        """How many tokens carry loss."""
        return len(self.ids) - self.prompt


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """All rows that fit, in their order."""

    rows: tuple[Tokens, ...]
    dropped: int
    """Rows that were longer than allowed: left out whole, never cut."""


def encode(tokenizer: Any, rows: Iterable[Row], max_tokens: int) -> Encoded:
    """Encode all rows, and leave out those of more than `max_tokens` tokens.

    Raises:
        ConfigError: the student has no chat template.
    """
    encoded = [_tokens(tokenizer, row) for row in rows]
    fitting = tuple(tokens for tokens in encoded if len(tokens.ids) <= max_tokens)
    return Encoded(rows=fitting, dropped=len(encoded) - len(fitting))


def micro_batches(rows: Sequence[Tokens], micro_tokens: int) -> tuple[tuple[Tokens, ...], ...]:
    """Pure: part a step's rows into micro-batches of at most `micro_tokens` tokens, padding included.

    The longest come first, beside others of their length: the least padding, and too little memory shows at once. A row
    that is longer than the bound stands alone.
    """
    parts: list[list[Tokens]] = []
    for row in sorted(rows, key=lambda row: -len(row.ids)):
        if parts and len(parts[-1][0].ids) * (len(parts[-1]) + 1) <= micro_tokens:
            parts[-1].append(row)
        else:
            parts.append([row])
    return tuple(map(tuple, parts))


def _tokens(tokenizer: Any, row: Row) -> Tokens:
    """Encode prompt and answer apart, because a generating student also sees the prompt's tokens alone."""
    asked = chat.prompt_ids(tokenizer, row.prompt)
    return Tokens((*asked, *chat.answer_ids(tokenizer, row.answer)), len(asked))
