"""How fast is training, next to TRL's SFTTrainer? The same model, rows, batch, adapter and optimiser in one run.

    python benchmarks/training.py [--model FOLDER] [--rows N] [--batch N] [--rounds N] [--json]

TRL and its `datasets` come with the extra `bench`. TRL gets what helps it: no activation checkpointing, no logging, no
saving; and the loss on the answers only, as ours. The cost of our checkpoints is told apart, for the recipe of a new watch.
Tokens are those of the rows, without padding; each side warms up with one step that does not count. Both compute in the
environment of a step's program, where threads that wait do not spin.
"""

import argparse
import importlib
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from _common import as_a_step
from peft import LoraConfig
from transformers import PrinterCallback, TrainerCallback

from longwatch.kernel.digest import of_bytes
from longwatch.learn import settings
from longwatch.learn.init import initialise
from longwatch.learn.settings import Recipe, Student
from longwatch.learn.student.load import load
from longwatch.learn.student.model import EMBEDDED
from longwatch.learn.training import checkpoints, gradient
from longwatch.learn.training.loop import CLIP, train
from longwatch.learn.training.lora import Learner
from longwatch.learn.training.memory import CPU_MICRO_TOKENS
from longwatch.learn.training.plan import PROBED, Job
from longwatch.learn.training.results import Progress, Report, Trained
from longwatch.learn.training.rows import Row, Tokens, encode


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What both sides train."""

    model: str
    rows: tuple[Row, ...]
    tokens: tuple[Tokens, ...]
    batch: int
    threads: int

    @property
    def steps(self) -> int:
        """One pass over the rows."""
        return len(self.rows) // self.batch


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Median tokens a second of both, and what checkpoints cost."""

    model: str
    dtype: str
    rows: int
    mean_tokens: float
    batch: int
    threads: int
    rounds: int
    ours_per_s: float
    trl_per_s: float
    speed: float
    """Ours by TRL's, round by round; more is better, the goal is 1."""
    step_s: float
    """Of the recipe that a new watch has."""
    checkpoint_s: float
    """The probe, the digests and the waiting for the disk."""
    checkpoint_steps: int
    """Steps between two checkpoints in that recipe."""
    checkpoint_share: float
    """Of the time between two checkpoints; the goal is under 0.02."""


def make_rows(count: int) -> tuple[Row, ...]:
    """Write examples of the lengths that the curriculum has: 60 to 200 tokens."""
    draw = random.Random(1)
    rows = []
    for number in range(count):
        lines = [
            f"    total = total {draw.choice('+-*')} {draw.randrange(100)}"
            for _ in range(draw.randrange(3, 12))
        ]
        body = "\n".join([f"def change_{number}(total):", *lines, "    return total"])
        told = ", ".join(line.split("= total ")[1] for line in lines)
        prompt = (
            f"Write a Python function `change_{number}(total)` that applies {told} in order and returns it."
        )
        rows.append(Row(prompt=prompt, answer=f"```python\n{body}\n```"))
    return tuple(rows)


def speed_of_steps(setting: Setting, run: Callable[[Callable[[], None]], None]) -> float:
    """Return tokens a second between the end of the first step and the end of the last one."""
    ends: list[float] = []
    run(lambda: ends.append(time.perf_counter()))
    counted = sum(len(row.ids) for row in setting.tokens) * (setting.steps - 1) / setting.steps
    return counted / (ends[-1] - ends[0])


def ours(setting: Setting) -> float:
    """Tokens a second of our loop, checkpoints left out: none is due between its first and last step."""
    loaded = load(Student(model=setting.model, device="cpu"))
    recipe = Recipe(batch=setting.batch, epochs=1, max_steps=500, checkpoint_steps=500)

    def run(ended: Callable[[], None]) -> None:
        def report(event: Report) -> None:
            if isinstance(event, Progress):
                ended()

        with tempfile.TemporaryDirectory(prefix="longwatch-training-") as folder:
            job = Job(
                rows=setting.rows,
                recipe=recipe,
                folder=Path(folder) / "run",
                base=of_bytes(b""),
                threads=setting.threads,
            )
            result = train(job, loaded.model, loaded.tokenizer, should_stop=lambda: False, report=report)
            if not isinstance(result, Trained) or result.steps != setting.steps:
                raise SystemExit(f"ours did not finish: {result}")

    return speed_of_steps(setting, run)


def theirs(setting: Setting) -> float:
    """Tokens a second of TRL's SFTTrainer."""
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(setting.threads)
    loaded = load(Student(model=setting.model, device="cpu"))

    def run(ended: Callable[[], None]) -> None:
        with tempfile.TemporaryDirectory(prefix="longwatch-training-") as folder:
            trainer = make_trainer(setting, loaded.model, loaded.tokenizer, folder)
            trainer.add_callback(_callback(ended))
            trainer.remove_callback(PrinterCallback)
            trainer.train()

    return speed_of_steps(setting, run)


def make_trainer(setting: Setting, model: Any, tokenizer: Any, folder: str) -> Any:
    """TRL's trainer, with the same adapter, optimiser, schedule and clipping."""
    datasets, trl = importlib.import_module("datasets"), importlib.import_module("trl")
    datasets.disable_progress_bars()
    chats = [
        {
            "prompt": [{"role": "user", "content": row.prompt}],
            "completion": [{"role": "assistant", "content": row.answer}],
        }
        for row in setting.rows
    ]
    config = trl.SFTConfig(
        output_dir=folder,
        per_device_train_batch_size=setting.batch,
        num_train_epochs=1,
        learning_rate=2e-4,
        lr_scheduler_type="cosine",
        weight_decay=0.0,
        max_grad_norm=1.0,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
        gradient_checkpointing=False,
        max_length=512,
        completion_only_loss=True,
    )
    return trl.SFTTrainer(
        model=model,
        args=config,
        train_dataset=datasets.Dataset.from_list(chats),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=8, lora_alpha=16, target_modules="all-linear", lora_dropout=0.0, task_type="CAUSAL_LM"
        ),
    )


def _callback(ended: Callable[[], None]) -> Any:
    class Ends(TrainerCallback):
        """Tells when a step has ended."""

        def on_step_end(self, *_: Any, **__: Any) -> None:
            ended()

    return Ends()


def shipped() -> Recipe:
    """The recipe of a new watch."""
    with tempfile.TemporaryDirectory(prefix="longwatch-training-") as folder:
        initialise(Path(folder))
        return settings.load(Path(folder)).training


def checkpoint_cost(setting: Setting, recipe: Recipe, rounds: int) -> tuple[float, float]:
    """Seconds of a step of this recipe, and of a checkpoint: the probe's loss, the look for NaN, the bytes, their digests
    and the disk.
    """
    loaded = load(Student(model=setting.model, device="cpu"))
    learner = Learner(loaded.model, recipe, None)
    probe = sorted(setting.tokens, key=lambda row: len(row.ids))[:PROBED]
    steps, saves = list[float](), list[float]()
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        for step in range(rounds + 1):
            began_s = time.perf_counter()
            learner.forget_gradient()
            first = step * recipe.batch % len(setting.tokens)
            gradient.accumulate(
                learner.model, setting.tokens[first : first + recipe.batch], CPU_MICRO_TOKENS, lambda: None
            )
            gradient.clip(learner.parameters, CLIP)
            learner.update(recipe.learning_rate)
            saving_s = time.perf_counter()
            loss = gradient.probe_loss(learner.model, probe)
            if not learner.finite():
                raise SystemExit("the student is not finite")
            place = checkpoints.Place(
                run=of_bytes(b""), step=step, micro_tokens=CPU_MICRO_TOKENS, first_probe=loss, probe=loss
            )
            checkpoints.save(Path(folder), place, learner.tensors())
            steps.append(saving_s - began_s)
            saves.append(time.perf_counter() - saving_s)
    return statistics.median(steps[1:]), statistics.median(saves[1:])


def measure(model: str, count: int, batch: int, rounds: int) -> Result:
    """Take both speeds in turn, so that a slow moment of the machine hits both."""
    loaded = load(Student(model=model, device="cpu"))
    rows = make_rows(count // batch * batch)
    tokens = encode(loaded.tokenizer, rows, 512).rows
    threads = len(os.sched_getaffinity(0))
    setting = Setting(model=model, rows=rows, tokens=tokens, batch=batch, threads=threads)
    if len(tokens) != len(rows) or setting.steps < 2:
        raise SystemExit("at least two steps are needed, and every row must fit")
    speeds = [(ours(setting), theirs(setting)) for _ in range(rounds)]
    ours_per_s, trl_per_s = (statistics.median(side) for side in zip(*speeds, strict=True))
    recipe = shipped()
    step_s, checkpoint_s = checkpoint_cost(setting, recipe, 9)
    return Result(
        model=model,
        dtype=str(loaded.dtype),
        rows=len(rows),
        mean_tokens=statistics.mean(len(row.ids) for row in tokens),
        batch=batch,
        threads=threads,
        rounds=rounds,
        ours_per_s=ours_per_s,
        trl_per_s=trl_per_s,
        speed=statistics.median(one / other for one, other in speeds),
        step_s=step_s,
        checkpoint_s=checkpoint_s,
        checkpoint_steps=recipe.checkpoint_steps,
        checkpoint_share=checkpoint_s / (checkpoint_s + recipe.checkpoint_steps * step_s),
    )


def table(result: Result) -> str:
    """The result for people."""
    return (
        f"{result.model}, {result.dtype}, LoRA rank 8 on all linear layers; {result.rows} rows of {result.mean_tokens:.0f}"
        f" tokens on average, {result.batch} a step, {result.threads} threads, median of {result.rounds}\n"
        f"  ours                  {result.ours_per_s:7.0f} tokens/s\n"
        f"  TRL's SFTTrainer      {result.trl_per_s:7.0f} tokens/s   {result.speed:.2f} x   speed, goal: 1 or more\n"
        f"  a checkpoint          {result.checkpoint_s:7.3f} s; every {result.checkpoint_steps} steps of {result.step_s:.2f} s:"
        f" {result.checkpoint_share:.1%}   goal: under 2 %"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    as_a_step()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    result = measure(options.model, options.rows, options.batch, options.rounds)
    print(json.dumps(msgspec.to_builtins(result)) if options.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
