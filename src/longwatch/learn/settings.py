"""`longwatch.toml` of a learn watch, as frozen types. Names are the keys of the file; units stand in them."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from longwatch.kernel import config
from longwatch.kernel.config import Problem, at
from longwatch.kernel.settings import KernelSettings
from longwatch.learn.acceptance import CONFIRMATION_TASKS
from longwatch.learn.readiness.hours import parse as parse_hours
from longwatch.learn.tasks import Language
from longwatch.learn.teachers import settings as teachers
from longwatch.learn.teachers.provenance import Teacher
from longwatch.learn.teachers.settings import NETWORK, Teaching
from longwatch.sandbox import choice
from longwatch.sandbox.choice import Sandboxing


class Student(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[student]`: the base model. Its adapter is what the watch improves."""

    model: str = "smollm2-135m"
    """A Hugging Face causal language model by local path or name, or the embedded `smollm2-135m`."""
    device: str = "auto"
    """`auto`, `cpu` or `cuda`."""
    batch: int = 32
    """Answers generated at once: a power of two from 1 to 64. Part of every binding (L15)."""
    max_new_tokens: int = 160
    """The longest answer, in tokens."""
    max_prompt_tokens: int = 512
    """A task with a longer prompt is not asked."""


class Curriculum(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[curriculum]`: where tasks come from."""

    source: str = "generated"
    """`generated`, or the path of a JSONL file of tasks, or a public set: `mbpp`, `mbxp`."""
    languages: tuple[Language, ...] = (Language.PYTHON,)
    """In which languages each problem is asked. Generated: Python, JavaScript, TypeScript, Ruby, PHP, Lua; `mbxp`: Python, JavaScript, Java, C++, Ruby, PHP."""
    seed: int = 1
    """The same seed gives the same."""
    start_row: int = 0
    """Where in the source the first window begins."""
    train_tasks: int = 48
    """Problems of one experiment to learn from."""
    dev_tasks: int = 40
    """Problems to choose among its rounds; they decide nothing."""
    confirm_tasks: int = 200
    """Fresh problems set aside for one experiment's confirmation, used in blocks."""
    levels: tuple[int, ...] = (1, 2)
    """Difficulties of the generated curriculum, from 1 to 3."""
    families: tuple[str, ...] = ()
    """Of the generated curriculum; empty: all."""
    public: str = ""
    """The folder of public sets, for the sources `mbpp` and `mbxp` (`longwatch fetch mbxp` says what to write here)."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[training]`: the fixed recipe (L11)."""

    rank: int = 8
    """Of the adapter: 8 or 16."""
    learning_rate: float = 2e-4
    """From 1e-6 to 2e-4."""
    epochs: int = 3
    """From 1 to 3."""
    max_steps: int = 120
    """From 1 to 500."""
    batch: int = 8
    """Rows of one optimiser step, from 1 to 256; the micro-batch is found by trying."""
    max_tokens: int = 512
    """From 16 to 4096. A longer example is left out whole, never cut."""
    max_examples: int = 256
    """New examples that one round learns from; the best ones, if there are more."""
    replay_rows: int = 64
    """Examples of earlier accepted adapters that every round learns again, so that they are not forgotten; 0: none."""
    samples: int = 4
    """Answers collected for each train task, from 1 to 64."""
    temperature: float = 0.7
    """Of the answers that are collected: above 0, where there are several, and at most 2."""
    teacher: Teacher = Teacher.REFERENCE
    """Who helps where none of its own answers passed; `[teacher]` says how a `model` or an `endpoint` is asked."""
    tasks_per_round: int = 20
    """New problems of each round; rounds are cumulative."""
    seed: int = 1
    """The same seed gives the same."""
    checkpoint_steps: int = 20
    """Steps between two checkpoints."""


class Rule(StrEnum):
    """What a challenger has to show."""

    EVIDENCE = "evidence"
    """Fresh problems until the evidence suffices, and no guard objects."""
    STRICT = "strict"
    """No lost task: on dev, then on twenty fresh tasks. Its error rates stand beside each decision (L20)."""


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[acceptance]`: when a challenger takes the champion's place."""

    rule: Rule = Rule.EVIDENCE
    """`evidence`, or `strict`, which is both too lax and too strict: docs/reference/acceptance.md says how much."""
    research: bool = False
    """Under the strict rule: one lost development task does not keep a round from being nominated."""
    q: float = 0.10
    """The false-discovery rate over the life of the watch (LORD++). What it is when the watch begins holds for ever."""
    block: int = 20
    """Fresh problems that are looked at together."""
    max_problems: int = 800
    """A challenger that is not shown to be better within so many is given up."""
    margin_pooled: float = 0.03
    """No challenger is accepted that may be worse by this share over all problems."""
    margin_slice: float = 0.05
    """The same for each language and family."""
    sealed_tasks: int = 100
    """Problems that nobody trains on and nothing is chosen by: a tripwire against slow harm."""
    anchor_every: int = 5
    """Experiments between two comparisons of the champion with base and the best ever on them; 0: only on acceptance."""

    @property
    def least_fresh(self) -> int:
        """How many fresh problems a window must hold, so that one block can be confirmed."""
        return CONFIRMATION_TASKS if self.rule is Rule.STRICT else self.block


class Hours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[experiment]`: how long one experiment may be active."""

    hours: float = 1.0
    """0.01 to 24; `longwatch set-hours` changes it in an idle watch (L31)."""
    rounds: int = 3
    """Rounds of one experiment: collect, train, evaluate."""


class Audit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[audit]`: public benchmarks, for reporting only."""

    humaneval: str = ""
    """Path of the pinned HumanEval file (`longwatch fetch humaneval` gets it and says what to write here); empty: no audit of Python."""
    multipl_e: str = ""
    """Folder of MultiPL-E's files (`longwatch fetch multipl-e` gets them and says what to write here); empty: Python only."""
    languages: tuple[Language, ...] = ()
    """Of MultiPL-E; empty: all that can be graded. One that is not installed here is void, and no score."""
    every: int = 1
    """Experiments between two audits."""

    @property
    def wanted(self) -> bool:
        """Whether there is anything to audit with."""
        return bool(self.humaneval or self.multipl_e)


class Readiness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[readiness]`: what the machine must be like while the student is used; until then the watch waits (L34).

    What a machine does not report is not looked at; `longwatch doctor` shows what it reports.
    """

    one_watch: bool = True
    """Only one watch of this machine uses the accelerator at a time, or the processor where there is none."""
    memory_bytes: int = 1024**3
    """Memory that must be available, what the watch uses itself included; 0: not looked at."""
    share_accelerator: bool = True
    """Work also while other programs compute on the accelerator."""
    accelerator_bytes: int = 0
    """Free memory of each accelerator that a step needs to begin; 0: not looked at."""
    temperature_c: float = 0.0
    """The hottest that accelerator or processor may be; work begins again five degrees below. 0: not looked at."""
    power_limit_w: float = 0.0
    """The accelerator must be capped at no more watts than this (`nvidia-smi -pl`); 0: not looked at."""
    load_cores: float = 0.0
    """So many cores may other programs use; work begins again at four fifths of it. 0: not looked at."""
    on_ac: bool = False
    """Work only on mains power."""
    quiet_hours: str = ""
    """When the machine is left alone, as `"23:00-07:00"`, several with commas, in the zone of `[observe]`."""
    settle_s: float = 60.0
    """How long all of it must hold, after it did not, before work begins again."""


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[sandbox]`: where answers and their tests run. There is no way to run them without one."""

    kind: str = "bubblewrap"
    """`bubblewrap`; or `docker` or `podman`, which need an `image` and take fifty times as long for each start."""
    image: str = ""
    """For `docker` and `podman`: an image on this machine, best by its digest (`name@sha256:…`). All languages are its own,
    in `/usr/bin`."""


class LearnSettings(KernelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    student: Student = Student()
    curriculum: Curriculum = Curriculum()
    training: Recipe = Recipe()
    teacher: Teaching = Teaching()
    acceptance: Acceptance = Acceptance()
    experiment: Hours = Hours()
    audit: Audit = Audit()
    readiness: Readiness = Readiness()
    sandbox: SandboxSettings = SandboxSettings()

    @property
    def where(self) -> Sandboxing:
        """Where answers run."""
        return Sandboxing(self.sandbox.kind, self.sandbox.image)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the environment variables whose values are never written."""
        return (*self.observe.secrets, *([self.teacher.key] if self.teacher.key else ()))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that the steps' programs see besides those that all of them see."""
        return (*self.secrets, *(NETWORK if self.training.teacher is Teacher.ENDPOINT else ()))


KIND = "learn"
FILE = "longwatch.toml"
BATCHES = (1, 2, 4, 8, 16, 32, 64)
RANKS = (8, 16)
RECIPE: Mapping[str, tuple[float, float]] = {
    "learning_rate": (1e-6, 2e-4),
    "epochs": (1, 3),
    "max_steps": (1, 500),
    "batch": (1, 256),
    "max_tokens": (16, 4096),
    "max_examples": (1, 4096),
    "replay_rows": (0, 4096),
    "samples": (1, 64),
    "temperature": (0, 2),
    "tasks_per_round": (1, 256),
    "seed": (0, 2**31 - 1),
    "checkpoint_steps": (1, 500),
}
"""The least and the largest value of each number of the recipe (L8, L9, L11)."""


def load(watch_dir: Path) -> LearnSettings:
    """Return the settings of the watch in `watch_dir`.

    Raises:
        ConfigError: the file is wrong; all problems at once.
    """
    return config.load(watch_dir / FILE, LearnSettings, problems)


def problems(settings: LearnSettings) -> Iterator[Problem]:
    """Yield everything that is wrong with the meaning of the settings. Pure."""
    if settings.kind != KIND:
        yield Problem(at("kind", settings.kind), f'must be "{KIND}" for this kind of watch')
    if settings.student.batch not in BATCHES:
        yield Problem(at("student.batch", settings.student.batch), "must be a power of two from 1 to 64")
    yield from config.not_positive("student", settings.student, "max_new_tokens", "max_prompt_tokens")
    yield from config.not_positive(
        "curriculum", settings.curriculum, "train_tasks", "dev_tasks", "confirm_tasks"
    )
    yield from config.not_positive("acceptance", settings.acceptance, "block", "max_problems", "sealed_tasks")
    yield from _acceptance_problems(settings)
    yield from _recipe_problems(settings.training)
    chosen = settings.training.teacher
    yield from teachers.problems(
        settings.teacher, model=chosen is Teacher.MODEL, endpoint=chosen is Teacher.ENDPOINT
    )
    yield from config.not_positive("experiment", settings.experiment, "rounds")
    yield from _readiness_problems(settings.readiness)
    yield from choice.problems(settings.sandbox.kind, settings.sandbox.image, kinds=choice.CONFINING)
    if Language.PYTHON in settings.audit.languages:
        yield Problem(at("audit.languages", "python"), "is HumanEval's own language: take it out here")
    hours = settings.experiment.hours
    if not 0.01 <= hours <= 24:
        yield Problem(at("experiment.hours", hours), "must lie between 0.01 and 24")


def _readiness_problems(readiness: Readiness) -> Iterator[Problem]:
    for key in (
        "memory_bytes",
        "accelerator_bytes",
        "temperature_c",
        "power_limit_w",
        "load_cores",
        "settle_s",
    ):
        value = getattr(readiness, key)
        if value < 0:
            yield Problem(at(f"readiness.{key}", value), "must be 0 or more")
    try:
        parse_hours(readiness.quiet_hours)
    except ValueError as error:
        yield Problem(at("readiness.quiet_hours", readiness.quiet_hours), str(error))


def _recipe_problems(recipe: Recipe) -> Iterator[Problem]:
    if recipe.rank not in RANKS:
        yield Problem(at("training.rank", recipe.rank), "must be 8 or 16")
    for key, (least, most) in RECIPE.items():
        value = getattr(recipe, key)
        if not least <= value <= most:
            yield Problem(at(f"training.{key}", value), f"must lie between {least} and {most}")
    if recipe.samples > 1 and recipe.temperature == 0:
        mend = "must be above 0, or all [training] samples of a task are the same"
        yield Problem(at("training.temperature", recipe.temperature), mend)


def _acceptance_problems(settings: LearnSettings) -> Iterator[Problem]:
    acceptance, fresh = settings.acceptance, settings.curriculum.confirm_tasks
    if not 0 < acceptance.q < 1:
        yield Problem(at("acceptance.q", acceptance.q), "must lie between 0 and 1")
    if acceptance.anchor_every < 0:
        yield Problem(at("acceptance.anchor_every", acceptance.anchor_every), "must be 0 or more")
    if acceptance.research and acceptance.rule is not Rule.STRICT:
        yield Problem(
            at("acceptance.research", acceptance.research), 'only `rule = "strict"` has a research branch'
        )
    if 0 < fresh < acceptance.least_fresh:
        yield Problem(at("curriculum.confirm_tasks", fresh), f"one block needs {acceptance.least_fresh}")
