"""When a challenger takes the champion's place: pure statistics of the standard library (L16 to L21, L24).

Read in this order: `outcome` (one number per problem), `eprocess` (is it better?), `lord` (how sure must we be this
time?), `inferiority` (is nothing worse?), `ruling` (both together), `anchor` (is it still so over many rounds?),
`strict` (the alternative), `intervals` (for reports). docs/reference/acceptance.md is the same for a statistician.
"""

from longwatch.learn.acceptance.anchor import Anchor, Hold, anchor
from longwatch.learn.acceptance.eprocess import Capital, Confirmation, Decision, confirm
from longwatch.learn.acceptance.inferiority import FlipRate, Guard, Lost, Standing, guards, lost
from longwatch.learn.acceptance.intervals import Interval, mcnemar, paired, paired_counts, wilson
from longwatch.learn.acceptance.lord import Lifetime, Lord, Schedule
from longwatch.learn.acceptance.outcome import Outcome, Pair, infra_share, is_void, outcomes
from longwatch.learn.acceptance.ruling import Ruling, rule
from longwatch.learn.acceptance.strict import (
    CONFIRMATION_TASKS,
    RESEARCH_LOSSES,
    Rates,
    Strict,
    StrictConfirmation,
    StrictRuling,
    error_sentences,
    nominate,
    rates,
    veto,
)

__all__ = [
    "CONFIRMATION_TASKS",
    "RESEARCH_LOSSES",
    "Anchor",
    "Capital",
    "Confirmation",
    "Decision",
    "FlipRate",
    "Guard",
    "Hold",
    "Interval",
    "Lifetime",
    "Lord",
    "Lost",
    "Outcome",
    "Pair",
    "Rates",
    "Ruling",
    "Schedule",
    "Standing",
    "Strict",
    "StrictConfirmation",
    "StrictRuling",
    "anchor",
    "confirm",
    "error_sentences",
    "guards",
    "infra_share",
    "is_void",
    "lost",
    "mcnemar",
    "nominate",
    "outcomes",
    "paired",
    "paired_counts",
    "rates",
    "rule",
    "veto",
    "wilson",
]
