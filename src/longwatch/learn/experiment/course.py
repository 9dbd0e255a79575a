"""What all rounds of one experiment share."""

from pathlib import Path

import msgspec

from longwatch.kernel.program import Work
from longwatch.learn.experiment import replay
from longwatch.learn.experiment.examples import Example
from longwatch.learn.experiment.meter import Meter
from longwatch.learn.place import Place
from longwatch.learn.settings import Recipe
from longwatch.learn.sides import tasks_of
from longwatch.learn.steps import LearnStep, Train
from longwatch.learn.student.answers import Sampling
from longwatch.learn.tasks import Split, Task


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What is given before the first round, all of it bound by digest."""

    work: Work[LearnStep]
    place: Place
    step: Train
    meter: Meter
    train: tuple[Task, ...]
    dev: tuple[Task, ...]
    replayed: tuple[Example, ...]
    """Drawn once: the rounds of one experiment differ in what is new only."""

    @property
    def recipe(self) -> Recipe:
        """How to train."""
        return self.place.settings.training

    @property
    def folder(self) -> Path:
        """Where everything of this experiment is."""
        return self.place.experiment(self.step.number)

    @property
    def champion(self) -> Path | None:
        """The champion's adapter; `None`: it is base."""
        return self.place.adapter(self.step.champion, self.step.number)

    def folder_of(self, number: int) -> Path:
        """Where everything of one round is."""
        return self.folder / f"round-{number}"

    def sampling(self, *, temperature: float = 0.0, seed: int = 0) -> Sampling:
        """How answers are asked for; greedy unless said otherwise."""
        student = self.place.settings.student
        return Sampling(
            temperature=temperature,
            seed=seed,
            max_new_tokens=student.max_new_tokens,
            max_prompt_tokens=student.max_prompt_tokens,
        )


def open_course(work: Work[LearnStep], step: Train, place: Place, meter: Meter) -> Course:
    """Read what was bound before training.

    Raises:
        IntegrityError: the window or the replay is not what was bound.
    """
    recipe = place.settings.training
    examples = replay.load(place.replay, step.replay)
    return Course(
        work=work,
        place=place,
        step=step,
        meter=meter,
        train=tasks_of(place.windows, step.window, Split.TRAIN),
        dev=tasks_of(place.windows, step.window, Split.DEV),
        replayed=replay.drawn(examples, recipe.replay_rows, f"{recipe.seed} {step.number}"),
    )
