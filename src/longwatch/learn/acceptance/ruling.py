"""The one place where evidence and guards meet: does the challenger take the champion's place?"""

import msgspec

from longwatch.learn.acceptance.eprocess import Confirmation, Decision
from longwatch.learn.acceptance.inferiority import Guard, Lost


class Ruling(msgspec.Struct, frozen=True, kw_only=True, tag="evidence"):
    """The decision on a challenger, with all that it rests on: the content of its receipt."""

    decision: Decision
    confirmation: Confirmation
    guards: tuple[Guard, ...]
    lost: Lost

    @property
    def accepts(self) -> bool:
        """True if the challenger may take the champion's place."""
        return self.decision is Decision.ACCEPT

    @property
    def undecided(self) -> bool:
        """True if more fresh problems may decide."""
        return self.decision is Decision.UNDECIDED

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision first, then what it rests on, for a person."""
        return (
            f"{self.decision.value}: {self.confirmation.sentence}",
            *(guard.sentence for guard in self.guards),
            self.lost.sentence,
        )


def rule(confirmation: Confirmation, guards: tuple[Guard, ...], lost: Lost) -> Ruling:
    """Return the ruling after a block. `guards` and `lost` judge every problem seen, those after a crossing too.

    A guard can only refuse, so the error rate of the evidence stays what it is.
    """
    decision = confirmation.decision
    if decision is Decision.ACCEPT and not all(guard.holds for guard in guards):
        decision = Decision.REGRESSION
    return Ruling(decision=decision, confirmation=confirmation, guards=guards, lost=lost)
