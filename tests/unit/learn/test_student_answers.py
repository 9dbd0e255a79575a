"""What is asked and said: seeds, fences and bindings, all pure."""

import pytest

from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.student.answers import Request, Sampling, is_closed, seed_of
from longwatch.learn.student.binding import ScoreBinding, comparable, require_comparable

BINDING = ScoreBinding(
    base=Digest("a" * 64),
    tokenizer=Digest("b" * 64),
    asking=Digest("c" * 64),
    torch="2.13.0",
    transformers="5.24.0",
    peft="0.21.2",
    device="x86_64 AVX512, a processor",
    dtype="float32",
    threads=2,
    batch=32,
    sampling=Sampling(),
)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("", False),
        ("```python\ndef f():\n    return 1\n", False),
        ("```python\ndef f():\n    return '```'\n", False),
        ("```python\ndef f():\n    return 1\n```", True),
        ("Here it is:\n```\nx = 1\n```\nIt works because", True),
        ("  ```python\n  x = 1\n  ```", True),
        ("use ```inline``` marks", False),
    ],
)
def test_a_block_is_closed_by_a_second_fence_at_the_beginning_of_a_line(text, closed):
    assert is_closed(text) is closed


@pytest.mark.guarantee("L9")
def test_a_seed_belongs_to_one_answer_of_one_task():
    warm = Sampling(temperature=0.7, seed=3)
    requests = [Request(task=task, prompt="", sample=n) for task in ("a", "a1", "b") for n in range(12)]
    seeds = {seed_of(warm, request) for request in requests}
    assert len(seeds) == len(requests)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of(warm, requests[0]) == seed_of(warm, Request(task="a", prompt="other words"))
    assert seed_of(warm, requests[0]) != seed_of(Sampling(temperature=0.7, seed=4), requests[0])
    assert seed_of(Sampling(), requests[5]) == 0


@pytest.mark.guarantee("L15", "L29")
@pytest.mark.parametrize("field", ScoreBinding.__struct_fields__)
def test_whatever_differs_is_named_and_forbids_the_comparison(field):
    other = {
        "threads": 1,
        "batch": 16,
        "sampling": Sampling(max_new_tokens=99),
        "base": Digest("0" * 64),
    }.get(field, "other")
    changed = ScoreBinding(
        **{name: getattr(BINDING, name) for name in BINDING.__struct_fields__} | {field: other}
    )
    assert [found.split(":")[0] for found in comparable(BINDING, changed)] == [field]
    assert changed.digest != BINDING.digest
    with pytest.raises(IntegrityError, match=field):
        require_comparable(BINDING, changed)


def test_equal_bindings_may_be_compared():
    assert comparable(BINDING, BINDING) == ()
    require_comparable(BINDING, BINDING)
