"""Means and differences over clients, with intervals that hold at every look.

Everything follows from sums over clients, which add up over files, times and machines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

from podium.errors import ArgumentError

LEVEL = 0.95
TUNED = 1_000
"""The number of searches at which the intervals are narrowest."""
LEAST = 30
"""The fewest clients of each ranking with an interval: fewer may vary little by chance."""
_LEAST_EFFECTIVE = 12.0
"""The same for clients that matter: if a few buy nearly everything, only they do."""

_ROUNDING = 1e-12
"""The share of squares below which their difference is what rounding left of them."""


@dataclass(frozen=True)
class ClientSums:
    """Sums over clients of what each has: a size, such as searches, and an outcome.

    Attributes:
        clients: Clients.
        size: The sum of sizes.
        outcome: The sum of outcomes.
        size_squares: The sum over clients of squared sizes.
        products: The sum of sizes times outcomes.
        outcome_squares: The sum of squared outcomes.
        alone: The sum over single searches of their squared outcomes.
        fourth_0: The sum of outcomes to the power of 4.
        fourth_1: The sum of outcomes to the power of 3 times sizes; and so on.
        past: The sum of what clients did before the comparison.
        past_squares: Its squares.
        past_size: It times the size.
        past_outcome: It times the outcome.
    """

    clients: float = 0.0
    size: float = 0.0
    outcome: float = 0.0
    size_squares: float = 0.0
    products: float = 0.0
    outcome_squares: float = 0.0
    alone: float = 0.0
    fourth_0: float = 0.0
    fourth_1: float = 0.0
    fourth_2: float = 0.0
    fourth_3: float = 0.0
    fourth_4: float = 0.0
    past: float = 0.0
    past_squares: float = 0.0
    past_size: float = 0.0
    past_outcome: float = 0.0

    def __add__(self, other: Self) -> ClientSums:
        return ClientSums(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )

    @property
    def ratio(self) -> float:
        """The outcome per size."""
        return self.outcome / self.size if self.size else math.nan

    def variance(self, center: float) -> float:
        """Return the variance of the ratio, if its expectation is the center.

        It is that of clients, or of searches that do not depend on each other if this is larger:
        few clients may vary little by chance.
        """
        if not self.size:
            return math.inf
        between = self.outcome_squares - 2 * center * self.products + center**2 * self.size_squares
        single = self.alone - 2 * center * self.outcome + center**2 * self.size
        return max(between, single, 0.0) / self.size**2

    def fourth_moment(self, center: float) -> float:
        """Return the sum of clients' deviations from the center to the power of 4, by size."""
        c = center
        total = (
            self.fourth_0 - 4 * c * self.fourth_1 + 6 * c**2 * self.fourth_2
            - 4 * c**3 * self.fourth_3 + c**4 * self.fourth_4
        )  # fmt: skip
        return total / self.size**4

    def without_past(self, slope: float, mean: float) -> ClientSums:
        """Subtract from each client's outcome what its past explains.

        Args:
            slope: The outcome that comes with one more of what a client did before.
            mean: What clients did before, on average over both rankings.
        """
        away = self.past - mean * self.clients
        squares = self.past_squares - 2 * mean * self.past + mean**2 * self.clients
        size, outcome = self.past_size - mean * self.size, self.past_outcome - mean * self.outcome
        return ClientSums(
            self.clients,
            self.size,
            self.outcome - slope * away,
            self.size_squares,
            self.products - slope * size,
            self.outcome_squares - 2 * slope * outcome + slope**2 * squares,
        )


@dataclass(frozen=True)
class OnlineInterval:
    """An estimate.

    Attributes:
        value: The estimate.
        low: The lower end of its interval, which holds at every look; minus infinity if there is
            too little to say anything.
        high: The upper end.
        deviation: Its standard deviation.
        searches: How many searches it is from.
        clients: How many clients.
    """

    value: float
    low: float
    high: float
    deviation: float
    searches: int
    clients: int

    @property
    def decided(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def widening(searches: float, *, level: float = LEVEL, tuned: int = TUNED) -> float:
    """Return how many standard deviations an interval has to reach to hold at every look.

    It is the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas. Its
    clock is the number of searches, not of clients: outcomes go on to vary after all clients came.

    Args:
        searches: How many searches there are.
        level: How often the intervals of all looks hold together.
        tuned: The number of searches at which this is smallest.

    Example:
        >>> round(widening(1_000), 2), round(widening(30), 2), round(widening(1_000_000), 2)
        (3.04, 5.68, 3.87)
    """
    if not 0 < level < 1:
        raise ArgumentError(f"level is {level}", hint="Give a number in (0, 1), such as 0.95.")
    if not 0 < tuned < math.inf:
        raise ArgumentError(f"tuned is {tuned}", hint="Give a number of searches, such as 1000.")
    alpha = 1 - level
    spread = tuned / (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha)))
    return math.sqrt((searches + spread) / searches * math.log1p(searches / spread)
                     - (searches + spread) / searches * 2 * math.log(alpha))  # fmt: skip


def preference(sums: ClientSums, *, level: float = LEVEL, tuned: int = TUNED) -> OnlineInterval:
    """Return by how much the new ranking of interleaved searches is preferred, at any time.

    The deviation is that of users who prefer none, which holds even where nearly all searches have
    the same winner, or that around the preference if it is larger, as where active users prefer
    otherwise than the rest.

    Example:
        >>> result = preference(ClientSums(100, 100, 60, 100, 60, 100, 100))
        >>> result.value, round(result.low, 2), result.decided
        (0.6, 0.21, True)
    """
    deviation = math.sqrt(max(sums.variance(center) for center in (0.0, sums.ratio)))
    return _interval(sums.ratio, deviation, sums.size, sums.clients >= LEAST, sums, level, tuned)


def difference(
    old: ClientSums,
    new: ClientSums,
    *,
    factor: float = 1.0,
    offset: float = 0.0,
    level: float = LEVEL,
    tuned: int = TUNED,
) -> OnlineInterval:
    """Return how far a ratio is above ``factor`` times that of others plus an offset, at any time.

    Where it is known what clients did before, this makes the interval narrower (CUPED).

    Example:
        >>> old, new = (ClientSums(1000, 1000, n, 1000, n, n, n, n, n, n, n, 1000)
        ...             for n in (100, 160))
        >>> result = difference(old, new)
        >>> round(result.value, 4), round(result.low, 4), difference(old, new, factor=1.2).decided
        (0.06, 0.014, False)
    """
    both = old + new
    center = both.ratio if factor else offset  # if there is no difference, both have the same
    enough = min(old.clients, new.clients) >= LEAST
    if enough:
        second = sum(each.variance(center) for each in (old, new))
        fourth = sum(each.fourth_moment(center) for each in (old, new))
        squares = sum(each.outcome_squares / each.size**2 for each in (old, new))
        enough = second > _ROUNDING * squares and second**2 >= _LEAST_EFFECTIVE * fourth
    old, new = without_past(old, new)
    center = (old + new).ratio if factor else offset
    value = new.ratio - (factor * old.ratio if factor else 0.0) - offset
    variance = new.variance(center) + (factor**2 * old.variance(center) if factor else 0.0)
    return _interval(value, math.sqrt(variance), both.size, enough, both, level, tuned)


def relative_difference(
    old: ClientSums, new: ClientSums, *, level: float = LEVEL, tuned: int = TUNED
) -> OnlineInterval:
    """Return the difference as a share of the old ratio: all shares that it may be, at any time."""
    shown = difference(old, new, level=level, tuned=tuned)
    old, new = without_past(old, new)
    if not old.ratio > 0 or math.isinf(shown.low):
        value = new.ratio / old.ratio - 1 if old.ratio > 0 else math.nan
        return _interval(value, math.inf, shown.searches, False, old + new, level, tuned)
    reach = widening(shown.searches, level=level, tuned=tuned)
    center = (old + new).ratio
    a = old.ratio**2 - reach**2 * old.variance(center)
    c = new.ratio**2 - reach**2 * new.variance(center)
    b = old.ratio * new.ratio
    low, high = -math.inf, math.inf
    if a > 0 and b * b >= a * c:  # Fieller: otherwise the old ratio may be 0
        low, high = ((b + sign * math.sqrt(b * b - a * c)) / a - 1 for sign in (-1, 1))
    return OnlineInterval(
        new.ratio / old.ratio - 1, low, high, shown.deviation / old.ratio, shown.searches,
        shown.clients,
    )  # fmt: skip


def _interval(
    value: float, deviation: float, size: float, enough: bool, sums: ClientSums, level: float,
    tuned: int,
) -> OnlineInterval:  # fmt: skip
    low, high = -math.inf, math.inf
    if enough and math.isfinite(deviation):
        half = deviation * widening(size, level=level, tuned=tuned)
        low, high = value - half, value + half
    return OnlineInterval(value, low, high, deviation, int(size), int(sums.clients))


def without_past(old: ClientSums, new: ClientSums) -> tuple[ClientSums, ClientSums]:
    """Return the sums without what the clients' past explains; as they are if it is not known."""
    both = old + new
    if not both.past_squares > 0 or not both.clients:
        return old, new
    mean = both.past / both.clients
    spread = both.past_squares - mean * both.past
    center = both.ratio
    covariance = (
        both.past_outcome - mean * both.outcome - center * (both.past_size - mean * both.size)
    )
    if not spread > 1e-12 * both.past_squares:
        return old, new
    slope = covariance / spread
    return old.without_past(slope, mean), new.without_past(slope, mean)


def sample_ratio_evidence(counts: tuple[int, int], share: float = 0.5) -> float:
    """Return how much likelier another share of clients is than the planned one, at any time.

    It is a ratio of likelihoods, with all shares equally likely beforehand: under the planned share
    it ever reaches a number with at most one chance in that number (Lindon and Malek).

    Args:
        counts: Clients of the old and the new ranking.
        share: The planned share of the new one.

    Example:
        >>> sample_ratio_evidence((500, 510)) < 1, sample_ratio_evidence((500, 700)) > 1_000
        (True, True)
    """
    old, new = counts
    log = (
        math.lgamma(new + 1) + math.lgamma(old + 1) - math.lgamma(old + new + 2)
        - new * math.log(share) - old * math.log1p(-share)
    )  # fmt: skip
    return math.exp(min(log, 700.0))
