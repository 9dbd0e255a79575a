"""The tiny student: always the same, bad on purpose, and better after training on what passed."""

import os
import subprocess
import sys

import pytest
import torch
from tests.support import tiny_watch

from longwatch.kernel import digest
from longwatch.learn.grading import extract
from longwatch.learn.settings import Student
from longwatch.learn.student.answers import Request, Sampling
from longwatch.learn.student.chat import answer_ids, prompt_ids
from longwatch.learn.student.generate import generate
from longwatch.learn.student.load import load, threads
from longwatch.learn.student.tiny import make_tiny, tiny_tasks
from longwatch.learn.tasks import Split


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Tests run side by side: threads that wait for each other would wait for all of them."""
    with threads(1):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_watch.stubborn(tmp_path_factory)


def passes(task, text):
    """In this process: the tiny student writes nothing but arithmetic."""
    names = {}
    try:
        exec(extract(text, task.language), names)
        return all(names[task.entry_point](*case.arguments) == case.expected for case in task.tests.cases)
    except Exception:  # noqa: BLE001 - whatever an answer does, it fails
        return False


def passed(student, tasks, sampling, samples=1):
    requests = [Request(task=t.id, prompt=t.prompt, sample=n) for t in tasks for n in range(samples)]
    answers = generate(student, requests, sampling).answers
    by_id = {task.id: task for task in tasks}
    return [
        (by_id[answer.task], answer.text) for answer in answers if passes(by_id[answer.task], answer.text)
    ]


def test_another_process_makes_the_same_student(folder, tmp_path):
    program = (
        "import sys, torch; from pathlib import Path\n"
        "from longwatch.learn.student.tiny import make_tiny\n"
        "torch.set_num_threads(2); torch.rand(3); make_tiny(Path(sys.argv[1]), seed=2)\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "again")], check=True, env=environment)
    digest.check(digest.bind("tiny", folder), digest.bind("tiny", tmp_path / "again"))


def test_making_it_leaves_the_callers_randomness_and_threads_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("longwatch.learn.student.tiny._STEPS", 1)
    with threads(2):
        torch.manual_seed(1)
        wanted = torch.rand(4)
        torch.manual_seed(1)
        make_tiny(tmp_path / "tiny", seed=3)
        assert torch.equal(torch.rand(4), wanted)
        assert torch.get_num_threads() == 2


@pytest.mark.guarantee("L4")
def test_no_template_is_on_two_splits_and_references_pass():
    splits = {split: tiny_tasks(60, seed=1, split=split) for split in Split}
    assert splits[Split.DEV] == tiny_tasks(60, seed=1, split=Split.DEV)
    assert splits[Split.DEV] != tiny_tasks(60, seed=2, split=Split.DEV)
    seen = [
        task.repository for tasks in splits.values() for task in {t.repository: t for t in tasks}.values()
    ]
    assert len(seen) == len(set(seen))
    assert all(len({task.id for task in tasks}) == 60 for tasks in splits.values())
    assert all(passes(task, task.reference) for tasks in splits.values() for task in tasks)


def test_training_on_its_own_verified_answers_makes_it_better_on_other_problems(folder):
    from peft import LoraConfig, get_peft_model  # noqa: PLC0415 - takes seconds

    student = load(Student(model=str(folder), device="cpu"))
    train, dev = tiny_tasks(60, seed=1, split=Split.TRAIN), tiny_tasks(60, seed=1, split=Split.DEV)
    before = len(passed(student, dev, Sampling(max_new_tokens=32)))
    lessons = passed(student, train, Sampling(max_new_tokens=32, temperature=0.8, seed=1), samples=4)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        tuned = get_peft_model(
            student.model.float(), LoraConfig(r=8, lora_alpha=16, target_modules="all-linear")
        )
        optimiser = torch.optim.AdamW((p for p in tuned.parameters() if p.requires_grad), lr=5e-3)
        for step in range(40):
            rows = [lessons[(step * 16 + n) % len(lessons)] for n in range(16)]
            pairs = [
                (prompt_ids(student.tokenizer, t.prompt), answer_ids(student.tokenizer, s)) for t, s in rows
            ]
            width = max(len(p) + len(a) for p, a in pairs)
            ids = torch.tensor([p + a + [0] * (width - len(p) - len(a)) for p, a in pairs])
            hidden = [[-100] * len(p) + a + [-100] * (width - len(p) - len(a)) for p, a in pairs]
            tuned(input_ids=ids, labels=torch.tensor(hidden)).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    student.model.eval()
    after = len(passed(student, dev, Sampling(max_new_tokens=32)))
    assert 5 <= before <= 35
    assert after >= before + 15
