"""The level of each confirmation, so that hundreds of them do not add up to a false acceptance (L19).

Two schedules with the same shape, chosen here and nowhere else: `Lord` bounds the share of false ones among the
acceptances, `Lifetime` the chance of even one. Only confirmations that were begun are counted.
"""

from math import fsum, pi

import msgspec

from longwatch.kernel.errors import StateError

GAMMA_POWER = 1.6
GAMMA_SUM = 2.2857656656801293
"""The Riemann zeta function at GAMMA_POWER: the shares of all tests add up to 1."""


def gamma(distance: int) -> float:
    """Return the share that a test so many places after its source of wealth may spend."""
    return float(distance**-GAMMA_POWER) / GAMMA_SUM


def unspent(tests: int) -> float:
    """Return the share that is left after so many tests: 1 minus the sum of their gammas."""
    return 1 - fsum(gamma(place) for place in range(1, tests + 1))


class Lord(msgspec.Struct, frozen=True, kw_only=True, tag="lord"):
    """LORD++ (Ramdas, Yang, Wainwright and Jordan 2017), in its asynchronous form (Zrnic, Ramdas and Jordan 2021).

    alpha_k = w0 gamma(k) + (q - w0) gamma(k - t_1) + q (gamma(k - t_2) + gamma(k - t_3) + ...), where t_j is the
    number of confirmations that had begun when the j-th acceptance became known; at most q. While each confirmation
    ends before the next begins, that is LORD++ itself.
    """

    q: float = 0.10
    w0: float | None = None
    """The wealth before the first acceptance; q/2 unless it is given. It bounds the chance of any false acceptance
    in a life without a true improvement."""
    begun: int = 0
    known: tuple[int, ...] = ()
    """For each acceptance, how many confirmations had begun when it became known."""

    def __post_init__(self) -> None:
        """Refuse levels that promise nothing."""
        if not 0 < self.start <= self.q < 1:
            raise StateError(
                f"LORD++ with q = {self.q} and w0 = {self.start}: 0 < w0 <= q < 1 must hold; mend acceptance.q"
            )

    @property
    def start(self) -> float:
        """The wealth before the first acceptance."""
        return self.q / 2 if self.w0 is None else self.w0

    @property
    def alpha(self) -> float:
        """The level of the next confirmation, at most q.

        One by one the levels stay within q by themselves; several acceptances that become known at once would not.
        """
        return min(self.q, fsum(wealth * gamma(self.begun + 1 - since) for since, wealth in self._sources()))

    @property
    def remaining(self) -> float:
        """The alpha-wealth that is left: the sum of the levels of all tests to come if none accepts."""
        return fsum(wealth * unspent(self.begun - since) for since, wealth in self._sources())

    @property
    def sentence(self) -> str:
        """The state of the wealth, for a person."""
        return (
            f"{len(self.known)} accepted in {self.begun} confirmations; alpha-wealth {self.remaining:.3g} of "
            f"{self.start:.3g} at the beginning; the next confirmation has alpha {self.alpha:.3g}"
        )

    def begin(self) -> "Lord":
        """Return the state after one more confirmation began; its level is `alpha` of the state before."""
        return msgspec.structs.replace(self, begun=self.begun + 1)

    def accepted(self) -> "Lord":
        """Return the state after an acceptance became known: it earns q, the first one q - w0."""
        if len(self.known) >= self.begun:
            raise StateError(
                f"{len(self.known)} acceptances of {self.begun} confirmations are known, one more cannot be"
            )
        return msgspec.structs.replace(self, known=(*self.known, self.begun))

    def _sources(self) -> list[tuple[int, float]]:
        """Return each source of wealth: after how many tests it came, and how much it is."""
        earned = [(since, self.q - (0 if later else self.start)) for later, since in enumerate(self.known)]
        return [(0, self.start), *earned]


class Lifetime(msgspec.Struct, frozen=True, kw_only=True, tag="lifetime"):
    """alpha_k = level x 6 / (pi^2 k^2): the chance of any false acceptance, for ever, is at most `level`."""

    level: float = 0.05
    begun: int = 0
    acceptances: int = 0

    def __post_init__(self) -> None:
        """Refuse levels that promise nothing."""
        if not 0 < self.level < 1:
            raise StateError(f"the level of a lifetime is {self.level}, outside (0, 1)")

    @property
    def alpha(self) -> float:
        """The level of the next confirmation."""
        return self.level * 6 / (pi * (self.begun + 1)) ** 2

    @property
    def remaining(self) -> float:
        """The sum of the levels of all confirmations to come. An acceptance earns nothing."""
        spent = fsum(place**-2.0 for place in range(1, self.begun + 1))
        return self.level * (1 - spent * 6 / pi**2)

    @property
    def sentence(self) -> str:
        """The state of the level, for a person."""
        return (
            f"{self.acceptances} accepted in {self.begun} confirmations; {self.remaining:.3g} of {self.level:.3g} "
            f"is left for all to come; the next confirmation has alpha {self.alpha:.3g}"
        )

    def begin(self) -> "Lifetime":
        """Return the state after one more confirmation began; its level is `alpha` of the state before."""
        return msgspec.structs.replace(self, begun=self.begun + 1)

    def accepted(self) -> "Lifetime":
        """Return the state after an acceptance became known."""
        if self.acceptances >= self.begun:
            raise StateError(
                f"{self.acceptances} acceptances of {self.begun} confirmations are known, one more cannot be"
            )
        return msgspec.structs.replace(self, acceptances=self.acceptances + 1)


Schedule = Lord | Lifetime
