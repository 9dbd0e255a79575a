"""The steps of a learn watch, and what each leaves as evidence. Values only.

An experiment is: `Prepare` (a window of the curriculum, while the experiment before trains), `Prune` (what older ones left and nothing needs), `Bind` (to the
sources, settings and libraries that are here), `Train` (collect, train, evaluate on dev, in rounds), `Confirm` (a block of fresh problems, as often as needed), `Anchor` (the
sealed set), `Adopt` (the adapter takes the champion's place), now and then `Anchor` again (is the champion still no
worse?) and `Audit` (a public benchmark, which reports and never decides).
"""

from collections.abc import Mapping

import msgspec

from longwatch.kernel.line import Cycle, Recovery, Step
from longwatch.learn.acceptance import Anchor as Comparison
from longwatch.learn.acceptance import Confirmation, FlipRate, Ruling, StrictConfirmation, StrictRuling
from longwatch.learn.looks import Audited

ACCELERATOR = frozenset({"accelerator"})
BASE = "base"
"""The champion before any adapter was accepted."""


def ident(stage: str, number: int, serial: int) -> str:
    """Return the id of a step: what it does, in which experiment, and a number that no other step has."""
    return f"{stage}.{number}.{serial}"


def number_of(ident: str) -> int | None:
    """Return the experiment that a step with this id belongs to; `None`: it is none of ours."""
    parts = ident.split(".")
    ours = len(parts) == 3 and all(part.isascii() and part.isdecimal() for part in parts[1:])
    return int(parts[1]) if ours else None


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared window of the curriculum: registries by name, bound by digest before training begins (L7)."""

    number: int
    manifest: str
    """SHA-256 of the manifest, which binds the registries."""
    nonce: str
    """Random, of this experiment alone: what its receipts carry."""
    next_row: int
    train: int
    dev: int
    confirm: int
    sealed: int
    left_out: int = 0


class Challenger(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter that training nominates. It accepts nothing by itself (L13)."""

    adapter: str
    """SHA-256 of the adapter's files; it lies in the store."""
    round: int
    examples: str = ""
    """SHA-256 of the file of the examples that taught it: on acceptance they join the replay (L11)."""
    dev_before: int
    dev_after: int
    dev_total: int


class OfGeneration(Step, frozen=True, kw_only=True):
    """A step that is done as the generation says that its experiment is bound to (L29)."""

    generation: str = ""
    """SHA-256 of the generation; empty: the experiment is not bound yet."""


class Prepare(OfGeneration, frozen=True, kw_only=True, tag="prepare"):
    """Generate, validate and split a window of tasks. Needs no accelerator."""

    number: int
    window: int
    """Counts all windows; names its folder."""
    start_row: int
    sealed: bool = False
    """With the sealed set: only the first window has one, and it stays for the life of the watch (L21)."""
    fresh_only: bool = False
    """Only fresh problems, for an undecided challenger (L17)."""
    beside: bool = False
    """While the experiment before trains: it takes only what that leaves of the machine."""
    recovery: Recovery = Recovery.RESUME
    cycle: Cycle = Cycle.AHEAD

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: prepare its tasks"


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """What pruning leaves alone (L27)."""

    experiments: tuple[int, ...]
    windows: tuple[int, ...]
    replay: str
    """SHA-256 of the teaching data that is replayed; those of earlier champions are contained in it."""
    generations: tuple[str, ...] = ()
    """SHA-256 of those that the kept experiments are bound to."""


class Prune(Step, frozen=True, kw_only=True, tag="prune"):
    """Remove the folders of experiments and windows that nothing needs any more. Needs no accelerator."""

    number: int
    keep: Keep
    recovery: Recovery = Recovery.RERUN
    cycle: Cycle = Cycle.NONE

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: tidy up"


class Bind(Step, frozen=True, kw_only=True, tag="bind"):
    """Bind the experiment to what is here, and archive it, before training begins. Needs no accelerator."""

    number: int
    champion: str
    previous: str = ""
    """SHA-256 of the generation of the experiment before; empty: there is none."""
    recovery: Recovery = Recovery.RERUN

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: bind it to what is here"


class Train(OfGeneration, frozen=True, kw_only=True, tag="train"):
    """Collect verified answers, train on them, evaluate on dev. It has its own lock and outlives the supervisor."""

    number: int
    window: Window
    champion: str
    replay: str = ""
    """SHA-256 of the verified teaching data that every round replays; empty: there is none yet (L11)."""
    continued: bool = False
    """It moved to another source generation since it began: a training that was half done may not fit any more (L30)."""
    recovery: Recovery = Recovery.ADOPT
    exclusive: frozenset[str] = ACCELERATOR
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: collect, train, evaluate"


class Confirm(OfGeneration, frozen=True, kw_only=True, tag="confirm"):
    """Compare champion and challenger on one block of fresh problems."""

    number: int
    window: Window
    champion: str
    challenger: Challenger
    confirmation: Confirmation | StrictConfirmation
    """Which of the two rules decides, and how far it is."""
    block: int
    recovery: Recovery = Recovery.RESUME
    exclusive: frozenset[str] = ACCELERATOR
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: confirmation, block {self.block}"


class Anchor(OfGeneration, frozen=True, kw_only=True, tag="anchor"):
    """Compare the champion, or who would be, with base and with the best ever on the sealed set (L21)."""

    number: int
    window: Window
    candidate: str
    rivals: tuple[str, ...]
    recovery: Recovery = Recovery.RESUME
    exclusive: frozenset[str] = ACCELERATOR
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: sealed comparison"


class Adopt(OfGeneration, frozen=True, kw_only=True, tag="adopt"):
    """Verify the accepted adapter in the store, write its lineage and sign the decision."""

    number: int
    window: Window
    challenger: Challenger
    champion: str
    ruling: Ruling | StrictRuling
    fresh: tuple[Window, ...] = ()
    """The further windows of fresh problems that it was confirmed on."""
    replay: str = ""
    """SHA-256 of what the experiment replayed."""
    recovery: Recovery = Recovery.RERUN
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: adopt the adapter"


class Audit(OfGeneration, frozen=True, kw_only=True, tag="audit"):
    """Base and champion on a public benchmark, for the report only (L22)."""

    number: int
    champion: str
    recovery: Recovery = Recovery.RESUME
    exclusive: frozenset[str] = ACCELERATOR
    cycle: Cycle = Cycle.CONTINUES

    @property
    def title(self) -> str:
        """What a person reads."""
        return f"experiment {self.number}: audit"


LearnStep = Prepare | Prune | Bind | Train | Confirm | Anchor | Adopt | Audit


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag="prepared"):
    """A window is ready, or it is consumed because it holds too little (L6)."""

    window: Window
    too_little: str = ""
    exhausted: bool = False


class Pruned(msgspec.Struct, frozen=True, kw_only=True, tag="pruned"):
    """How many folders went, and what they held."""

    experiments: int
    windows: int
    steps: int
    freed_bytes: int

    @property
    def sentence(self) -> str:
        """What was removed, for a person."""
        return (
            f"{self.experiments} old experiments, {self.windows} windows and {self.steps} folders of steps are removed "
            f"({self.freed_bytes / 1e6:.1f} MB); the log keeps what was decided."
        )


class Bound(msgspec.Struct, frozen=True, kw_only=True, tag="bound"):
    """The experiment is bound, and what it is bound to is archived."""

    generation: str
    limit_s: float
    """How long the experiment may be active."""
    changes: int = 0
    """So many things differ from the experiment before."""
    changed: str = ""
    """Which, for a person."""


class RoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """One round's numbers, for the report."""

    round: int
    collected: int
    passed: int
    examples: int
    """What was taught, the replay left out."""
    own: int = 0
    """So many of the examples are the student's own answers."""
    replayed: int = 0
    steps: int
    loss_first: float
    loss_last: float
    dev_passed: int
    dev_asked: int = 0
    """Fewer than all where it was clear early that the round cannot be nominated; `dev_passed` counts these only."""
    dev_total: int
    adapter: str


class Trained(msgspec.Struct, frozen=True, kw_only=True, tag="trained"):
    """All rounds are done; at most one challenger is nominated."""

    rounds: tuple[RoundResult, ...]
    dev_before: int
    dev_base: int = 0
    """How many of the same tasks the base model passes."""
    dev_total: int
    flips: FlipRate | None = None
    """Of the champion (L15); `None` if the hours ended before it was asked twice."""
    active_s: float = 0.0
    """Seconds that the experiment was active, in all its runs (L14)."""
    active_by_phase: Mapping[str, float] = {}
    """The same seconds by what was done in them."""
    challenger: Challenger | None = None
    reason: str = ""


class Confirmed(msgspec.Struct, frozen=True, kw_only=True, tag="confirmed"):
    """A block was graded and folded in."""

    ruling: Ruling | StrictRuling
    champion_passed: int
    challenger_passed: int
    problems: int
    """Of this block. None: the source repeats itself, and all were seen before."""
    flips: FlipRate
    """Of the champion (L15)."""
    last_block: bool = False
    """The window has no more fresh problems."""


class Anchored(msgspec.Struct, frozen=True, kw_only=True, tag="anchored"):
    """The sealed comparisons."""

    comparisons: tuple[Comparison, ...]
    passed: int
    rivals_passed: tuple[int, ...]
    """In the order of the step's rivals."""
    total: int
    flips: FlipRate
    """Of the candidate (L15)."""


class Adopted(msgspec.Struct, frozen=True, kw_only=True, tag="adopted"):
    """The adapter is the champion."""

    adapter: str
    receipt: str
    replay: str = ""
    """SHA-256 of the verified teaching data, with the examples that taught this adapter."""


Evidence = Prepared | Pruned | Bound | Trained | Confirmed | Anchored | Adopted | Audited
