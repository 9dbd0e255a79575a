"""The state of a learn watch. Frozen values; `outcomes` is the only module that makes new ones."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from longwatch.learn.acceptance import (
    Confirmation,
    FlipRate,
    Ruling,
    Schedule,
    StrictConfirmation,
    StrictRuling,
)
from longwatch.learn.looks import Audited
from longwatch.learn.steps import BASE, Challenger, RoundResult, Window


class Stage(StrEnum):
    """How far the current experiment is."""

    PREPARE = "prepare"
    PRUNE = "prune"
    BIND = "bind"
    TRAIN = "train"
    CONFIRM = "confirm"
    ANCHOR = "anchor"
    ADOPT = "adopt"
    CHECK = "check"
    """Decided; whether the champion is still no worse than base and the best ever is looked at now and then (L21)."""
    AUDIT = "audit"


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """The current experiment."""

    number: int = 1
    stage: Stage = Stage.PREPARE
    window: Window | None = None
    """What it trains on and is confirmed on first."""
    generation: str = ""
    """SHA-256 of the source generation that it is bound to (L29); empty: its training has not begun."""
    limit_s: float = 0.0
    """How long it may be active, as it was bound or `set-hours` said since."""
    fresh: tuple[Window, ...] = ()
    """Further windows of fresh problems only, for an undecided challenger (L17)."""
    challenger: Challenger | None = None
    confirmation: Confirmation | StrictConfirmation | None = None
    block: int = 0
    ruling: Ruling | StrictRuling | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A finished experiment, as the history keeps it."""

    number: int
    decision: str
    sentences: tuple[str, ...]
    rounds: tuple[RoundResult, ...]
    dev_before: int
    dev_base: int = 0
    dev_total: int
    adapter: str = ""
    receipt: str = ""
    generation: str = ""
    """SHA-256 of the source generation that it was bound to at its end."""


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that moved to another source generation, with its clock (L30)."""

    experiment: int
    parent: str
    """SHA-256 of the generation that it was bound to ..."""
    child: str
    """... and of the one that it is bound to since."""
    carried_s: float
    """Active seconds that moved with it: they are counted once, in the experiment."""
    limit_s: float
    """Of the active seconds, before and after."""


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """A prepared session that the watch began with (L28)."""

    session: str
    """Its folder: it was only read."""
    adapter: str
    receipt: str
    """SHA-256 of the session's own receipt of the adapter's acceptance."""
    data: str
    """What the adapter's lineage says of its data."""
    nonce: str
    """Random: what the receipt of the adoption carries."""


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """A champion that went, because on the sealed set it was worse than a rival (L21).

    There is no receipt of it: nothing was accepted. Who returns has the receipt of its own acceptance, or is base.
    """

    experiment: int
    """After which it was found."""
    champion: str
    returned: str
    sentences: tuple[str, ...]


class LearnState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a learn watch knows durably."""

    schedule: Schedule
    serial: int = 0
    experiment: Experiment = Experiment()
    next_row: int = 0
    windows: int = 0
    """Windows that were prepared or consumed so far."""
    pending: Window | None = None
    """The next experiment's, prepared while this one goes on."""
    sealed: Window | None = None
    """The window that holds the sealed set."""
    champion: str = BASE
    best: str = BASE
    """Base, or the champion that passed more of the sealed set than base and every other."""
    replay: str = ""
    """SHA-256 of the verified teaching data of all accepted adapters: every round replays some of it (L11)."""
    rounds: tuple[RoundResult, ...] = ()
    """Of the current experiment."""
    dev_before: int = 0
    dev_base: int = 0
    dev_total: int = 0
    flips: FlipRate | None = None
    """Of the champion, as it was measured last: it stands beside every score (L15)."""
    active_s: float = 0.0
    """Seconds that all experiments were active, as far as their training is done (L14)."""
    active_by_phase: Mapping[str, float] = {}
    """The same seconds by what was done in them."""
    history: tuple[Decided, ...] = ()
    """The newest, and those that were accepted: the state is written at each move, so the log keeps the others."""
    rounds_decided: int = 0
    """Of all finished experiments."""
    rollbacks: tuple[RolledBack, ...] = ()
    adopted: Adoption | None = None
    continuations: tuple[Continued, ...] = ()
    audited: Audited | None = None
    """The newest; the log keeps the others."""
    looks: int = 0
    """How often a benchmark's score was seen: each one more makes a good one less surprising (L25)."""
    exhausted: str = ""
    """Why the curriculum gives no more windows to learn from; what is left may still hold fresh problems."""
