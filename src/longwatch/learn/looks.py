"""What a look at a public benchmark showed, as a value. It is reported, and nothing else ever reads it (L25)."""

from collections.abc import Sequence
from math import fsum

import msgspec

from longwatch.learn.acceptance import FlipRate, Interval, wilson


class LanguageAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Base and champion on a benchmark in one language: pass@1, greedy, one attempt."""

    language: str
    void: str = ""
    """Why there is no score: the references do not pass, or too many answers were not judged (L23)."""
    total: int = 0
    """Tasks that were judged for both."""
    base_passed: int = 0
    champion_passed: int = 0
    gained: tuple[str, ...] = ()
    """Tasks that the champion passes and base does not."""
    lost: tuple[str, ...] = ()
    p: float = 1.0
    """Exact McNemar."""
    answer_s: float = 0.0
    """Median seconds of the champion's answers."""
    reused: bool = False
    """Nothing was asked: both records were there, and counted (L24)."""
    one_process: bool = False
    """Its tests share a process with the answer, so that a determined answer could forge its verdict (L10)."""
    flips: FlipRate | None = None
    """Of base (L15)."""
    base_record: str = ""
    """SHA-256 of the record of all of base's answers."""
    champion_record: str = ""

    @property
    def base(self) -> Interval:
        """Base's pass rate with Wilson's interval."""
        return wilson(self.base_passed, self.total)

    @property
    def champion(self) -> Interval:
        """The champion's pass rate with Wilson's interval."""
        return wilson(self.champion_passed, self.total)

    @property
    def sentence(self) -> str:
        """The whole result, for a person."""
        if self.void:
            return f"{self.language}: void, {self.void}"
        return (
            f"{self.language}: champion {self.champion_passed} of {self.total} ({_percent(self.champion)}), base "
            f"{self.base_passed} ({_percent(self.base)}); {len(self.gained)} gained, {len(self.lost)} lost, p = {self.p:.2g}; "
            f"{self.answer_s:.1f} s an answer{', nothing asked anew' if self.reused else ''}"
            f"{f'; {self.flips.sentence}' if self.flips else ''}"
            f"{'; tests in the process of the answer' if self.one_process else ''}"
        )


class Audited(msgspec.Struct, frozen=True, kw_only=True, tag="audited"):
    """A look at a public benchmark: reporting only."""

    benchmark: str
    languages: tuple[LanguageAudit, ...]

    @property
    def scored(self) -> tuple[LanguageAudit, ...]:
        """The languages that are not void."""
        return tuple(one for one in self.languages if not one.void)

    @property
    def base_macro(self) -> float:
        """Base's mean pass@1 over the languages that count; 0 if none does."""
        return _mean([one.base.estimate for one in self.scored])

    @property
    def champion_macro(self) -> float:
        """The champion's, likewise."""
        return _mean([one.champion.estimate for one in self.scored])


def _percent(rate: Interval) -> str:
    return f"{100 * rate.estimate:.1f} %, 95 %: {100 * rate.lower:.1f} to {100 * rate.upper:.1f}"


def _mean(rates: Sequence[float]) -> float:
    return fsum(rates) / len(rates) if rates else 0.0
