"""How fast does the student answer? Ratios of one run on one machine, so that machines cancel out.

    python benchmarks/generation.py [--model NAME] [--batch N] [--tokens N] [--rounds N] [--json]

Ours at the batch against ours one at a time, and against plain `transformers` generate at the same batch, both on
answers of equal length (nothing stops early) and on answers that stop by themselves, where only tokens up to the
closing fence count. Both compute in the environment of a step's program, where threads that wait do not spin. Needs the
embedded model: `longwatch fetch`.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import msgspec
from _common import as_a_step

from longwatch.learn.settings import Student
from longwatch.learn.student.answers import Request, Sampling, is_closed
from longwatch.learn.student.chat import prompt_ids
from longwatch.learn.student.generate import generate
from longwatch.learn.student.load import Loaded, load, threads

WISHES = (
    "add(a, b)` that returns the sum of a and b",
    "square(x)` that returns the square of x",
    "first(items)` that returns the first element of a list",
    "evens(items)` that returns the even numbers of a list, in their order",
    "reverse(text)` that returns the text backwards",
    "count(items, wanted)` that returns how often wanted is in the list items",
    "largest(items)` that returns the largest number of a list, or None if the list is empty",
    "words(text)` that returns a dictionary from each word of the text to how often it occurs",
)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Medians in tokens a second. `useful` counts tokens up to the closing fence only."""

    model: str
    device: str
    dtype: str
    batch: int
    new_tokens: int
    rounds: int
    single: float
    batched: float
    plain: float
    useful: float
    useful_plain: float

    @property
    def against_single(self) -> float:
        """The goal is 10 at least."""
        return self.batched / self.single

    @property
    def against_plain(self) -> float:
        """Nothing stops early; the goal is 1 at least."""
        return self.batched / self.plain

    @property
    def useful_against_plain(self) -> float:
        """Answers stop at their fence; the goal is 1 at least."""
        return self.useful / self.useful_plain


def requests(count: int) -> tuple[Request, ...]:
    """As many different prompts as there are wishes and numbers."""
    return tuple(
        Request(
            task=str(number),
            prompt=f"Problem {number}. Write a Python function `{WISHES[number % len(WISHES)]}. "
            "Reply with only the code in a ```python block.",
        )
        for number in range(count)
    )


def nothing(loaded: Loaded) -> frozenset[int]:  # noqa: ARG001 - stands in for what asks the student
    """No token ends an answer."""
    return frozenset()


def endless(loaded: Loaded, asked: Sequence[Request], new_tokens: int, batch: int) -> float:
    """Ours, with nothing that ends an answer early: tokens a second."""
    from longwatch.learn.student import generate as module  # noqa: PLC0415 - its stops are switched off below

    stops, ticks = module._stops, module._ticks  # noqa: SLF001 - only a benchmark wants endless answers
    module._stops, module._ticks = nothing, nothing  # noqa: SLF001 - as above
    try:
        made = generate(loaded, asked, Sampling(max_new_tokens=new_tokens), batch=batch)
    finally:
        module._stops, module._ticks = stops, ticks  # noqa: SLF001 - as above
    return made.tokens / made.seconds


def useful(loaded: Loaded, asked: Sequence[Request], new_tokens: int, batch: int) -> float:
    """Ours as it is used: tokens a second."""
    made = generate(loaded, asked, Sampling(max_new_tokens=new_tokens), batch=batch)
    return made.tokens / made.seconds


def plain(loaded: Loaded, asked: Sequence[Request], new_tokens: int, batch: int, *, endless: bool) -> float:
    """`transformers` as everybody uses it, batch after batch, with the same prompts: tokens a second."""
    start, answers = time.monotonic(), list[list[int]]()
    for begin in range(0, len(asked), batch):
        prompts = [prompt_ids(loaded.tokenizer, request.prompt) for request in asked[begin : begin + batch]]
        padded = loaded.tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
        made = loaded.model.generate(
            **padded.to(loaded.device),
            do_sample=False,
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens if endless else None,
            pad_token_id=loaded.tokenizer.pad_token_id,
        )
        answers += made[:, padded["input_ids"].shape[1] :].tolist()
    seconds = time.monotonic() - start
    return sum(len(each) if endless else useful_tokens(loaded, each) for each in answers) / seconds


def useful_tokens(loaded: Loaded, answer: list[int]) -> int:
    """How many tokens our rule would have needed: up to the fence or the end of the answer."""
    end = loaded.tokenizer.eos_token_id
    for count in range(1, len(answer) + 1):
        if answer[count - 1] == end or is_closed(loaded.tokenizer.decode(answer[:count])):
            return count
    return len(answer)


def measure(loaded: Loaded, options: argparse.Namespace) -> Result:
    """Take every figure in turn, `rounds` times; a single slow moment then hits all alike."""
    batch, new_tokens, rounds = options.batch, options.tokens, options.rounds
    asked, many = requests(batch), requests(2 * batch)
    figures: dict[str, Callable[[], float]] = {
        "single": lambda: endless(loaded, asked[:2], new_tokens, 1),
        "batched": lambda: endless(loaded, asked, new_tokens, batch),
        "plain": lambda: plain(loaded, asked, new_tokens, batch, endless=True),
        "useful": lambda: useful(loaded, many, new_tokens, batch),
        "useful_plain": lambda: plain(loaded, many, new_tokens, batch, endless=False),
    }
    endless(loaded, asked[:2], 4, 2)  # the first call of a process is slow
    taken = [{name: take() for name, take in figures.items()} for _ in range(rounds)]
    middle = {name: statistics.median(each[name] for each in taken) for name in figures}
    return Result(
        model=options.model,
        device=str(loaded.device),
        dtype=str(loaded.dtype),
        batch=batch,
        new_tokens=new_tokens,
        rounds=rounds,
        single=middle["single"],
        batched=middle["batched"],
        plain=middle["plain"],
        useful=middle["useful"],
        useful_plain=middle["useful_plain"],
    )


def table(result: Result) -> str:
    """The result for people."""
    rows = (
        ("batched, against one at a time", result.batched, result.single, result.against_single, 10),
        ("batched, against plain generate", result.batched, result.plain, result.against_plain, 1),
        (
            "useful, against plain generate",
            result.useful,
            result.useful_plain,
            result.useful_against_plain,
            1,
        ),
    )
    head = (
        f"{result.model} on {result.device} in {result.dtype}, batch {result.batch}, {result.new_tokens} new tokens, "
        f"median of {result.rounds}; tokens a second"
    )
    lines = (
        f"  {what:32}{ours:8.1f}   {theirs:8.1f}   {ratio:6.2f} x, goal: {goal} or more"
        for what, ours, theirs, ratio, goal in rows
    )
    return "\n".join((head, *lines))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    as_a_step()
    with threads():
        loaded = load(Student(model=options.model))
        result = measure(loaded, options)
    if options.json:
        names = ("against_single", "against_plain", "useful_against_plain")
        ratios = {name: getattr(result, name) for name in names}
        print(msgspec.json.encode(msgspec.to_builtins(result) | ratios).decode())
    else:
        print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
