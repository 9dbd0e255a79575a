"""Batched generation: rows end at the closing fence and make room for others, so that a long row holds nobody up."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.learn.student.answers import Answer, End, Generation, Request, Sampling, is_closed, seed_of
from longwatch.learn.student.chat import prompt_ids
from longwatch.learn.student.load import Loaded, release
from longwatch.learn.student.slots import Slots

BATCHES = (1, 2, 4, 8, 16, 32, 64)
_PREFILL_TOKENS = 2048
"""Prompts read at once: between two of these a stop is obeyed."""


def unheard(answer: Answer) -> None:
    """Tell nobody."""


@dataclass(kw_only=True)
class _Row:
    """One answer in work."""

    place: int
    request: Request
    prompt: list[int]
    seed: int
    draws: Tensor
    """One number in [0, 1) for each token, all drawn ahead: the company of a row changes none of them."""
    tokens: list[int] = field(default_factory=list)
    end: End | None = None


def generate(
    loaded: Loaded,
    requests: Sequence[Request],
    sampling: Sampling,
    *,
    batch: int = 32,
    should_stop: Callable[[], bool] = lambda: False,
    on_answer: Callable[[Answer], None] = unheard,
) -> Generation:
    """Ask the student, at most `batch` answers at a time, and return the answers in the order of the requests.

    The same requests, sampling, batch and environment give the same answers. `should_stop` is asked before every step;
    a stop leaves unfinished requests in `left`. `on_answer` is told each answer as soon as it is there. When an
    accelerator is out of memory the batch is halved and what was in work begins again.

    Raises:
        ConfigError: the batch is no power of two from 1 to 64, or the student has no chat template.
        LongwatchError: the accelerator has no memory for a single answer.
    """
    if batch not in BATCHES:
        raise ConfigError(f"[student] batch is {batch}: use one of {', '.join(map(str, BATCHES))}")
    work = _Work(loaded, requests, sampling, batch=batch, on_answer=on_answer)
    started_s = time.monotonic()
    with torch.inference_mode():
        work.run(should_stop)
    return work.result(time.monotonic() - started_s)


class _Work:
    """One call of `generate`."""

    def __init__(
        self,
        loaded: Loaded,
        requests: Sequence[Request],
        sampling: Sampling,
        *,
        batch: int,
        on_answer: Callable[[Answer], None],
    ) -> None:
        self._loaded, self._requests, self._sampling = loaded, requests, sampling
        self._batch, self._halved, self._on_answer = batch, 0, on_answer
        self._answers: dict[int, Answer] = {}
        self._stops, self._ticks = _stops(loaded), _ticks(loaded)
        self._slots, self._rows = Slots(loaded.network, loaded.device), list[_Row]()
        self._next = torch.zeros(0, dtype=torch.long, device=loaded.device)
        self._waiting = self._queue()

    def result(self, seconds: float) -> Generation:
        """What has come of it."""
        places = range(len(self._requests))
        return Generation(
            answers=tuple(self._answers[place] for place in places if place in self._answers),
            left=tuple(self._requests[place] for place in places if place not in self._answers),
            batch=self._batch,
            halved=self._halved,
            seconds=seconds,
        )

    def run(self, should_stop: Callable[[], bool]) -> None:
        """Admit, step and dismiss until all is answered or a stop is asked for."""
        while (self._waiting or self._rows) and not should_stop():
            try:
                self._turn()
            except torch.OutOfMemoryError:
                self._halve()

    def _turn(self) -> None:
        if self._waiting and self._has_room():
            self._admit()
        else:
            self._take(self._slots.step(self._next), self._rows)
        ended = sum(row.end is not None for row in self._rows)
        if ended >= max(1, len(self._rows) // 4):
            self._dismiss()

    def _queue(self) -> deque[_Row]:
        """Rows by the length of their prompts, the longest first: what needs most memory is tried first."""
        tokenizer, rows = self._loaded.tokenizer, list[_Row]()
        for place, request in enumerate(self._requests):
            row = self._row(place, request, prompt_ids(tokenizer, request.prompt))
            if len(row.prompt) > self._sampling.max_prompt_tokens:
                self._answer(row, End.PROMPT)
            else:
                rows.append(row)
        return deque(sorted(rows, key=lambda row: (-len(row.prompt), row.place)))

    def _row(self, place: int, request: Request, prompt: list[int]) -> _Row:
        seed = seed_of(self._sampling, request)
        generator = torch.Generator().manual_seed(seed)
        draws = torch.rand(self._sampling.max_new_tokens, generator=generator, dtype=torch.float64)
        return _Row(place=place, request=request, prompt=prompt, seed=seed, draws=draws)

    def _has_room(self) -> bool:
        return len(self._rows) < self._batch and self._slots.may_join

    def _admit(self) -> None:
        """Read as many waiting prompts as there is room for, within the bound on tokens."""
        count = min(self._batch - len(self._rows), len(self._waiting))
        count = max(1, min(count, _PREFILL_TOKENS // len(self._waiting[0].prompt)))
        rows = [self._waiting.popleft() for _ in range(count)]
        self._rows += rows
        self._take(self._slots.admit([row.prompt for row in rows]), rows)

    def _take(self, logits: Tensor, rows: Sequence[_Row]) -> None:
        """Choose the next token of these rows, the last ones of all."""
        chosen = self._choose(logits, rows)
        self._next = torch.cat([self._next[: len(self._rows) - len(rows)], chosen])
        for row, token in zip(rows, chosen.tolist(), strict=True):
            if row.end is None:
                row.tokens.append(token)
                row.end = self._end(row)
                if row.end is not None:
                    self._answer(row, row.end)

    def _choose(self, logits: Tensor, rows: Sequence[_Row]) -> Tensor:
        """Greedy, or by the inverse of the distribution at each row's own number."""
        if self._sampling.temperature == 0:
            return logits.argmax(-1)
        draws = torch.stack([row.draws[min(len(row.tokens), len(row.draws) - 1)] for row in rows])
        mass = torch.softmax(logits / self._sampling.temperature, -1).cumsum(-1)
        wanted = draws.to(mass).unsqueeze(1) * mass[:, -1:]
        return torch.searchsorted(mass, wanted, right=True).squeeze(1).clamp(max=mass.shape[1] - 1)

    def _end(self, row: _Row) -> End | None:
        token = row.tokens[-1]
        if token in self._stops:
            return End.EOS
        if token in self._ticks and is_closed(self._text(row)):
            return End.FENCE
        return End.LENGTH if len(row.tokens) >= self._sampling.max_new_tokens else None

    def _text(self, row: _Row) -> str:
        text: str = self._loaded.tokenizer.decode(row.tokens, skip_special_tokens=True)
        return text

    def _answer(self, row: _Row, end: End) -> None:
        answer = Answer(
            task=row.request.task,
            sample=row.request.sample,
            text=self._text(row),
            end=end,
            prompt_tokens=len(row.prompt),
            tokens=len(row.tokens),
            seed=row.seed,
        )
        self._answers[row.place] = answer
        self._on_answer(answer)

    def _dismiss(self) -> None:
        """Let ended rows go."""
        kept = [number for number, row in enumerate(self._rows) if row.end is None]
        self._slots.keep(kept)
        self._rows = [self._rows[number] for number in kept]
        self._next = self._next[torch.tensor(kept, dtype=torch.long, device=self._next.device)]

    def _halve(self) -> None:
        """Begin again with what was in work, half as many at a time."""
        if self._batch == 1:
            raise LongwatchError(
                f"{self._loaded.device} has no memory for a single answer: free it, lower [student] max_prompt_tokens "
                "or max_new_tokens, or choose a smaller model"
            )
        again = [
            self._row(row.place, row.request, row.prompt)
            for row in self._rows
            if row.place not in self._answers
        ]
        self._waiting.extendleft(reversed(again))
        self._batch, self._halved, self._rows = self._batch // 2, self._halved + 1, []
        self._slots, self._next = Slots(self._loaded.network, self._loaded.device), self._next[:0]
        release(self._loaded.device)


def _stops(loaded: Loaded) -> frozenset[int]:
    """Every token with which this student says that it is done."""
    said = loaded.network.generation_config.eos_token_id
    several: Iterable[int] = said if isinstance(said, list) else [said]
    return frozenset({loaded.tokenizer.eos_token_id, *several} - {None})


def _ticks(loaded: Loaded) -> frozenset[int]:
    """Tokens that can end a fence: only after one of these the text is looked at."""
    return frozenset(number for token, number in loaded.tokenizer.get_vocab().items() if "`" in token)
