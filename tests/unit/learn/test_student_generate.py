"""Batched generation on the tiny student: company, order, seeds, stops and memory."""

import os
import shutil

import pytest
import torch
from tests.support import tiny_watch

from longwatch.kernel.errors import ConfigError, LongwatchError
from longwatch.learn.settings import Student
from longwatch.learn.student.answers import End, Request, Sampling, is_closed
from longwatch.learn.student.binding import bind, comparable
from longwatch.learn.student.chat import prompt_ids
from longwatch.learn.student.generate import generate
from longwatch.learn.student.load import cores, load, measured, threads
from longwatch.learn.student.tiny import make_tiny, tiny_tasks
from longwatch.learn.tasks import Split

GREEDY = Sampling(max_new_tokens=32)
WARM = Sampling(max_new_tokens=32, temperature=1.0, seed=5)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Tests run side by side: threads that wait for each other would wait for all of them."""
    with threads(1):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tiny_watch.once(tmp_path_factory, "student-1", make_tiny)
    # A test below changes it for a moment.
    return shutil.copytree(made, tmp_path_factory.mktemp("student") / "tiny")


@pytest.fixture(scope="module")
def loaded(folder):
    """In float32, so that what is compared does not depend on the processor."""
    student = load(Student(model=str(folder), device="cpu"))
    student.model.float()
    return student


@pytest.fixture(scope="module")
def requests():
    """Prompts of different lengths, some of them twice."""
    tasks = tiny_tasks(8, seed=1, split=Split.DEV)
    plain = [Request(task=task.id, prompt=task.prompt, sample=n) for task in tasks for n in range(2)]
    long = [Request(task=f"long {n}", prompt="Please. " * n + tasks[n].prompt) for n in range(4)]
    return tuple(plain + long)


def reference(loaded, request, new_tokens):
    """Plain `transformers`, one at a time, cut where our rule ends."""
    prompt = torch.tensor([prompt_ids(loaded.tokenizer, request.prompt)])
    made = loaded.model.generate(prompt, max_new_tokens=new_tokens, do_sample=False)[
        0, prompt.shape[1] :
    ].tolist()
    for count in range(1, len(made) + 1):
        text = loaded.tokenizer.decode(made[:count], skip_special_tokens=True)
        if is_closed(text) or made[count - 1] == loaded.tokenizer.eos_token_id:
            return text, count
    return text, len(made)


@pytest.fixture(scope="module")
def wanted(loaded, requests):
    return [reference(loaded, request, GREEDY.max_new_tokens) for request in requests]


@pytest.mark.parametrize("batch", [1, 4, 32])
def test_batched_answers_are_those_of_plain_generate(loaded, requests, wanted, batch):
    made = generate(loaded, requests, GREEDY, batch=batch)
    assert [(answer.text, answer.tokens) for answer in made.answers] == wanted
    assert [(answer.task, answer.sample) for answer in made.answers] == [(r.task, r.sample) for r in requests]
    assert (made.left, made.batch, made.halved) == ((), batch, 0)


def test_the_tiny_student_closes_its_block_and_stops_there(loaded, requests):
    made = generate(loaded, requests[:8], GREEDY)
    assert {answer.end for answer in made.answers} == {End.FENCE}
    assert all(answer.text.endswith("```") for answer in made.answers)


@pytest.mark.guarantee("L9")
def test_a_sample_depends_on_its_seed_and_not_on_its_company(loaded, requests):
    together = generate(loaded, requests, WARM, batch=32)
    apart = [generate(loaded, [request], WARM, batch=1).answers[0] for request in requests[:6]]
    backwards = generate(loaded, requests[::-1], WARM, batch=4)
    assert list(together.answers[:6]) == apart
    assert together.answers == backwards.answers[::-1]
    assert len({answer.seed for answer in together.answers}) == len(requests)


@pytest.mark.guarantee("L9")
def test_another_seed_or_sample_says_something_else(loaded, requests):
    one = generate(loaded, requests, WARM)
    again = generate(loaded, requests, WARM)
    other = generate(loaded, requests, Sampling(max_new_tokens=32, temperature=1.0, seed=6))
    assert one.answers == again.answers
    texts = [answer.text for answer in one.answers]
    assert texts != [answer.text for answer in other.answers]
    assert texts[0:16:2] != texts[1:16:2]


def test_samples_follow_the_distribution_of_the_student(loaded, requests):
    """The first token of many samples, against the probabilities that plain `transformers` gives."""
    asked = [Request(task="t", prompt="x", sample=n) for n in range(600)]
    hot = Sampling(max_new_tokens=1, temperature=3.0)
    made = generate(loaded, asked, hot, batch=64)
    prompt = torch.tensor([prompt_ids(loaded.tokenizer, "x")])
    with torch.inference_mode():
        wanted = torch.softmax(loaded.model(prompt).logits[0, -1] / 3.0, -1)
    best = int(wanted.argmax())
    text = loaded.tokenizer.decode([best], skip_special_tokens=True)
    share = sum(answer.text == text for answer in made.answers) / 600
    assert abs(share - float(wanted[best])) < 0.09


@pytest.mark.guarantee("L14")
@pytest.mark.parametrize("steps", [0, 1, 5, 40])
def test_a_stop_is_obeyed_before_the_next_step_and_says_what_is_left(loaded, requests, steps):
    told, asked = [], iter(range(1000))
    made = generate(
        loaded, requests, GREEDY, batch=8, should_stop=lambda: next(asked) >= steps, on_answer=told.append
    )
    assert next(asked) == steps + 1
    assert sorted(told, key=str) == sorted(made.answers, key=str)
    assert len(made.answers) + len(made.left) == len(requests)
    rest = generate(loaded, made.left, GREEDY, batch=8)
    whole = generate(loaded, requests, GREEDY, batch=8)
    assert sorted(made.answers + rest.answers, key=str) == sorted(whole.answers, key=str)


def test_a_long_prompt_is_counted_and_not_asked(loaded, requests):
    long = Request(task="long", prompt="x " * 600)
    made = generate(loaded, [requests[0], long], GREEDY)
    assert [answer.end for answer in made.answers] == [End.FENCE, End.PROMPT]
    assert (made.answers[1].text, made.answers[1].tokens) == ("", 0)
    assert made.answers[1].prompt_tokens > GREEDY.max_prompt_tokens


def test_an_answer_without_an_end_is_cut_at_the_length(loaded, requests):
    made = generate(loaded, requests[:3], Sampling(max_new_tokens=5))
    assert {(answer.end, answer.tokens) for answer in made.answers} == {(End.LENGTH, 5)}


def test_nothing_asked_is_nothing_answered(loaded):
    assert generate(loaded, [], GREEDY).answers == ()


@pytest.mark.guarantee("L15")
@pytest.mark.parametrize("batch", [0, 3, 128])
def test_a_batch_is_a_power_of_two_up_to_64(loaded, requests, batch):
    with pytest.raises(ConfigError, match="batch"):
        generate(loaded, requests, GREEDY, batch=batch)


def crowded(loaded, limit, monkeypatch):
    """An accelerator that has memory for so many rows."""
    forward = loaded.network.forward

    def refuse(*arguments, **named):
        if len(named["input_ids"]) > limit:
            raise torch.OutOfMemoryError
        return forward(*arguments, **named)

    monkeypatch.setattr(loaded.network, "forward", refuse)


@pytest.mark.guarantee("L15")
def test_out_of_memory_halves_the_batch_and_says_so(loaded, requests, monkeypatch):
    whole = generate(loaded, requests, WARM, batch=4)
    crowded(loaded, 5, monkeypatch)
    made = generate(loaded, requests, WARM, batch=32)
    assert (made.batch, made.halved) == (4, 3)
    assert made.answers == whole.answers


def test_no_memory_for_a_single_answer_is_an_error_with_a_mend(loaded, requests, monkeypatch):
    crowded(loaded, 0, monkeypatch)
    with pytest.raises(LongwatchError, match="max_new_tokens"):
        generate(loaded, requests, GREEDY, batch=2)


@pytest.mark.guarantee("L15", "L29")
def test_a_score_is_bound_to_model_tokenizer_template_and_batch(folder, tmp_path):
    def bound(batch=32, sampling=GREEDY):
        return bind(
            Student(model=str(folder), device="cpu"), batch=batch, sampling=sampling, cache=tmp_path / "cache"
        )

    def changes(other):
        return [each.split(":")[0] for each in comparable(first, other)]

    first = bound()
    assert changes(bound()) == []
    assert changes(bound(batch=16)) == ["batch"]
    assert changes(bound(sampling=WARM)) == ["sampling"]
    with threads(2):  # what the process happens to be set to is not what an exam computes with
        assert changes(bound()) == []
    for name, field in (("tokenizer_config.json", "tokenizer"), ("config.json", "base")):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b"\n")
        assert changes(bound()) == [field]
        (folder / name).write_bytes(before)
    assert changes(bound()) == []


@pytest.mark.guarantee("L15")
def test_threads_are_what_the_person_says_or_the_cores_that_are_ours(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    for ignored in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", ignored)
        assert cores() == len(os.sched_getaffinity(0))


@pytest.mark.guarantee("L15")
def test_what_training_sets_in_this_process_does_not_reach_an_exam(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads(2):
        torch.use_deterministic_algorithms(True)
        with measured():
            assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (1, False)
        assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (2, True)
        torch.use_deterministic_algorithms(False)


def test_an_adapter_is_loaded_on_top(folder, requests, tmp_path):
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - takes seconds

    base = load(Student(model=str(folder), device="cpu"))
    tuned = get_peft_model(base.model, LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False))
    tuned.save_pretrained(tmp_path / "adapter")
    student = load(Student(model=str(folder), device="cpu"), adapter=tmp_path / "adapter")
    fresh = load(Student(model=str(folder), device="cpu"))
    said = [generate(each, requests, GREEDY).answers for each in (student, fresh)]
    assert said[0] != said[1]
