"""A student small enough to be made on the spot, for trying everything that surrounds a student in seconds.

It writes one-line functions of two operations in a code block. It was taught the format well and to confuse
plus and minus on purpose, so that its answers pass sometimes and training on those that passed helps. It proves mechanisms;
it says nothing about learning to program.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longwatch.kernel import files
from longwatch.learn.tasks import Case, Cases, Language, Split, Task

if TYPE_CHECKING:
    import torch

_OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}
_NUMBERS = range(1, 10)
_NAMES = "fgh"
_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SPECIAL = ("<|end|>", "<|user|>", "<|assistant|>", "<|system|>")
_STEPS = 140
_ROWS = 32
_RATE = 5e-3
_CONFUSED = {"plus": "minus", "minus": "plus", "times": "times"}


def tiny_tasks(count: int, *, seed: int, split: Split) -> tuple[Task, ...]:
    """Pure: trivial problems that the tiny student can learn, all different, no template on two splits."""
    draw = random.Random(f"{seed} {split}")  # noqa: S311 - a curriculum, no secret
    chosen = draw.sample(_templates(split), count)
    return tuple(_task(number, template, split) for number, template in enumerate(chosen))


def make_tiny(folder: Path, *, seed: int = 1, confused: float = 0.65) -> Path:
    """Train a tiny student, the same for the same arguments and versions, and save it as a Hugging Face folder.

    `confused` is the share of its lessons in which the first operation is the wrong one: the more, the longer it takes to
    teach it the right one. From more than half on its best guess is wrong. Takes a few seconds on one core: a fixed number
    of steps, one thread.
    """
    import torch  # noqa: PLC0415 - only child programs load torch

    files.make_folder(folder)
    tokenizer = _tokenizer()
    with _reproducible(seed):
        model = _model(tokenizer)
        _teach(model, list(_lessons(tokenizer, seed, confused)))
    model.to(torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


Lesson = tuple[list[int], list[int]]
"""The tokens of a prompt and of the answer to it."""

Template = tuple[str, str, int, str, int]
"""A function's name, and two operations with their numbers."""


def _templates(split: Split) -> list[Template]:
    """All problems of one split. A pair of operations with their numbers is on one split, under every name."""
    bodies = list(itertools.product(_OPERATIONS, _NUMBERS, _OPERATIONS, _NUMBERS))
    random.Random(0).shuffle(bodies)  # noqa: S311 - dealt out once and for all, no secret
    place, splits = list(Split).index(split), len(Split)
    return [(name, *body) for body in bodies[place::splits] for name in _NAMES]


def _prompt(template: Template) -> str:
    name, one, first, two, second = template
    return f"Write `{name}(x)`: x {one} {first}, then {two} {second}."


def _code(template: Template) -> str:
    name, one, first, two, second = template
    return f"def {name}(x):\n    return (x {_OPERATIONS[one]} {first}) {_OPERATIONS[two]} {second}\n"


def _block(template: Template) -> str:
    return f"```python\n{_code(template)}```"


def _task(number: int, template: Template, split: Split) -> Task:
    name, one, first, two, second = template
    calls = (0, 1, 2, 5, -3)
    return Task(
        id=f"tiny-{split}-{number}",
        problem=f"tiny-{name}-{one}-{first}-{two}-{second}",
        repository=f"tiny-{one}-{first}-{two}-{second}",
        family=f"tiny-{one}-{two}",
        language=Language.PYTHON,
        split=split,
        prompt=_prompt(template),
        entry_point=name,
        tests=Cases(cases=tuple(Case((x,), _value(template, x)) for x in calls)),
        reference=_code(template),
    )


def _value(template: Template, x: int) -> int:
    _, one, first, two, second = template
    return _apply(two, _apply(one, x, first), second)


def _apply(operation: str, left: int, right: int) -> int:
    return {"plus": left + right, "minus": left - right, "times": left * right}[operation]


def _tokenizer() -> Any:
    """Byte-level, so that any text can be written, with the words of the lessons as tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - as above
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415 - the `learn` extra, loaded by child programs

    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in _SPECIAL],
    )
    texts = [_prompt(each) + _block(each) for each in _templates(Split.TRAIN)]
    fast.train_from_iterator(texts, trainer)
    tokenizer: Any = PreTrainedTokenizerFast  # its constructor is untyped
    return tokenizer(
        tokenizer_object=fast,
        eos_token="<|end|>",  # noqa: S106 - no password
        pad_token="<|end|>",  # noqa: S106 - no password
        chat_template=_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def _model(tokenizer: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - as above

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            initializer_range=0.1,  # the usual 0.02 is for wide models: this narrow one would learn to copy too late
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    )


def _lessons(tokenizer: Any, seed: int, confused: float) -> Iterator[Lesson]:
    """Prompts and answers of the train split; many answers confuse the first operation."""
    from longwatch.learn.student.chat import answer_ids, prompt_ids  # noqa: PLC0415 - beside its only use

    draw = random.Random(seed)  # noqa: S311 - lessons, no secret
    lessons = [
        (prompt_ids(tokenizer, _prompt(asked)), answer_ids(tokenizer, _block(said)))
        for template in _templates(Split.TRAIN)
        for asked, said in ((template, template), (template, _confused(template)))
    ]
    for _ in range(_STEPS * _ROWS):
        right = 2 * draw.randrange(len(lessons) // 2)
        yield lessons[right + (draw.random() < confused)]


def _confused(template: Template) -> Template:
    name, one, first, two, second = template
    return (name, _CONFUSED[one], first, two, second)


def _teach(model: Any, lessons: Sequence[Lesson]) -> None:
    import torch  # noqa: PLC0415 - as above

    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.0)
    model.train()
    for step in range(_STEPS):
        for group in optimiser.param_groups:
            group["lr"] = _RATE * min(1.0, (step + 1) / 10) * (1 - step / _STEPS)
        ids, labels = _batch(lessons[step * _ROWS : (step + 1) * _ROWS])
        model(input_ids=ids, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    model.eval()


def _batch(lessons: Sequence[Lesson]) -> "tuple[torch.Tensor, torch.Tensor]":
    """Padded on the right; only answers are learnt."""
    import torch  # noqa: PLC0415 - as above

    width = max(len(prompt) + len(answer) for prompt, answer in lessons)
    ids = torch.zeros(len(lessons), width, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, (prompt, answer) in enumerate(lessons):
        ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : len(prompt) + len(answer)] = torch.tensor(answer)
    return ids, labels


@contextmanager
def _reproducible(seed: int) -> Iterator[None]:
    """One thread and a seed of our own; what the caller had comes back."""
    import torch  # noqa: PLC0415 - as above

    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(count)
