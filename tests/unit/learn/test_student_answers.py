"""What is asked and said: seeds, fences, flips and bindings, all pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError
from longwatch.learn.student.answers import Answer, End, Request, Sampling, code_of, is_closed, seed_of
from longwatch.learn.student.binding import ScoreBinding, comparable, require_comparable
from longwatch.learn.student.flips import again_in_other_company, flip_rate
from longwatch.learn.tasks import Verdict

BINDING = ScoreBinding(
    base=Digest("a" * 64),
    tokenizer=Digest("b" * 64),
    template=Digest("c" * 64),
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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Sure.\n```python\nx = 1\n```\nDone.\n```\ny\n```", "x = 1\n"),
        ("```python\nx = 1\ny = ", "x = 1\ny = \n"),
        ("x = 1", "x = 1"),
        ("```python\n```", ""),
    ],
)
def test_the_first_block_is_the_code(text, code):
    assert code_of(text) == code


@given(code=st.text(alphabet="abc =\n()", max_size=40))
def test_code_survives_its_fences(code):
    assert code_of(f"```python\n{code}\n```").rstrip("\n") == code.rstrip("\n")


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


@pytest.mark.guarantee("L15")
def test_flips_count_both_ways_and_our_own_trouble_in_neither():
    passed, failed, ours = Verdict.PASS, Verdict.FAIL, Verdict.INFRA
    flips = flip_rate(
        [passed, passed, failed, failed, ours, passed], [passed, failed, passed, failed, passed, ours]
    )
    assert (flips.compared, flips.gained, flips.lost, flips.rate) == (4, 1, 1, 0.5)
    assert flip_rate([], []).rate == 0
    with pytest.raises(ValueError, match="shorter"):
        flip_rate([passed, passed], [passed])


@given(count=st.integers(0, 9))
def test_the_second_asking_has_other_company_and_the_same_order(count):
    requests = [Request(task=str(number), prompt="") for number in range(count)]
    companies = []

    def ask(asked, sampling):
        companies.append({request.task for request in asked})
        return [
            Answer(task=r.task, sample=0, text="", end=End.EOS, prompt_tokens=1, tokens=1, seed=0)
            for r in asked
        ]

    again = again_in_other_company(requests, Sampling(), ask)
    assert [answer.task for answer in again] == [request.task for request in requests]
    assert all(company != {request.task for request in requests} for company in companies) or count < 2
