"""Rows that are generated together: their keys and values, which rows come and go, and one step for all of them.

Rows are padded on the left, so that the newest token of every row is in the last column. What this saves over plain
`generate`: a row that has ended leaves, others take its place, equal prompts are read once, and room for new columns
is made ahead instead of copying everything at each step.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

_ROOM = 64
"""Columns made ahead."""


class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call] # transformers checks subclasses in untyped code
    """Keys and values of one layer, written into room that is already there."""

    keys: Any  # `None` before the first update, and after that a tensor
    values: Any
    _room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add columns, and return all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        used = self.keys.shape[-2]
        end = used + key_states.shape[-2]
        if self._room is None or self._room[0].shape[-2] < end:
            self._room = _widened(self.keys, end + _ROOM), _widened(self.values, end + _ROOM)
        keys, values = self._room
        keys[..., used:end, :], values[..., used:end, :] = key_states, value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    def put(self, keys: Tensor, values: Tensor) -> None:
        """Hold these instead."""
        self.keys, self.values, self._room = keys, values, None

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep these rows, in this order."""
        self.put(self.keys[indices], self.values[indices])


class Slots:
    """The rows in work. `mask` is 1 where a row has a token; `lengths` counts its tokens."""

    def __init__(self, network: Any, device: torch.device) -> None:
        self._network, self._device = network, device
        self._cache = _cache(network)
        self._mask = torch.zeros(0, 0, dtype=torch.long, device=device)
        self._lengths = torch.zeros(0, dtype=torch.long, device=device)

    @property
    def may_join(self) -> bool:
        """True if rows can join others that have begun; state other than keys and values cannot be padded."""
        return len(self) == 0 or all(type(layer) is RoomyLayer for layer in _layers(self._cache))

    def __len__(self) -> int:
        """How many rows are in work."""
        return len(self._lengths)

    def admit(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read prompts as new rows at the end, and return the logits of their next tokens (float32, row by row)."""
        unique = list(dict.fromkeys(map(tuple, prompts)))
        places = torch.tensor([unique.index(tuple(prompt)) for prompt in prompts], device=self._device)
        width = max(map(len, unique))
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in unique], device=self._device)
        lengths = torch.tensor([len(p) for p in unique], device=self._device)
        mask = (torch.arange(width, device=self._device) >= width - lengths[:, None]).long()
        cache = _cache(self._network)
        logits = self._forward(ids, mask, (mask.cumsum(1) - 1).clamp(min=0), cache)
        cache.batch_select_indices(places)
        self._join(cache, mask[places], lengths[places])
        return logits[places]

    def step(self, tokens: Tensor) -> Tensor:
        """Add one token to each row, and return the logits of the next ones."""
        self._mask = pad(self._mask, (0, 1), value=1)
        logits = self._forward(tokens[:, None], self._mask, self._lengths[:, None], self._cache)
        self._lengths = self._lengths + 1
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """Let all other rows go, and the columns that only they used."""
        if not rows:
            self._cache = _cache(self._network)
            self._mask, self._lengths = self._mask[:0, :0], self._lengths[:0]
            return
        indices = torch.tensor(rows, device=self._device)
        self._cache.batch_select_indices(indices)
        self._mask, self._lengths = self._mask[indices], self._lengths[indices]
        if self.may_join:
            self._narrow(int(self._lengths.max()))

    def _narrow(self, width: int) -> None:
        self._mask = self._mask[:, -width:]
        for layer in _layers(self._cache):
            layer.put(layer.keys[..., -width:, :], layer.values[..., -width:, :])

    def _join(self, cache: DynamicCache, mask: Tensor, lengths: Tensor) -> None:
        if len(self) == 0:
            self._cache, self._mask, self._lengths = cache, mask, lengths
            return
        width = max(self._mask.shape[1], mask.shape[1])
        for ours, theirs in zip(_layers(self._cache), _layers(cache), strict=True):
            keys = torch.cat([_shifted(ours.keys, width), _shifted(theirs.keys, width)])
            values = torch.cat([_shifted(ours.values, width), _shifted(theirs.values, width)])
            ours.put(keys, values)
        masks = (pad(each, (width - each.shape[1], 0)) for each in (self._mask, mask))
        self._mask, self._lengths = torch.cat(list(masks)), torch.cat([self._lengths, lengths])

    def _forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
        answer = self._network(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = answer.logits[:, -1].float()
        return logits


def _cache(network: Any) -> DynamicCache:
    """The model's own kind of cache, with room in every plain layer."""
    cache = DynamicCache(config=network.config)
    plain: Any = RoomyLayer  # its base class is untyped
    cache.layers = [plain() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _layers(cache: DynamicCache) -> list[Any]:
    """The layers, whose types differ by model."""
    return cache.layers


def _widened(states: Tensor, width: int) -> Tensor:
    """A copy with room on the right."""
    rows, heads, used, size = states.shape
    roomy = states.new_empty(rows, heads, width, size)
    roomy[..., :used, :] = states
    return roomy


def _shifted(states: Tensor, width: int) -> Tensor:
    """Padded on the left, which the mask hides."""
    return pad(states, (0, 0, width - states.shape[-2], 0))
