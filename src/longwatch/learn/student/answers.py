"""What a student is asked and what it says, as values. Pure: no torch here, so that everyone may import it."""

import hashlib
from enum import StrEnum

import msgspec

FENCE = "```"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that is wanted."""

    task: str
    prompt: str
    """The person's side of the chat; the student's template goes around it."""
    sample: int = 0
    """Which of a task's answers this is, from 0."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are chosen, and how far an answer may go."""

    temperature: float = 0.0
    """0 is greedy: the most likely token, always."""
    seed: int = 0
    max_new_tokens: int = 160
    max_prompt_tokens: int = 512


class End(StrEnum):
    """Why an answer ended."""

    FENCE = "fence"
    """It closed its code block."""
    EOS = "eos"
    """The student said that it is done."""
    LENGTH = "length"
    """It reached `max_new_tokens`."""
    PROMPT = "prompt"
    """The prompt is longer than `max_prompt_tokens`: nothing was asked, the text is empty."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the student said."""

    task: str
    sample: int
    text: str
    end: End
    prompt_tokens: int
    tokens: int
    """New ones, with that which ended it."""
    seed: int
    """Everything random in this answer came from it; 0 if it was greedy."""


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to a list of requests, in its order."""

    answers: tuple[Answer, ...]
    left: tuple[Request, ...]
    """Not answered because a stop was asked for. Ask again with these."""
    batch: int
    """The largest number of answers generated at once; part of what a score is bound to."""
    halved: int = 0
    """How many times the accelerator ran out of memory and the batch was halved."""
    seconds: float

    @property
    def tokens(self) -> int:
        """New tokens of all answers."""
        return sum(answer.tokens for answer in self.answers)


def seed_of(sampling: Sampling, request: Request) -> int:
    """Pure: the seed of one answer. It depends on the seed, the task and the sample, and not on the company."""
    if sampling.temperature == 0:
        return 0
    text = f"{sampling.seed}\0{request.task}\0{request.sample}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def is_closed(text: str) -> bool:
    """Pure: true if `text` has a whole code block, so that nothing after it matters."""
    return _fences(text) >= 2


def _fences(text: str) -> int:
    return sum(line.lstrip().startswith(FENCE) for line in text.splitlines())
