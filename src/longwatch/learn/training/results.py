"""What training tells while it runs and at its end, as values. Imports no torch: the supervisor's side reads them."""

import msgspec

from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError


class ForeignTrainingError(IntegrityError):
    """A whole checkpoint belongs to another training: its base, rows, recipe, start adapter or environment differ."""


class Setback(msgspec.Struct, frozen=True, kw_only=True):
    """A step that went wrong: nothing of it was saved, its rows are skipped, the rate is lowered after it."""

    step: int
    why: str
    rate: float
    """The rate that the step had."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """A step is done."""

    step: int
    """Steps done."""
    steps: int
    loss: float
    """Nats per answer token, over the whole effective batch."""
    tokens_per_s: float


class Slowed(msgspec.Struct, frozen=True, kw_only=True, tag="slowed"):
    """A step took at least four times as long a token as the first ones: memory may spill."""

    step: int
    factor: float

    @property
    def sentence(self) -> str:
        """It for a person."""
        return f"step {self.step} took {self.factor:.1f} times as long as the first ones: memory may spill"


class Stalled(msgspec.Struct, frozen=True, kw_only=True, tag="stalled"):
    """Nothing has moved for long. Told from another thread."""

    silent_s: float

    @property
    def sentence(self) -> str:
        """It for a person."""
        return f"nothing has moved for {self.silent_s:.0f} s"


class Halved(msgspec.Struct, frozen=True, kw_only=True, tag="halved"):
    """Memory ran out; micro-batches hold at most so many tokens from here on."""

    step: int
    micro_tokens: int

    @property
    def sentence(self) -> str:
        """It for a person."""
        return f"memory ran out at step {self.step}; at most {self.micro_tokens} tokens at once from here on"


class RolledBack(msgspec.Struct, frozen=True, kw_only=True, tag="rolled-back"):
    """A step went wrong, and training goes on from an earlier one."""

    setback: Setback
    to: int

    @property
    def sentence(self) -> str:
        """It for a person."""
        return (
            f"step {self.setback.step} went wrong ({self.setback.why}) and is skipped, from step {self.to} on"
        )


class Resumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed"):
    """Training goes on from a checkpoint that has proved itself."""

    step: int
    lost_steps: int
    """Steps that damaged checkpoints had and that are done again."""
    quarantined: tuple[str, ...]
    """What was wrong with each damaged checkpoint."""

    @property
    def sentence(self) -> str:
        """It for a person."""
        gone = "".join(f"; damaged and set aside: {why}" for why in self.quarantined)
        return f"goes on from step {self.step}; {self.lost_steps} saved steps are lost{gone}"


class Miscalculated(msgspec.Struct, frozen=True, kw_only=True, tag="miscalculated"):
    """Equal numbers gave another loss once, and then the same: this machine does not always calculate alike."""

    step: int
    probe: float
    """What the checkpoint was saved with."""
    wrong: float

    @property
    def sentence(self) -> str:
        """It for a person."""
        return (
            f"at step {self.step} the processor gave a loss of {self.wrong!r} where it had given {self.probe!r}, and gives it"
            " again now: if this comes again, test the memory and the processor of this machine"
        )


Report = Progress | Slowed | Stalled | Halved | RolledBack | Resumed | Miscalculated


class Trained(msgspec.Struct, frozen=True, kw_only=True, tag="trained"):
    """The adapter is there, whole."""

    steps: int
    losses: tuple[float, ...]
    """Of the steps that counted, in order."""
    tokens: int
    """Tokens that the model has read, padding left out."""
    seconds: float
    """Active time in steps, before and after every interruption."""
    dropped: int
    """Rows that were too long."""
    setbacks: tuple[Setback, ...]
    adapter: Digest
    """Of the adapter's content, its address in the store."""


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """Asked to stop; the state after so many steps is saved."""

    step: int


class GaveUp(msgspec.Struct, frozen=True, kw_only=True, tag="gave-up"):
    """It cannot be trained like this; no adapter was written."""

    why: str
    setbacks: tuple[Setback, ...] = ()


Result = Trained | Paused | GaveUp
