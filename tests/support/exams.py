"""A student that knows its answers by heart: everything around it is real, down to the sandboxes that grade it."""

import os
import signal
import sys
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save

from longwatch.kernel.program import Work
from longwatch.kernel.watch import Watch
from longwatch.learn import adapters, examining
from longwatch.learn.auditing.benchmarks import Benchmark
from longwatch.learn.place import Place
from longwatch.learn.settings import LearnSettings, Student
from longwatch.learn.steps import Audit
from longwatch.learn.student import generate as generation
from longwatch.learn.student.answers import Answer, End, Generation
from longwatch.learn.student.tiny import tiny_tasks
from longwatch.learn.tasks import Language, Split

SOURCE = "c" * 64


def place_in(root: Path, *, batch: int = 4) -> Place:
    """A watch whose base model is two small files; nothing ever loads them."""
    model = root / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "tokenizer.json").write_text("{}")
    student = Student(model=str(model), device="cpu", batch=batch)
    return Place(Watch(root), LearnSettings(kind="learn", student=student))


def step_of(champion: str) -> Audit:
    return Audit(id="audit.1.1", number=1, champion=champion)


def work_in(place: Place, champion: str = "base") -> Work:
    folder = place.watch.step("audit.1.1")
    folder.mkdir(parents=True, exist_ok=True)
    return Work(folder, step_of(champion))


def adapter_in(place: Place, value: float = 1.0) -> str:
    """Put an adapter into the store and return its name."""
    folder = place.adapters / "new"
    folder.mkdir(parents=True)
    (folder / adapters.WEIGHTS).write_bytes(save({"a": torch.full((3, 2), value)}))
    (folder / adapters.CONFIG).write_text('{"peft_type": "LORA", "r": 8}')
    name = adapters.digest_of(folder)
    folder.rename(place.adapters / name)
    return name


def benchmark(count: int = 10) -> Benchmark:
    tasks = tiny_tasks(count, seed=1, split=Split.AUDIT)
    return Benchmark(name="tiny", language=Language.PYTHON, source=SOURCE, tasks=tasks)


class ByHeart:
    """Stands in for `generate`: `right` says which tasks a student of some name answers right.

    `asked` holds each request that was answered, as (student, task).
    """

    def __init__(self, tasks, right):
        self.by_id = {task.id: task for task in tasks}
        self.right = right
        self.asked = []
        self.batches = []

    def install(self, monkeypatch):
        monkeypatch.setattr(examining, "_student", cache(lambda settings, name, adapter: name))
        monkeypatch.setattr(generation, "generate", self)
        return self

    def __call__(self, name, requests, sampling, *, batch, should_stop, on_answer):
        self.batches.append((name, batch, [request.task for request in requests]))
        answers = []
        for request in requests:
            if should_stop():
                break
            answers.append(self.answer(name, request))
            self.asked.append((name, request.task))
            on_answer(answers[-1])
        left = tuple(requests[len(answers) :])
        return Generation(answers=tuple(answers), left=left, batch=batch, seconds=0.5)

    def answer(self, name, request):
        task = self.by_id[request.task]
        code = task.reference if self.passes(name, request.task) else "def f():\n    return None\n"
        text = f"Sure.\n```python\n{code}```"
        return Answer(
            task=task.id, sample=request.sample, text=text, end=End.FENCE, prompt_tokens=9, tokens=9, seed=0
        )

    def passes(self, name, task):
        return task in self.right.get(name, ())


class Killed(ByHeart):
    """Dies of KILL in the midst of an answer."""

    after = 0

    def answer(self, name, request):
        if len(self.asked) == self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(name, request)


class _Patch:
    """As pytest's, for a process of its own."""

    def setattr(self, target, name, value):
        setattr(target, name, value)


def main(root: str, after: str) -> None:
    """Audit base in a watch that is there, and die after so many answers."""
    from longwatch.learn.auditing.running import audit  # noqa: PLC0415 - after everything is replaced

    asked = benchmark()
    student = Killed(asked.tasks, {"base": {task.id for task in asked.tasks[::2]}})
    student.after = int(after)
    student.install(_Patch())
    settings = LearnSettings(
        kind="learn", student=Student(model=str(Path(root) / "model"), device="cpu", batch=4)
    )
    place = Place(Watch(Path(root)), settings)
    audit(work_in(place), step_of("base"), place, asked)


if __name__ == "__main__":
    main(*sys.argv[1:])
